import json
from pathlib import Path

import pytest
import store_factory
from command import call

from search.store.repo import Store

Capture = pytest.CaptureFixture[str]


def make_store(path: Path, running: bool = False) -> str:
    with Store.open(str(path)) as store:
        study_id = store_factory.fill(store, architectures=("attention*2", "sepconv*2"))
        if running:
            worker = store.register_worker()
            store_factory.claim_and_commit(store, study_id, worker, "sepconv, attention")
    return str(path)


def test__merge__twice__table_document_and_nothing_added_again(
    capsys: Capture, tmp_path: Path
) -> None:
    source, target = make_store(tmp_path / "a.db", running=True), str(tmp_path / "b.db")
    done = call(capsys, "merge", source, "--store", target)
    assert done.code == 0
    assert done.out.splitlines()[1].split() == ["demo", "new,", "as", "demo", "2", "0", "1"]
    assert "merge again when they have" in done.err
    again = call(capsys, "merge", source, "--store", target, "--json")
    assert json.loads(again.out) == [
        {
            **{"study": "demo", "name": "demo", "created": False},
            **{"added": 0, "duplicates": 2, "left_out": 1},
        }
    ]


def test__merge__wrong_input__one_line_each(capsys: Capture, tmp_path: Path) -> None:
    source = make_store(tmp_path / "a.db")
    (tmp_path / "link.db").symlink_to(source)
    for arguments, code, words in (
        ([source, "--store", str(tmp_path / "link.db")], 2, "is both stores"),
        ([source, "--store", str(tmp_path / "b.db"), "--name", "x"], 2, "say which with --study"),
        ([str(tmp_path / "no.db"), "--store", source], 4, "there is no store"),
        ([source, "--store", str(tmp_path / "b.db"), "--study", "x"], 4, "no study 'x'"),
    ):
        done = call(capsys, "merge", *arguments)
        assert (done.code, words in done.error_line) == (code, True), done.err

import json
from pathlib import Path

import pytest
import store_factory
from command import call

from search.store.repo import Store

Capture = pytest.CaptureFixture[str]


def test__gc__dry_run_then_for_real__same_words_and_files_gone(
    capsys: Capture, tmp_path: Path
) -> None:
    url = str(tmp_path / "search.db")
    with Store.open(url) as store:
        store_factory.fill(store, architectures=("attention*2", "sepconv*2"))
        worst, best = (row.id for row in store.rows("demo"))
    room = tmp_path / "search.db.files" / "checkpoints"
    for trial in (worst, best):
        (room / f"trial-{trial}").mkdir(parents=True)
        (room / f"trial-{trial}" / "step-000000600-k.zip").write_bytes(bytes(2048))
    (room / "mine").mkdir()
    planned = call(capsys, "gc", "--keep", "best", "--dry-run", "--store", url)
    assert planned.code == 0
    assert "2.0 KiB would be freed, 2.0 KiB kept" in planned.out
    assert f"left alone, as it is not a trial's folder: {room / 'mine'}" in planned.err
    assert (room / f"trial-{worst}").exists()
    document = json.loads(call(capsys, "gc", "--keep", "best", "--store", url, "--json").out)
    assert (document["size_bytes"], document["kept_bytes"], document["dry_run"]) == (
        *(2048, 2048),
        False,
    )
    assert [one["number"] for one in document["freed"]] == [0]
    assert sorted(path.name for path in room.iterdir()) == ["mine", f"trial-{best}"]
    wrong = call(capsys, "gc", "--keep", "some", "--store", url)
    assert (wrong.code, "'best', 'last', 'all'" in wrong.error_line) == (2, True)

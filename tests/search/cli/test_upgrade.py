from pathlib import Path

import pytest
from command import call

Capture = pytest.CaptureFixture[str]


def test__upgrade__twice__created_then_nothing_to_do(capsys: Capture, tmp_path: Path) -> None:
    place = str(tmp_path / "search.db")
    assert "created with schema" in call(capsys, "upgrade", "--store", place).out
    assert "already" in call(capsys, "upgrade", "--store", place).out


def test__upgrade__newer_store__code_3(capsys: Capture, tmp_path: Path) -> None:
    import sqlite3

    place = tmp_path / "search.db"
    call(capsys, "upgrade", "--store", str(place))
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE mixsearch_schema SET version_num = '9999'")
    connection.close()
    for command in (["upgrade"], ["ls"]):
        done = call(capsys, *command, "--store", str(place))
        assert done.code == 3
        assert "9999" in done.error_line

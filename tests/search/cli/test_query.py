import csv
import io
import json
from pathlib import Path

import pytest
from command import call

Capture = pytest.CaptureFixture[str]
COUNTS = "SELECT state, COUNT(*) AS n FROM trials_flat GROUP BY state ORDER BY n DESC, state"
EXPECTED = [("completed", 12), ("failed", 1), ("running", 1)]


def test__query__json__rows_by_column(capsys: Capture, filled_store: str) -> None:
    done = call(capsys, "query", COUNTS, "--store", filled_store, "--json")
    assert [(row["state"], row["n"]) for row in json.loads(done.out)] == EXPECTED


def test__query__csv__header_and_rows(capsys: Capture, filled_store: str) -> None:
    done = call(capsys, "query", COUNTS, "--store", filled_store, "--format", "csv")
    rows = list(csv.reader(io.StringIO(done.out)))
    assert rows == [["state", "n"], *([state, str(n)] for state, n in EXPECTED)]


def test__query__table__numbers_to_the_right(capsys: Capture, filled_store: str) -> None:
    lines = call(capsys, "query", COUNTS, "--store", filled_store).out.splitlines()
    assert lines[1].split() == ["completed", "12"]
    assert {len(line) for line in lines} == {len(lines[1])}


def test__query__not_finite__null(capsys: Capture, filled_store: str) -> None:
    done = call(capsys, "query", "SELECT 9e999 AS x", "--store", filled_store, "--json")
    assert json.loads(done.out) == [{"x": None}]


def test__query__limit__says_that_there_is_more(capsys: Capture, filled_store: str) -> None:
    done = call(
        capsys, "query", "SELECT number FROM trials_flat", "-n", "2", "--store", filled_store
    )
    assert len(done.out.splitlines()) == 3
    assert "only the first 2 rows" in done.err


def test__query__endless__ended_in_time(capsys: Capture, filled_store: str) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT MAX(x) FROM n"
    done = call(capsys, "query", endless, "--timeout", "0.3", "--store", filled_store)
    assert done.code == 2
    assert "longer than 0.3 s" in done.error_line


def test__query__from_a_pipe__read(
    capsys: Capture, filled_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"SELECT 7 AS seven")))
    done = call(capsys, "query", "-", "--store", filled_store, "--json")
    assert json.loads(done.out) == [{"seven": 7}]


def test__query__none_given__says_how(capsys: Capture, filled_store: str) -> None:
    done = call(capsys, "query", "--store", filled_store)
    assert done.code == 2
    assert "SELECT * FROM leaderboard" in done.error_line


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test__query__schema__every_view_and_column(capsys: Capture, form: str) -> None:
    from search.store.views import VIEWS

    done = call(capsys, "query", "--schema", "--format", form)
    assert done.code == 0
    for view in VIEWS:
        assert view.name in done.out
        assert all(column in done.out for column in view.columns)


def test__query__accuracy_by_first_mixer__from_documented_tables(
    capsys: Capture, filled_store: str
) -> None:
    sql = (
        "SELECT b.kind, COUNT(*) AS n, AVG(e.value) AS accuracy FROM trial_blocks b "
        "JOIN evaluations e ON e.trial_id = b.trial_id AND e.metric = 'accuracy' "
        "AND e.split = 'selection' WHERE b.layer = 0 GROUP BY b.kind ORDER BY accuracy DESC"
    )
    rows = json.loads(call(capsys, "query", sql, "--store", filled_store, "--json").out)
    assert [(row["kind"], row["n"]) for row in rows] == [("sepconv", 6), ("attention", 6)]


WRITES = [
    "WITH x AS (SELECT 1) DELETE FROM trials",
    "SELECT 1; DELETE FROM trials",
    "ATTACH DATABASE '{folder}/other.db' AS other",
    "VACUUM INTO '{folder}/copy.db'",
    "PRAGMA query_only = OFF",
    "/* SELECT */ DELETE FROM trials",
    "-- SELECT\nUPDATE trials SET state = 'failed'",
    "DROP VIEW leaderboard",
    "SELECT writefile('{folder}/x', 'y')",
]


@pytest.mark.parametrize("sql", WRITES)
def test__C54__write_through_the_command__refused_and_nothing_changed(
    capsys: Capture, filled_store: str, tmp_path: Path, sql: str
) -> None:
    counted = "SELECT COUNT(*) AS n FROM trials"
    before = call(capsys, "query", counted, "--store", filled_store, "--json").out
    done = call(capsys, "query", sql.format(folder=tmp_path), "--store", filled_store)
    assert done.code == 2
    assert done.error_line
    assert call(capsys, "query", counted, "--store", filled_store, "--json").out == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "sql",
    [
        "WITH best AS (SELECT MIN(selection) AS x FROM trials_flat) SELECT x FROM best",
        "SELECT number, RANK() OVER (ORDER BY selection) AS r FROM trials_flat",
        "SELECT json_extract('{\"a\": 1}', '$.a') AS a",
    ],
)
def test__C54__reading_with_cte_window_and_json__works(
    capsys: Capture, filled_store: str, sql: str
) -> None:
    done = call(capsys, "query", sql, "--store", filled_store, "--json")
    assert done.code == 0
    assert json.loads(done.out)

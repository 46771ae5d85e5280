import json

import pytest
import store_factory

from search.errors import InputError


@pytest.fixture(scope="module")
def filled(module_store):
    """Only read here, so one is enough."""
    store_factory.fill(module_store, seeds=2)
    return module_store


def test__query__rows__with_columns_and_dicts(filled):
    found = filled.query("SELECT number, state FROM trials_flat ORDER BY number;")
    assert found.columns == ("number", "state")
    assert found.rows[0] == (0, "completed")
    assert found.dicts()[1] == {"number": 1, "state": "completed"}
    assert not found.truncated


def test__query__more_rows_than_the_limit__truncated(filled):
    found = filled.query("SELECT number FROM trials_flat ORDER BY number", limit=3)
    assert [row[0] for row in found.rows] == [0, 1, 2]
    assert found.truncated
    assert not filled.query("SELECT number FROM trials_flat LIMIT 3", limit=3).truncated


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("WITH t AS (SELECT 1 AS a UNION ALL SELECT 2) SELECT SUM(a) FROM t", [(3,)]),
        ("SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY id) FROM trials) x", [(8,)]),
        ("VALUES (1, 'a;b')", [(1, "a;b")]),
        ("-- a comment first\nSELECT /* and within */ 1", [(1,)]),
        ("select 'DELETE FROM trials'", [("DELETE FROM trials",)]),
        (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) "
            "SELECT MAX(i) FROM n",
            [(5,)],
        ),
        ("SELECT DISTINCT CAST(spec ->> 'd_model' AS INTEGER) FROM trials", [(32,)]),
        ("SELECT 1 AS \"50%\", '%s'", [(1, "%s")]),
    ],
)
def test__query__reading_of_every_kind__works(filled, sql, rows):
    assert filled.query(sql).rows == rows


def test__query__json_of_the_database__works(filled):
    sql = {
        True: "SELECT json_extract(config, '$.kind') FROM trial_blocks LIMIT 1",
        False: "SELECT config ->> 'kind' FROM trial_blocks LIMIT 1",
    }[filled.address.is_sqlite]
    assert filled.query(sql).rows == [("attention",)]
    each = {
        True: "SELECT DISTINCT j.key FROM trials, json_each(trials.sampler_params) j",
        False: "SELECT DISTINCT j.key FROM trials, jsonb_each(trials.sampler_params) j",
    }[filled.address.is_sqlite]
    assert filled.query(each).rows == [("layer_0",)]


def test__query__values__are_strict_json(filled):
    infinite = "1e999" if filled.address.is_sqlite else "'inf'::float8"
    binary = "x'00ff'" if filled.address.is_sqlite else "'\\x00ff'::bytea"
    found = filled.query(f"SELECT {infinite}, {binary}, created_at, AVG(1) FROM studies GROUP BY 3")
    value, blob, time, average = found.rows[0]
    assert (value, blob, average) == (None, "00ff", 1)
    assert time.startswith("20")
    json.dumps(found.rows, allow_nan=False)


@pytest.mark.parametrize("sql", ["", "  ;; ", "\n", "-- nothing", "SELECT 1\0"])
def test__query__nothing_in_it__refused(filled, sql):
    with pytest.raises(InputError):
        filled.query(sql)


@pytest.mark.parametrize(
    ("sql", "word"), [("SELECT nothing", "nothing"), ("SELEKT 1", "syntax"), ("SELECT (1", "")]
)
def test__query__wrong_sql__one_line(filled, sql, word):
    with pytest.raises(InputError) as caught:
        filled.query(sql)
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test__query__too_slow__ended(filled):
    sql = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) "
        "SELECT COUNT(*) FROM n"
    )
    with pytest.raises(InputError, match=r"took longer than 0\.2 s"):
        filled.query(sql, timeout_s=0.2)
    assert filled.query("SELECT 1").rows == [(1,)]


def test__query__huge_value_or_result__bounded(filled):
    if filled.address.is_sqlite:
        with pytest.raises(InputError, match="too big"):
            filled.query("SELECT zeroblob(900000000)")
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100) " + (
        "SELECT hex(zeroblob(500000)) FROM n"
        if filled.address.is_sqlite
        else "SELECT repeat('x', 1000000) FROM n"
    )
    found = filled.query(many)
    assert found.truncated
    assert 0 < len(found.rows) < 100


@pytest.mark.parametrize(("limit", "timeout_s"), [(0, 1), (-1, 1), (10, 0), (10, -1)])
def test__query__impossible_limits__refused(filled, limit, timeout_s):
    with pytest.raises(InputError, match="limit"):
        filled.query("SELECT 1", limit, timeout_s)


def test__query__path_with_odd_characters__opens(tmp_path):
    from search.store.repo import Store

    with Store.open(str(tmp_path / "a b?c#d%20e.db")) as store:
        assert store.query("SELECT COUNT(*) FROM trials").rows == [(0,)]

"""Queries over HTTP read, on both databases, whatever they try."""

from collections.abc import Iterator

import pytest
import store_factory
from served import API, client_of
from sqlalchemy import text
from starlette.testclient import TestClient

from search.store.repo import Store

WRITES = [
    "DELETE FROM trials",
    "/* SELECT */ DELETE FROM trials",
    "-- SELECT\nDELETE FROM trials",
    "UPDATE studies SET name = 'x'",
    "INSERT INTO tokens (name) VALUES ('x')",
    "DROP TABLE trials",
    "CREATE TABLE t (a int)",
    "CREATE TEMPORARY TABLE t (a int)",
    "SELECT 1; DELETE FROM trials",
    "SELECT 1;;DROP TABLE trials;",
    "BEGIN",
    "COMMIT; DELETE FROM trials",
    "ROLLBACK",
    "VACUUM",
    "REINDEX",
    "WITH x AS (SELECT 1) DELETE FROM trials",
    "EXPLAIN DELETE FROM trials",
]
WRITES_SQLITE = [
    "ATTACH DATABASE '{folder}/new.db' AS new",
    "VACUUM INTO '{folder}/new.db'",
    "PRAGMA query_only = OFF",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA writable_schema = ON",
    "SELECT load_extension('x')",
    "SELECT writefile('{folder}/new.db', 'x')",
    "REPLACE INTO studies (id) VALUES (1)",
    "WITH x AS (SELECT 1) INSERT INTO studies SELECT * FROM x",
]
ROLLED_BACK = [
    "SELECT set_config('statement_timeout', '0', false)",
    "SELECT lo_from_bytea(0, 'x')",
]
WRITES_POSTGRESQL = [
    *ROLLED_BACK,
    "SELECT set_config('transaction_read_only', 'off', false)",
    "WITH x AS (DELETE FROM trials RETURNING *) SELECT * FROM x",
    "SET TRANSACTION READ WRITE",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "RESET ROLE",
    "COPY trials TO PROGRAM 'touch {folder}/new.db'",
    "COPY trials TO '{folder}/new.db'",
    "SELECT nextval('studies_id_seq')",
    "SELECT setval('studies_id_seq', 99)",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_reload_conf()",
    "SELECT * FROM trials FOR UPDATE",
    "SELECT 1 INTO t",
    "DO $$ BEGIN DELETE FROM trials; END $$",
    "CALL x()",
    "SELECT query_to_xml('DELETE FROM trials', true, true, '')",
    "FETCH 1 FROM search_query",
]


@pytest.fixture(scope="module")
def served(module_store: Store) -> Iterator[tuple[TestClient, Store]]:
    store_factory.fill(module_store, "demo")
    url = module_store.address.url.render_as_string(hide_password=False)
    with client_of(url, query_rows=50, query_s=0.5) as client:
        yield client, module_store


def query(client: TestClient, sql: str, **more: object):
    return client.post(f"{API}/query", json={"sql": sql, **more})


def counts(store: Store) -> list[int]:
    with store.reading() as connection:
        return [
            connection.execute(text(f"SELECT COUNT(*) FROM {name}")).scalar_one()
            for name in ("studies", "trials", "tokens", "events")
        ]


def test__query__that_writes__is_refused_and_changes_nothing(served, tmp_path) -> None:
    client, store = served
    before = counts(store)
    own = WRITES_SQLITE if store.address.is_sqlite else WRITES_POSTGRESQL
    for sql in [*WRITES, *own]:
        answer = query(client, sql.format(folder=tmp_path))
        if answer.status_code == 200:  # in a transaction that is rolled back
            assert sql in ROLLED_BACK
        else:
            assert answer.status_code == 422, (sql, answer.text)
            assert answer.json()["detail"].startswith(("query", "one statement", "the query"))
        assert counts(store) == before, sql
    assert list(tmp_path.iterdir()) == []
    if not store.address.is_sqlite:
        with store.reading() as connection:
            objects = connection.execute(text("SELECT COUNT(*) FROM pg_largeobject_metadata"))
            assert objects.scalar_one() == 0
    assert query(client, "SELECT COUNT(*) FROM trials").json()["rows"] == [[4]]


def test__query__that_reads__may_use_ctes_windows_and_json(served) -> None:
    client, _ = served
    sql = """
        WITH ranked AS (
            SELECT code, mean, RANK() OVER (ORDER BY mean) AS place FROM leaderboard
        )
        SELECT code, place FROM ranked ORDER BY place LIMIT 1
    """
    assert query(client, sql).json() == {
        "columns": ["code", "place"],
        "rows": [["SS", 1]],
        "truncated": False,
    }
    assert query(client, "SELECT 'é; DELETE' AS \"a;b\"").json()["columns"] == ["a;b"]


def test__query__without_end__is_ended(served) -> None:
    client, _ = served
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n"
    answer = query(client, endless, timeout_s=3600.0)
    assert answer.status_code == 422
    assert answer.json()["detail"].endswith("longer than 0.5 s and was ended; narrow it with WHERE")
    assert client.get(f"{API}/ready").status_code == 200


def test__query__of_too_many_rows__is_cut(served) -> None:
    client, _ = served
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999) "
    answer = query(client, many + "SELECT i FROM n", limit=10**6).json()
    assert len(answer["rows"]) == 50
    assert answer["truncated"]


def test__query__infinities__are_null(served) -> None:
    client, store = served
    sql = (
        "SELECT 9e999, -9e999" if store.address.is_sqlite else "SELECT 'NaN'::float, '-inf'::float"
    )
    assert query(client, sql).json()["rows"] == [[None, None]]

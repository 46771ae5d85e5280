"""SQL that would write, reach other files or leave its cage is refused by the connection."""

import hashlib
from pathlib import Path

import pytest
import store_factory
from sqlalchemy import text
from store_fixtures import copied_store

from search.errors import InputError, SearchError
from search.store.repo import Store

ANYWHERE = {
    "delete": "DELETE FROM trials",
    "update": "UPDATE trials SET state = 'completed'",
    "insert": "INSERT INTO workers (name) VALUES ('x')",
    "upsert": "INSERT INTO studies (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = 'x'",
    "create": "CREATE TABLE t (a INTEGER)",
    "create as": "CREATE TABLE t AS SELECT * FROM trials",
    "temporary": "CREATE TEMPORARY TABLE t (a INTEGER)",
    "drop": "DROP TABLE trials",
    "drop view": "DROP VIEW leaderboard",
    "alter": "ALTER TABLE trials ADD COLUMN x INTEGER",
    "index": "CREATE INDEX i ON trials (state)",
    "two statements": "SELECT 1; DELETE FROM trials",
    "two after a comment": "SELECT 1; -- harmless\nDELETE FROM trials",
    "comment before the verb": "/* SELECT */ DELETE FROM trials",
    "line comment before the verb": "-- SELECT\nDELETE FROM trials",
    "cte and delete": "WITH t AS (SELECT id FROM trials) DELETE FROM trials",
    "cte and insert": "WITH t AS (SELECT 1 AS a) INSERT INTO workers (name) SELECT a FROM t",
    "returning": "DELETE FROM trials RETURNING id",
    "begin": "BEGIN",
    "commit": "COMMIT",
    "rollback": "ROLLBACK",
    "savepoint": "SAVEPOINT s",
    "vacuum": "VACUUM",
    "analyze": "ANALYZE",
    "reindex": "REINDEX TABLE trials",
}
SQLITE = {
    "attach": "ATTACH DATABASE '{other}' AS other",
    "attach memory": "ATTACH ':memory:' AS m",
    "detach": "DETACH main",
    "vacuum into": "VACUUM INTO '{other}'",
    "pragma": "PRAGMA query_only = OFF",
    "pragma read": "PRAGMA journal_mode",
    "pragma wal": "PRAGMA wal_checkpoint(TRUNCATE)",
    "pragma schema": "PRAGMA writable_schema = ON",
    "pragma function": "SELECT * FROM pragma_journal_mode",
    "pragma table": "SELECT * FROM pragma_table_info('trials')",
    "load extension": "SELECT load_extension('{other}')",
    "load in a view": "SELECT (SELECT load_extension('{other}')) FROM trials",
    "virtual table": "CREATE VIRTUAL TABLE v USING fts5(a)",
    "trigger": "CREATE TRIGGER t AFTER INSERT ON trials BEGIN SELECT 1; END",
    "replace": "REPLACE INTO trials (id) VALUES (1)",
    "schema table": "DELETE FROM sqlite_master",
    "sequence": "UPDATE sqlite_sequence SET seq = 0",
    "tokenizer": "SELECT fts3_tokenizer('simple')",
    "explain": "EXPLAIN DELETE FROM trials",
    "write file": "SELECT writefile('{other}', 'x')",
    "read file": "SELECT readfile('/etc/passwd')",
}
POSTGRESQL = {
    "copy to program": "COPY trials TO PROGRAM 'touch {other}'",
    "copy to file": "COPY trials TO '{other}'",
    "copy out": "COPY trials TO STDOUT",
    "copy from": "COPY trials FROM '/etc/passwd'",
    "set": "SET default_transaction_read_only = off",
    "set transaction": "SET TRANSACTION READ WRITE",
    "set session": "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "set role": "SET ROLE postgres",
    "reset role": "RESET ROLE",
    "reset": "RESET ALL",
    "do": "DO $$ BEGIN DELETE FROM trials; END $$",
    "call": "CALL x()",
    "prepare": "PREPARE p AS DELETE FROM trials",
    "listen": "LISTEN x",
    "notify": "NOTIFY x",
    "lock table": "LOCK TABLE trials",
    "truncate": "TRUNCATE trials",
    "grant": "GRANT ALL ON trials TO PUBLIC",
    "select into": "SELECT * INTO t FROM trials",
    "for update": "SELECT * FROM trials FOR UPDATE",
    "cte delete": "WITH d AS (DELETE FROM trials RETURNING id) SELECT * FROM d",
    "nextval": "SELECT nextval('trials_id_seq')",
    "setval": "SELECT setval('trials_id_seq', 1)",
    "export": "SELECT lo_export(1, '{other}')",
    "read file": "SELECT pg_read_file('/etc/passwd')",
    "list folder": "SELECT pg_ls_dir('/')",
    "terminate": "SELECT pg_terminate_backend({backend})",
    "reload": "SELECT pg_reload_conf()",
    "rotate": "SELECT pg_switch_wal()",
    "settings file": "ALTER SYSTEM SET work_mem = '1GB'",
    "leave read only": "SELECT set_config('transaction_read_only', 'off', false)",
    "leave and write": "SELECT set_config('transaction_read_only', 'off', true), "
    "setval('trials_id_seq', 1)",
    "leave the role": "SELECT set_config('role', 'none', false), pg_read_file('/etc/passwd')",
    "close the cursor": "SELECT 1; CLOSE ALL",
    "second command": "SELECT 1; COMMIT; DELETE FROM trials",
    "password hashes": "SELECT rolpassword FROM pg_authid",
    "password hashes by their view": "SELECT passwd FROM pg_shadow",
    "lock": "SELECT PG_Advisory_Lock(1, 2)",
    "lock in a limit": "SELECT 1 LIMIT (CASE WHEN pg_try_advisory_lock(1) THEN 1 ELSE 1 END)",
    "lock under an escaped name": 'SELECT U&"pg\\005fadvisory_lock"(1)',
    "lock in a text": "SELECT query_to_xml('SELECT pg_adv' || 'isory_lock(1)', true, true, '')",
    "lock in a statistic": "SELECT * FROM ts_stat('SELECT ' || 'x')",
}


def content(store):
    with store.reading() as connection:
        names = ("trials", "attempts", "evaluations", "workers", "studies", "trial_blocks")
        return {
            name: sorted(map(repr, connection.execute(text(f"SELECT * FROM {name}")).all()))
            for name in names
        }


def attack(store, sql, folder):
    """Run what must be refused; then nothing may have changed."""
    folder.chmod(0o777)  # the server may run as another user
    before = content(store)
    with pytest.raises(InputError) as caught:
        store.query(sql.replace("{other}", str(folder / "other")))
    assert "\n" not in str(caught.value)
    assert content(store) == before
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def filled(module_store):
    """One store for all attacks, since none may change it."""
    store_factory.fill(module_store)
    return module_store


@pytest.fixture
def filled_sqlite(tmp_path_factory):
    with Store.open(copied_store("sqlite", tmp_path_factory.mktemp("store"))) as store:
        store_factory.fill(store, architectures=("attention*2",))
        yield store


@pytest.fixture(scope="module")
def filled_postgresql():
    with Store.open(copied_store("postgresql", Path())) as store:
        store_factory.fill(store, architectures=("attention*2",))
        yield store


@pytest.mark.parametrize("sql", ANYWHERE.values(), ids=ANYWHERE.keys())
def test__C54__statement_that_is_no_reading__refused(filled, sql, tmp_path):
    attack(filled, sql, tmp_path)


@pytest.mark.parametrize("sql", SQLITE.values(), ids=SQLITE.keys())
def test__C54__sqlite_tricks__refused_and_no_byte_changed(filled_sqlite, sql, tmp_path):
    path = filled_sqlite.address.path
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    names = sorted(file.name for file in path.parent.iterdir())
    attack(filled_sqlite, sql, tmp_path)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    assert sorted(file.name for file in path.parent.iterdir()) == names


@pytest.mark.postgres
@pytest.mark.parametrize("sql", POSTGRESQL.values(), ids=POSTGRESQL.keys())
def test__C54__postgresql_tricks__refused(filled_postgresql, sql, tmp_path):
    with filled_postgresql.engine.connect() as victim:
        backend = victim.execute(text("SELECT pg_backend_pid()")).scalar()
        attack(filled_postgresql, sql.replace("{backend}", str(backend)), tmp_path)
        assert victim.execute(text("SELECT 1")).scalar() == 1


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("SELECT lo_from_bytea(0, 'x')", "SELECT COUNT(*) FROM pg_largeobject_metadata"),
        (
            "SELECT set_config('search_path', 'nowhere', false)",
            "SELECT COUNT(*) FROM pg_settings WHERE name = 'search_path' AND setting = 'nowhere'",
        ),
    ],
    ids=["large object", "session setting"],
)
def test__C54__postgresql_function_that_a_read_only_transaction_allows__leaves_nothing(
    filled_postgresql, sql, left
):
    filled_postgresql.query(sql)
    with filled_postgresql.reading() as connection:
        assert connection.execute(text(left)).scalar() == 0
    assert filled_postgresql.query("SELECT COUNT(*) FROM trials").rows == [(1,)]


def test__C54__after_every_attack__the_store_still_writes(filled):
    for sql in ANYWHERE.values():
        with pytest.raises(SearchError):
            filled.query(sql)
    assert filled.register_worker() > 0
    assert filled.query("SELECT COUNT(*) FROM trials").rows == [(4,)]

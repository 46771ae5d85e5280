import shutil
import sqlite3
import subprocess
import sys

import pytest
import store_factory
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

import search.store.measurements  # noqa: F401 - registers its tables
from search.errors import StoreError
from search.store import schema
from search.store.repo import Store
from search.store.tables import Base
from search.store.views import VIEWS, VIEWS_VERSION

NEXT_RELEASE = '''"""A column more."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("trials", sa.Column("mood", sa.Text()))
    op.execute("UPDATE trials SET mood = 'good'")
'''


@pytest.fixture
def next_release(tmp_path, monkeypatch):
    """Turns this version into the next one, whose schema has a column more."""
    folder = tmp_path / "migrations"
    shutil.copytree(schema.MIGRATIONS, folder)
    (folder / "versions" / "v0005_mood.py").write_text(NEXT_RELEASE)

    def switch():
        monkeypatch.setattr(schema, "MIGRATIONS", folder)
        monkeypatch.setattr(schema, "HEAD", "0005")
        return folder

    return switch


def tables_of(store_or_engine):
    return set(inspect(store_or_engine).get_table_names())


def test__upgrade__twice__second_does_nothing(store_url):
    first = schema.upgrade(store_url)
    assert (first.before, first.after, first.changed) == (None, schema.HEAD, True)
    second = schema.upgrade(store_url)
    assert (second.before, second.after, second.changed) == (schema.HEAD, schema.HEAD, False)


def test__head__constant__is_the_newest_migration():
    assert ScriptDirectory(str(schema.MIGRATIONS)).get_current_head() == schema.HEAD


def test__migrations__tables__are_those_of_the_models(store):
    with store.reading() as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": schema.VERSION_TABLE, "compare_server_default": True}
        )
        assert compare_metadata(context, Base.metadata) == []


def test__migrations__constraints__are_those_of_the_models(store):
    found = inspect(store.engine)
    for name, table in Base.metadata.tables.items():
        wanted = {c.name for c in table.constraints if type(c).__name__ == "CheckConstraint"}
        assert {c["name"] for c in found.get_check_constraints(name)} == wanted, name
        for key in found.get_foreign_keys(name):
            (column,) = key["constrained_columns"]
            (model,) = table.c[column].foreign_keys
            assert key["options"].get("ondelete") == model.ondelete, (name, column)


def test__models__every_column_and_table__has_a_doc_string():
    for mapper in Base.registry.mappers:
        assert mapper.class_.__doc__, mapper.class_
        for column in mapper.local_table.columns:
            assert column.doc, column
            assert column.doc.endswith("."), column


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test__views__columns__are_the_documented_ones_in_order(store, view):
    store_factory.fill(store)
    with store.reading() as connection:
        result = connection.execute(text(f"SELECT * FROM {view.name}"))
        assert list(result.keys()) == list(view.columns)


def test__views__version__is_in_the_database(store):
    assert store.query("SELECT version FROM views_version").rows == [(VIEWS_VERSION,)]


def test__sqlite__settings__are_those_of_many_processes(tmp_path):
    with Store.open(str(tmp_path / "search.db")) as store, store.engine.connect() as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragma == {
        "journal_mode": "wal",
        "synchronous": 1,
        "foreign_keys": 1,
        "busy_timeout": 60_000,
    }


def test__open__older_store__says_both_versions_and_the_next_step(store, next_release):
    store_factory.fill(store)
    url = store.engine.url.render_as_string(hide_password=False)
    before = store.rows("demo")
    next_release()
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    message = str(caught.value)
    assert "schema 0004" in message
    assert "needs 0005" in message
    assert caught.value.command == f"search upgrade --store {store.url}"
    assert store.rows("demo") == before

    assert schema.upgrade(url) == schema.Upgrade("0004", "0005")
    assert schema.upgrade(url) == schema.Upgrade("0005", "0005")
    with Store.open(url) as upgraded:
        assert upgraded.rows("demo") == before
        assert upgraded.query("SELECT DISTINCT mood FROM trials").rows == [("good",)]
        assert len(upgraded.leaderboard("demo")) == 4


def test__open__newer_store__refused_unharmed(store, next_release, monkeypatch):
    store_factory.fill(store)
    url = store.engine.url.render_as_string(hide_password=False)
    next_release()
    schema.upgrade(url)
    monkeypatch.undo()
    for call in (Store.open, schema.upgrade):
        with pytest.raises(StoreError) as caught:
            call(url)
        message = str(caught.value)
        assert "schema 0005" in message
        assert "knows up to 0004" in message
        assert "pip install --upgrade mixsearch" in message
    with store.reading() as connection:
        columns = [column["name"] for column in inspect(connection).get_columns("trials")]
        assert "mood" in columns
        assert connection.execute(text("SELECT COUNT(*) FROM trials")).scalar() == 4


def test__upgrade__interrupted_half_way__leaves_the_store_as_it_was(store, next_release):
    store_factory.fill(store)
    url = store.engine.url.render_as_string(hide_password=False)
    folder = next_release()
    script = folder / "versions" / "v0005_mood.py"
    whole = script.read_text()
    script.write_text(whole + "    raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        schema.upgrade(url)
    with store.reading() as connection:
        assert schema.inspect_schema(connection) == schema.Schema("older", "0004")
        columns = [column["name"] for column in inspect(connection).get_columns("trials")]
        assert "mood" not in columns
    assert len(store.leaderboard("demo")) == 4
    script.write_text(whole)
    assert schema.upgrade(url) == schema.Upgrade("0004", "0005")


def test__upgrade__database_of_another_program__left_alone(tmp_path):
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
    connection.execute("INSERT INTO alembic_version VALUES ('0001')")
    connection.commit()
    connection.close()
    content = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        schema.upgrade(str(path))
    assert path.read_bytes() == content


def test__open__empty_place_by_many_processes_at_once__tables_are_made_once(store_url):
    code = (
        "import sys; from search.store.repo import Store; "
        "store = Store.open(sys.argv[1]); store.register_worker()"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", code, store_url], stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, errors
    with Store.open(store_url) as store:
        assert store.query("SELECT COUNT(*) FROM workers").rows == [(4,)]

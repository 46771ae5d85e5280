"""A store of another version or of another program: a clear line, and nothing is touched."""

import shutil
from contextlib import contextmanager

import pytest
import store_factory
from sqlalchemy import inspect, text

from search.errors import NothingThereError, StoreError
from search.store import schema
from search.store.address import parse_address
from search.store.engine import make_engine
from search.store.repo import Store

MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table("moods", sa.Column("id", sa.Integer(), primary_key=True))
"""


@pytest.fixture
def newer(tmp_path):
    """A context in which the installed version is one schema ahead."""
    folder = tmp_path / "newer"
    shutil.copytree(schema.MIGRATIONS, folder)
    (folder / "versions" / "v0005_moods.py").write_text(MIGRATION)

    @contextmanager
    def installed():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(schema, "MIGRATIONS", folder)
            patch.setattr(schema, "HEAD", "0005")
            yield

    return installed


def test__C50__previous_schema__upgrade_works_once_and_keeps_all_rows(ready_url, newer):
    with Store.open(ready_url) as store:
        store_factory.fill(store, seeds=2)
        rows, board = store.rows("demo"), store.leaderboard("demo")
    with newer():
        with pytest.raises(StoreError, match=r"schema 0004, .* needs 0005; upgrade it") as caught:
            Store.open(ready_url)
        assert caught.value.command.startswith("search upgrade --store ")
        assert schema.upgrade(ready_url).changed
        assert not schema.upgrade(ready_url).changed
        with Store.open(ready_url) as store:
            assert store.rows("demo") == rows
            assert store.leaderboard("demo") == board


def test__C50__newer_schema__refused_unharmed_twice(ready_url, newer):
    with Store.open(ready_url) as store:
        store_factory.fill(store)
    with newer():
        schema.upgrade(ready_url)
        with Store.open(ready_url) as store:
            rows = store.rows("demo")
    for call in (Store.open, schema.upgrade, Store.open, schema.upgrade):
        with pytest.raises(StoreError, match=r"schema 0005, .* up to 0004; .*pip install"):
            call(ready_url)
    with newer(), Store.open(ready_url) as store:
        assert store.rows("demo") == rows


def test__C50__empty_database__filled_by_the_first_run_only(store_url):
    with pytest.raises(NothingThereError) as caught:
        Store.open(store_url, create=False)
    assert "search run" in caught.value.command
    assert schema.upgrade(store_url).changed
    assert not schema.upgrade(store_url).changed
    with Store.open(store_url, create=False) as store:
        assert store.studies() == []


def test__C50__database_of_another_program__refused_unharmed_twice(store_url):
    address = parse_address(store_url)
    engine = make_engine(address)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE trials (id INTEGER PRIMARY KEY, note TEXT)"))
        connection.execute(text("INSERT INTO trials VALUES (7, 'theirs')"))
    for call in (Store.open, schema.upgrade, Store.open, schema.upgrade):
        with pytest.raises(StoreError, match="another program and was left as it is"):
            call(store_url)
    with engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["trials"]
        assert connection.execute(text("SELECT * FROM trials")).all() == [(7, "theirs")]
    engine.dispose()

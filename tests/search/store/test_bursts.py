"""When a connection to PostgreSQL is kept, and when it is given back."""

import time
from collections.abc import Iterator

import pytest
from sqlalchemy import event
from store_fixtures import copied_store

from search.store import bursts
from search.store.repo import Store

pytestmark = pytest.mark.postgres

LONG_S = 3600.0


@pytest.fixture
def counted(tmp_path) -> Iterator[tuple[Store, list[str]]]:
    """A store, and what happens to its connections from now on."""
    with Store.open(copied_store("postgresql", tmp_path)) as store:
        store.engine.dispose()  # what opening has left
        happened: list[str] = []
        for what in ("connect", "close"):
            event.listen(store.engine, what, lambda *_, what=what: happened.append(what))
        yield store, happened


def backend(store: Store) -> int:
    with store.reading() as connection:
        return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()


def test__burst__its_transactions_share_a_connection(counted, monkeypatch):
    store, _ = counted
    monkeypatch.setattr(bursts, "KEPT_S", LONG_S)
    assert len({backend(store) for _ in range(5)}) == 1


def test__burst__after_two_at_once__goes_on_with_one_connection(counted, monkeypatch):
    store, _ = counted
    monkeypatch.setattr(bursts, "KEPT_S", LONG_S)
    with store.reading(), store.reading():
        pass
    assert len({backend(store) for _ in range(5)}) == 1


def test__transaction_alone__its_connection_is_closed_with_it(counted, monkeypatch):
    store, happened = counted
    monkeypatch.setattr(bursts, "KEPT_S", 0.0)
    store.studies()
    del happened[:]
    store.studies()
    assert happened == ["connect", "close"]


def test__burst_over__its_connections_are_closed_and_the_next_one_connects_again(
    counted, monkeypatch
):
    store, happened = counted
    monkeypatch.setattr(bursts, "KEPT_S", 0.05)
    with store.reading(), store.reading():
        pass
    end = time.monotonic() + 60
    while happened.count("close") < 2:
        assert time.monotonic() < end, happened
        time.sleep(0.01)
    assert store.studies() == []
    assert happened.count("connect") == 3

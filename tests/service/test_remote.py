"""A store behind the service reads as the store itself."""

import json
import socket
from collections.abc import Iterator

import pytest
import store_factory
from command import call
from served import make_token, server_of

from search.errors import InputError, NothingThereError, StoreError
from search.remote import RemoteStore
from search.store.repo import Store
from search.store.views import VIEWS


@pytest.fixture
def both(filled: str) -> Iterator[tuple[Store, RemoteStore]]:
    with Store.open(filled) as store:
        store_factory.fill(store, "a/b 5%", training_key="k1")
        with server_of(filled) as (base, _), RemoteStore(base) as remote:
            yield store, remote


def test__remote_store__every_reading__equals_the_store(both) -> None:
    store, remote = both
    assert remote.studies() == store.studies()
    assert remote.study("demo") == store.study(1)
    for curves, documents in ((True, True), (False, False)):
        asked = {"curves": curves, "documents": documents}
        assert remote.rows("demo", **asked) == store.rows("demo", **asked)
    assert remote.trial(3) == json.loads(json.dumps(store.trial(3)))
    assert remote.leaderboard("demo", 2) == store.leaderboard("demo", 2)
    for view in VIEWS:
        for study in (None, "demo"):
            assert remote.view(view.name, study) == store.view(view.name, study)
    assert remote.events(4, study="demo", limit=3) == store.events(4, study="demo", limit=3)
    sql = "SELECT code, mean, NULL AS absent FROM leaderboard"
    assert remote.query(sql, limit=2) == store.query(sql, limit=2)
    store.record_look(1, 4)
    assert remote.looks("demo") == store.looks("demo") == (4,)


def test__remote_store__what_is_wrong__is_the_stores_own_error(both) -> None:
    _, remote = both
    with pytest.raises(NothingThereError, match="did you mean demo"):
        remote.study("demi")
    with pytest.raises(NothingThereError):
        remote.trial(999)
    with pytest.raises(InputError, match="only reading is allowed"):
        remote.query("DELETE FROM trials")
    with pytest.raises(StoreError):
        remote.record_look(1, 9)
    # A service ends idle connections; the next request makes another.
    [(_, connection)] = remote.idle
    connection.sock.shutdown(socket.SHUT_RDWR)
    assert remote.study("demo").id == 1
    for url in ("demo.db", "ftp://x", "http://u:p@x", "http://"):
        with pytest.raises(InputError):
            RemoteStore(url)
    with pytest.raises(InputError):
        RemoteStore("http://localhost", "a\r\nX: b")


def test__remote_store__nobody_there__is_a_store_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    remote = RemoteStore(f"http://127.0.0.1:{port}")
    with pytest.raises(StoreError, match="does not answer"):
        remote.studies()


COMMANDS = [
    ["ls", "--json"],
    ["show", "demo", "--json"],
    ["show", "demo", "2", "--json"],
    ["best", "demo", "--json"],
    ["compare", "demo", "other", "--json"],
    ["report", "demo", "--json"],
    ["query", "SELECT number, selection FROM trials_flat ORDER BY trial"],
    ["export", "demo", "--view", "leaderboard"],
]


def test__commands__with_server__print_what_they_print_of_the_store(
    filled: str, capsys, monkeypatch, tmp_path
) -> None:
    with Store.open(filled) as store:
        store_factory.fill(store, "other", training_key="k1")
    direct = [call(capsys, *words, "--store", filled).out for words in COMMANDS]
    assert all(direct)
    token = make_token(filled, "read")
    with server_of(filled) as (base, _):
        refused = call(capsys, "ls", "--server", base)
        assert refused.code == 2
        assert "SEARCH_TOKEN" in refused.error_line
        monkeypatch.setenv("SEARCH_TOKEN", token)
        remote = [call(capsys, *words, "--server", base).out for words in COMMANDS]
        drawn = call(capsys, "plot", "demo", "--server", base, "-o", f"{tmp_path}/demo.html")
        told = call(capsys, "report", "demo", "--server", base).out
    assert remote == direct
    assert drawn.code == 0
    assert (tmp_path / "demo.html").stat().st_size > 10_000
    assert f"search show demo --server {base}" in told
    assert "search confirm" not in told

"""Live events: every one once, over restarts, with idle streams that hold nothing."""

import http.client
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
import store_factory
from served import API, client_of, make_token, server_of

from search.store import tokens
from search.store.repo import Store
from service import hub

PATIENCE_S = 60
LONG_BEAT_S = 600.0
"""Longer than any test waits: only what happens, or the end, ends a silence."""


class Stream:
    """A reader of an event stream: what came so far, field by field."""

    def __init__(self, base: str, query: str = "", **headers: str) -> None:
        place = urlsplit(base)
        assert place.hostname is not None
        self.connection = http.client.HTTPConnection(place.hostname, place.port, timeout=PATIENCE_S)
        self.connection.request("GET", f"{API}/events/stream{query}", headers=headers)
        self.response = self.connection.getresponse()

    def frame(self) -> dict[str, str]:
        """The next frame; a comment is the field ``."""
        found: dict[str, str] = {}
        while line := self.response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(":")
            found[name] = value.removeprefix(" ")
        return found

    def events(self, n: int) -> list[int]:
        """The ids of the next n events; comments are skipped."""
        found: list[int] = []
        while len(found) < n:
            frame = self.frame()
            assert frame or not self.response.isclosed(), found
            if "data" in frame:
                assert json.loads(frame["data"])["id"] == int(frame["id"])
                found.append(int(frame["id"]))
        return found

    def close(self) -> None:
        """Cut the connection."""
        self.response.close()
        self.connection.close()


@contextmanager
def streaming(base: str, query: str = "", **headers: str) -> Iterator[Stream]:
    stream = Stream(base, query, **headers)
    try:
        yield stream
    finally:
        stream.close()


def happen(store: Store, times: int) -> list[int]:
    """Let something happen; returns the ids of the events."""
    study = store.study("demo")
    newest = max((event["id"] for event in store.events(limit=10_000)), default=0)
    for index in range(times):
        store.set_study_state(study.id, "running", f"{index}")
    return [event["id"] for event in store.events(newest)]


def eventually(condition: Any) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def store(filled: str) -> Iterator[Store]:
    with Store.open(filled) as opened:
        yield opened


def test__stream__reader_that_resumes_over_a_restart__gets_each_event_once(
    filled: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "BATCH", 5)
    with server_of(filled) as (base, _), streaming(base) as stream:
        opening = stream.frame()
        assert int(opening["retry"]) > 0
        first = happen(store, 3)
        assert stream.events(3) == first
    missed = happen(store, 12)  # more than one look gives
    with server_of(filled) as (base, _):
        with streaming(base, **{"Last-Event-ID": str(first[-1])}) as stream:
            assert stream.events(12) == missed
            later = happen(store, 2)
            assert stream.events(2) == later
        with streaming(base, f"?after={missed[-1]}&study=demo") as stream:
            assert stream.events(2) == later


def test__stream__idle__beats_and_says_where_it_is(filled: str, store: Store) -> None:
    newest = store.events(limit=10_000)[-1]["id"]
    with server_of(filled) as (base, _), streaming(base) as stream:
        assert int(stream.frame()["id"]) == newest
        assert stream.frame() == {"": "beat"}


def test__fifty_streams__most_of_them_cut__hold_nothing_and_do_not_delay_the_end(
    filled: str, store: Store
) -> None:
    with ExitStack() as open_streams:
        with server_of(filled, threads=2, beat_s=LONG_BEAT_S) as (base, app):
            streams = [open_streams.enter_context(streaming(base)) for _ in range(50)]
            for stream in streams:
                stream.frame()
            readers, pool = app.state.hub, app.state.store.engine.pool
            assert readers.readers == 50
            eventually(lambda: pool.checkedout() == 0)
            for path in ("health", "ready", "studies"):  # two threads: a stream has none
                with urllib.request.urlopen(f"{base}{API}/{path}", timeout=PATIENCE_S) as answer:
                    assert answer.status == 200
            for stream in streams[:40]:
                stream.close()
            eventually(lambda: readers.readers == 10)
            expected = happen(store, 2)
            for stream in streams[40:]:
                assert stream.events(2) == expected
        assert readers.readers == 0
        for stream in streams[40:]:
            stream.response.read()  # ended in good order; one that is cut raises IncompleteRead


def test__stream__token_revoked_meanwhile__ends(filled: str, store: Store) -> None:
    token = make_token(filled, "read", "ada")
    shown = {"Authorization": f"Bearer {token}"}
    with server_of(filled) as (base, app), streaming(base, **shown) as stream:
        stream.frame()
        with store.writing() as connection:
            tokens.revoke(connection, "ada")
        eventually(lambda: app.state.hub.readers == 0)


def test__stream__while_much_happens__still_beats_and_ends_with_its_token(
    filled: str, store: Store
) -> None:
    token = make_token(filled, "read", "ada")
    other = store_factory.fill(store, "other", training_key="k2")
    shown = {"Authorization": f"Bearer {token}"}
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(0.001):
            store.set_study_state(other, "running", "again")

    busy = threading.Thread(target=go_on)
    with server_of(filled) as (base, app), ExitStack() as streams:
        busy.start()
        streams.callback(busy.join)
        streams.callback(ended.set)
        for query in ("", "?study=demo"):  # the second one is woken for nothing
            stream = streams.enter_context(streaming(base, query, **shown))
            while stream.frame() != {"": "beat"}:
                assert not stream.response.isclosed()
        with store.writing() as connection:
            tokens.revoke(connection, "ada")
        eventually(lambda: app.state.hub.readers == 0)


def test__stream__reader_far_behind__gets_what_is_not_kept_any_more(
    filled: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "RECENT", 3)
    with server_of(filled) as (base, app), streaming(base) as first:
        first.frame()
        expected = happen(store, 8)
        assert first.events(8) == expected
        assert len(app.state.hub.recent) == 3
        with streaming(base, f"?after={expected[0]}&study=demo") as second:
            assert second.events(7) == expected[1:]
            later = happen(store, 2)
            assert second.events(2) == later
        assert first.events(2) == later


def test__stream__too_many_or_wrong__is_a_problem_document(filled: str) -> None:
    with server_of(filled, streams=1) as (base, _), streaming(base) as stream:
        stream.frame()
        for query, headers, status in (
            ("", {}, 429),
            ("?after=-1", {}, 422),
            ("", {"Last-Event-ID": "x"}, 422),
            ("", {"Last-Event-ID": "1\t2"}, 422),
        ):
            with streaming(base, query, **headers) as refused:
                assert refused.response.status == status
                assert json.load(refused.response)["status"] == status


def test__list__after_an_id__is_what_the_store_has(filled: str, store: Store) -> None:
    with client_of(filled) as client:
        found = client.get(f"{API}/events", params={"after": 3, "study": "demo", "limit": 5}).json()
        assert found == json.loads(json.dumps(store.events(3, limit=5)))
        assert client.get(f"{API}/events", params={"study": "nothing"}).status_code == 404


def test__slow_body__of_a_client_that_stops_sending__is_given_up(filled: str) -> None:
    with server_of(filled, body_s=0.2) as (base, _):
        place = urlsplit(base)
        with socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S) as slow:
            slow.sendall(
                f"POST {API}/query HTTP/1.1\r\nHost: localhost\r\n"
                "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
            )
            assert slow.recv(4096).startswith(b"HTTP/1.1 408")


def test__header__that_does_not_end__is_refused_before_it_is_long(filled: str) -> None:
    with server_of(filled) as (base, _):
        place = urlsplit(base)
        with socket.create_connection((place.hostname, place.port), timeout=PATIENCE_S) as endless:
            endless.sendall(f"GET {API}/health HTTP/1.1\r\nX: {'a' * 40_000}".encode())
            assert endless.recv(4096).startswith(b"HTTP/1.1 400")

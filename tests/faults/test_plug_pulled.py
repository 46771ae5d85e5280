"""PostgreSQL falls silent: its machine lost its power, or the network swallows all that is sent."""

import threading
import time
from urllib.parse import urlencode

import plug
import pytest
import store_factory as factory
from sqlalchemy import make_url

from search.errors import StoreAwayError
from search.store import engine
from search.store.health import blocked
from search.store.repo import Store

pytestmark = pytest.mark.postgres

SILENT_S = 3
SOON = {
    "keepalives_idle": 1,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": 1000 * SILENT_S,
}
PATIENCE_S = 60.0


@pytest.fixture
def machine(server):
    """A machine on a cable, which passes on to the server."""
    reason = plug.why_not()
    if reason is not None:
        pytest.skip(reason)
    with plug.machine(server.socket) as made:
        yield made


@pytest.fixture
def near(server):
    """A store on this side of the cable."""
    with Store.open(server.url(server.create_database())) as store:
        yield store


@pytest.fixture
def far(near, server, machine, monkeypatch):
    """The same store behind the cable, which counts as away after seconds of silence."""
    monkeypatch.setattr(engine, "LIVELINESS", {**engine.LIVELINESS, **SOON})
    database = near.address.url.database
    with Store.open(
        f"postgresql://{server.user}@{machine.host}:{machine.port}/{database}"
    ) as store:
        yield store


def test__plug_pulled__who_waits_for_an_answer_hears_that_the_store_is_away(near, far, machine):
    study_id = near.ensure_study("plug", factory.study_spec(), factory.PLUGINS).id
    with near.writing(study_id):
        waiting, ends = in_background(lambda: far.ask_budget(study_id, "8"))
        wait_until_blocked(near)
        machine.pull()
        waiting.join(PATIENCE_S)
        assert [type(end) for end in ends] == [StoreAwayError], ends
    machine.plug_in()
    far.ask_budget(study_id, "9")
    assert near.study(study_id).budget == "9"


def test__plug_pulled__who_sends_hears_that_the_store_is_away(near, far, machine):
    study_id = near.ensure_study("plug", factory.study_spec(), factory.PLUGINS).id
    worker = far.register_worker()
    claim = factory.claim_and_commit(far, study_id, worker, "attention*2")
    machine.pull()  # in a burst, whose connection is still open
    beating, ends = in_background(lambda: far.heartbeat(claim))
    beating.join(PATIENCE_S)
    assert [type(end) for end in ends] == [StoreAwayError], ends
    machine.plug_in()
    assert far.heartbeat(claim) == "running"


def test__plug_pulled_for_some_seconds__workers_wait_and_nothing_is_lost(server, machine, begun):
    place = f"{machine.host}:{machine.port}/{make_url(begun.url).database}?{urlencode(SOON)}"
    begun.start(2, url=f"postgresql://{server.user}@{place}", FAULT_STEP_S=0.1)
    begun.wait_for_trials(1)
    machine.pull()
    time.sleep(2 * SILENT_S)
    machine.plug_in()
    ends = begun.ends()
    assert [code for code, _ in ends] == [0, 0], ends
    assert {document["state"] for document in begun.finish()} == {"completed"}


def test__writer_gone_in_mid_transaction__its_locks_go_to_the_next(near, monkeypatch):
    monkeypatch.setattr(engine, "IDLE_WRITER_S", 1)
    study_id = near.ensure_study("plug", factory.study_spec(), factory.PLUGINS).id

    def write_late():
        with near.writing(study_id) as connection:
            waiting, ends = in_background(lambda: near.ask_budget(study_id, "8"))
            waiting.join(PATIENCE_S)
            assert ends == [None], ends
            connection.exec_driver_sql("SELECT 1")

    with pytest.raises(StoreAwayError):
        write_late()
    assert near.study(study_id).budget == "8"


def in_background(call):
    """Call in a thread; returns it, and a list that holds how it ended once it has."""
    ends = []

    def run():
        try:
            ends.append(call())
        except Exception as error:
            ends.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, ends


def wait_until_blocked(store):
    """Wait until somebody waits for a lock."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        with store.reading() as connection:
            if blocked(connection):
                return
        time.sleep(0.05)
    raise TimeoutError("nobody waits for a lock")

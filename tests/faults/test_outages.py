"""PostgreSQL goes away in the midst of everything: workers wait, and nothing is lost."""

import time

import psycopg
import pytest
from crew import Sizes
from cut_proxy import CutProxy

from search.store.repo import Store
from search.workers.spool import ENDING

pytestmark = pytest.mark.postgres

FULL = """
CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
END $$;
CREATE TRIGGER disk_full BEFORE INSERT OR UPDATE ON attempts EXECUTE FUNCTION disk_full();
"""


@pytest.mark.parametrize(("mode", "seconds"), [("fast", 0.0), ("fast", 4.0), ("immediate", 2.0)])
def test__server_stopped_and_started__workers_wait_and_nothing_is_lost(
    server, begun, mode, seconds
):
    begun.start(2, FAULT_STEP_S=0.1)
    begun.wait_for_trials(1)
    server.stop(mode)
    time.sleep(seconds)
    server.start()
    ends = begun.ends()
    assert [code for code, _ in ends] == [0, 0], ends
    documents = begun.finish()
    assert {document["state"] for document in documents} == {"completed"}


def test__network_cut_for_some_seconds__workers_wait_and_nothing_is_lost(server, begun):
    proxy = CutProxy(server.socket)
    try:
        database = begun.url.split("?")[0].split("/")[-1]
        begun.start(
            2,
            url=f"postgresql://{server.user}@127.0.0.1:{proxy.port}/{database}",
            FAULT_STEP_S=0.1,
        )
        begun.wait_for_trials(1)
        proxy.cut()
        time.sleep(4.0)
        proxy.mend()
        ends = begun.ends()
        assert [code for code, _ in ends] == [0, 0], ends
    finally:
        proxy.close()
    begun.finish()


def test__disk_of_the_server_full__workers_wait_and_go_on_once_there_is_room(server, begun):
    begun.start(2, FAULT_STEP_S=0.1)
    begun.wait_for_trials(1)
    with Store.open(begun.url) as store, store.engine.begin() as connection:
        connection.exec_driver_sql(FULL)
    begun.wait(
        lambda: any(begun.folder.glob(f"files/**/*{ENDING}")), "a result waits on the worker's disk"
    )
    with Store.open(begun.url) as store, store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER disk_full ON attempts")
    assert [code for code, _ in begun.ends()] == [0, 0]
    assert {document["state"] for document in begun.finish()} == {"completed"}


def test__trainings_under_way__no_connection_is_held(server, begun):
    begun.budget, go_on = 2, begun.folder / "go on"
    begun.sizes = Sizes(beat_s=2.0, lease_s=90.0, longest_s=180.0)
    database = begun.url.split("?")[0].split("/")[-1]
    begun.start(2, FAULT_UNTIL=go_on)
    begun.wait_for_hands(2)
    with psycopg.connect(
        host=str(server.folder), user=server.user, dbname=database, autocommit=True
    ) as own:

        def others() -> int:
            [(n,)] = own.execute(
                "SELECT count(*) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return n

        def beats() -> list:
            return own.execute("SELECT heartbeat_at FROM attempts ORDER BY trial_id").fetchall()

        begun.wait(lambda: others() == 0, "every connection is given back")
        first = beats()
        begun.wait(lambda: not set(first) & set(beats()), "both give a sign of life")
        begun.wait(lambda: others() == 0, "that connection is given back as well")
    go_on.touch()
    assert [code for code, _ in begun.ends()] == [0, 0]
    begun.finish(lost=0)

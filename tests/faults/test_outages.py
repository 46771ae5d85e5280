"""PostgreSQL goes away in the midst of everything: workers wait, and nothing is lost."""

import time

import pytest
from cut_proxy import CutProxy

pytestmark = pytest.mark.postgres


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

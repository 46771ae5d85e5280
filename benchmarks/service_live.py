"""What `search serve` costs while it is watched: from an event to the screen, and streams."""

import http.client
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from browser import BROWSER, launched, opened

from search.store.repo import Store

PROGRAM = [sys.executable, "-P", "-c", "from search.cli import main; main()"]
EVENTS = 12
BETWEEN_S = 1.5  # an event after a quiet while, as a trial's end is


@contextmanager
def serving(url: str) -> Iterator[tuple[str, int]]:
    """The service as a process of its own: its address and process id."""
    command = [*PROGRAM, "serve", "--store", url, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        try:
            yield next(word for word in said.split() if word.startswith("http://")), process.pid
        finally:
            process.terminate()


def memory_mb(pid: int) -> float:
    """Resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def open_stream(address: str) -> http.client.HTTPConnection:
    """A reader of the events that has read the beginning."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
    connection.request("GET", "/api/v1/events/stream")
    connection.getresponse().readline()
    return connection


def to_screen(address: str, url: str, study: str) -> list[float]:
    """Seconds from events, each a changed state of the study, to the badge that shows them."""
    found = []
    with launched() as browser, opened(browser) as page, Store.open(url) as store:
        page.goto(f"{address}/studies/{study}/trials")
        study_id = store.study(study).id
        badge = "document.querySelector('#live-head .badge').textContent"
        for _ in range(EVENTS // 2):
            for wish, shown in (("paused", "paused"), ("running", "idle")):
                time.sleep(BETWEEN_S)
                begin = time.perf_counter()
                store.change_state(study_id, wish)
                # Asked on the page itself: a question from here would come late.
                page.evaluate(
                    f"new Promise(done => {{ const look = () => {badge} === '{shown}' ? done(1)"
                    " : requestAnimationFrame(look); look(); })"
                )
                found.append(time.perf_counter() - begin)
    return found


def live_table(url: str, study: str, n_streams: int) -> Iterator[str]:
    """The lines about a running service."""
    with serving(url) as (address, pid), ExitStack() as streams:
        if BROWSER is not None:
            times = to_screen(address, url, study)
            yield (
                "From an event in the store to the page that shows it, in Chromium: "
                f"{statistics.median(times):.2f} s in the middle of {len(times)}, "
                f"{max(times):.2f} s at most."
            )
        before = memory_mb(pid)
        for _ in range(n_streams):
            streams.callback(open_stream(address).close)
        time.sleep(1.0)
        yield (
            f"Memory of the service: {before:.0f} MB, with {n_streams} open streams "
            f"{memory_mb(pid):.0f} MB."
        )
        yield ""

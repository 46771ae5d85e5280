"""Times the service over a large study: pages and routes, event to screen, memory of open streams.

    PYTHONPATH=tests/support python -m benchmarks.service [--trials N ...] [--repeat K]
        [--streams N] [--optuna-dashboard PROGRAM] [--out FILE]

Fills a new store with made-up trials of 12 layers, opens every page and route once, then asks for
each in turn and prints tables. The processor's time is that of this process, which a busy machine
disturbs less. A page is what the server sends, all figures' data included, without
`plotly.min.js`, which a browser keeps for good. Then `search serve` as a process of its own: from
an event in the store to the page that shows it, in Chromium, and its memory with open streams.
With `--optuna-dashboard` the trials of the smallest study are written into a study of Optuna, and
that program is asked for them. `--trials 10000 100000` shows how pages grow.

Targets at 10,000 trials: at most 300 KB and 300 ms a page at the 95 % point, an event on the
screen within 1 s.
"""

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import store_factory as factory
from served import API, client_of
from sqlalchemy import text
from starlette.testclient import TestClient

from benchmarks.service_live import live_table
from benchmarks.service_peer import peer_table
from benchmarks.store import N_LAYERS, PATIENCE_S, fill
from search.store.repo import Store

STUDY = "large"
PAGES = {
    "studies": "/studies",
    "a study": f"/studies/{STUDY}",
    "trials, newest": f"/studies/{STUDY}/trials",
    "trials by quality": f"/studies/{STUDY}/trials?sort=selection",
    "trials, the last page": f"/studies/{STUDY}/trials?sort=selection&page={{last}}",
    "trials of one state": f"/studies/{STUDY}/trials?state=failed",
    "leaderboard": f"/studies/{STUDY}/leaderboard",
    "leaderboard by latency": f"/studies/{STUDY}/leaderboard?sort=latency_s",
    "a trial": f"/studies/{STUDY}/trials/7",
    "settings": f"/studies/{STUDY}/spec",
    "SQL": "/query?sql=SELECT%20*%20FROM%20leaderboard%20WHERE%20place%20%3C%3D%20100",
    "compare": "/compare",
    "mixers": "/mixers",
    "new study": "/submit",
}
ROUTES = {
    "studies": f"{API}/studies",
    "study": f"{API}/studies/{STUDY}",
    "trials": f"{API}/studies/{STUDY}/trials",
    "trials by quality": f"{API}/studies/{STUDY}/trials?sort=-selection",
    "leaderboard": f"{API}/studies/{STUDY}/leaderboard",
    "pareto": f"{API}/studies/{STUDY}/pareto",
    "best": f"{API}/studies/{STUDY}/best",
    "answer": f"{API}/studies/{STUDY}/answer",
    "trial": f"{API}/trials/7",
    "curve": f"{API}/trials/7/points",
    "events": f"{API}/events?study={STUDY}",
    "workers": f"{API}/workers",
    "ready": f"{API}/ready",
}
TIMINGS = (
    "UPDATE costs SET latency_s_low = 0.9 * latency_s, latency_s_high = 1.1 * latency_s, "
    "latency_n = 20, latency_batch_size = 1, seq_len = 64, device = 'cpu', dtype = 'float32'"
)


def large_store(folder: Path, n: int) -> str:
    """A store with a study of n completed trials."""
    url = f"sqlite:///{folder}/search.db"
    spec = factory.study_spec(
        encoder={"d_model": 32, "n_layers": N_LAYERS, "d_ff": 64},
        space={"choices": ["attention", "sepconv", "average"]},
    )
    with Store.open(url) as store:
        study = store.ensure_study(STUDY, spec, factory.PLUGINS)
        fill(store, study.id, n)
        with store.writing() as connection:
            connection.execute(text(TIMINGS))
    return url


def wait_for_answer(client: TestClient) -> float:
    """Asks for the study's page until its answer stands there; returns processor seconds."""
    start = time.process_time()
    while "data-pending" in client.get(PAGES["a study"]).text:
        time.sleep(0.1)
    return time.process_time() - start


def timed(client: TestClient, path: str, repeat: int) -> tuple[int, list[float], list[float]]:
    """Bytes of a page, and its milliseconds by the clock and of this process's processors."""
    size, walls, cpus = 0, [], []
    for _ in range(repeat):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = client.get(path)
        walls.append(1e3 * (time.perf_counter() - wall))
        cpus.append(1e3 * (time.process_time() - cpu))
        assert answer.status_code == 200, (path, answer.status_code)
        size = len(answer.content)
    return size, walls, cpus


def point(times: list[float], share: float) -> str:
    """A point of the times below which a share of them lies, in whole milliseconds."""
    return f"{sorted(times)[min(len(times) - 1, round(share * len(times)))]:.0f}"


def table(client: TestClient, title: str, paths: dict[str, str], repeat: int) -> Iterator[str]:
    """The lines of a table of addresses."""
    yield f"| {title} | KB | clock: median | 95 % | processor: median | 95 % |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, path in paths.items():
        client.get(path)
        size, *clocks = timed(client, path, repeat)
        cells = [point(times, share) for times in clocks for share in (0.5, 0.95)]
        yield f"| {name} | {size / 1e3:.0f} | {' | '.join(cells)} |"
    yield ""


def tables(n: int, options: argparse.Namespace) -> Iterator[str]:
    """All lines about a study of n trials."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = large_store(folder, n)
        yield f"## {n:,} trials"
        yield ""
        with client_of(url, query_s=PATIENCE_S) as client:
            first = client.get(PAGES["a study"])
            yield (
                f"The first answer takes {wait_for_answer(client):.1f} s of the processor beside "
                f"the requests; meanwhile the page ({len(first.content) / 1e3:.0f} KB) says that "
                "it is being made."
            )
            yield ""
            last = -(-n // 50)
            pages = {label: path.format(last=last) for label, path in PAGES.items()}
            yield from table(client, "page", pages, options.repeat)
            yield from table(client, "route", ROUTES, options.repeat)
        yield from live_table(url, STUDY, options.streams)
        if options.optuna_dashboard is not None and n == min(options.trials):
            yield from peer_table(url, STUDY, folder, options.optuna_dashboard)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, nargs="+", default=[10_000])
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--optuna-dashboard", type=Path, default=None, metavar="PROGRAM")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    lines = [
        "# The service over a large study",
        "",
        f"`PYTHONPATH=tests/support python -m benchmarks.service --trials "
        f"{' '.join(map(str, options.trials))} --repeat {options.repeat}` on "
        f"{os.cpu_count()} cores ({platform.machine()}), SQLite. Milliseconds. Pages and routes "
        "are asked for in turn, one request at a time, through the application in this process; "
        "other programs lengthen the times of the clock, hardly those of the processor: "
        f"the load average was {os.getloadavg()[0]:.0f} at the start",
    ]
    found = []
    for n in options.trials:
        for line in tables(n, options):
            print(line, flush=True)
            found.append(line)
    lines[-1] += f" and {os.getloadavg()[0]:.0f} at the end."
    if options.out is not None:
        page = "\n".join([*lines, "", *found]).rstrip() + "\n"
        options.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

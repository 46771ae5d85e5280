"""Times the pages over a large study: size, median and 95 % point of each.

    PYTHONPATH=tests/support python -m benchmarks.pages [--trials N ...] [--repeat K] [--out FILE]

Fills a new store with made-up trials of 12 layers, opens every page once, then asks for each page
in turn and prints a table. The processor's time is that of this process, which a busy machine
disturbs less. A page is what the server sends, all figures' data included, without
`plotly.min.js`, which a browser keeps for good. Targets at 10,000 trials: at most 300 KB and 300 ms
at the 95 % point.
"""

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import store_factory as factory
from served import client_of
from sqlalchemy import text
from starlette.testclient import TestClient

from benchmarks.store import N_LAYERS, fill
from search.store.repo import Store

STUDY = "large"
PATHS = {
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
    """Asks for the study's page until its answer stands there; returns the seconds."""
    start = time.perf_counter()
    while "data-pending" in client.get(PATHS["a study"]).text:
        time.sleep(0.1)
    return time.perf_counter() - start


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


def table(n: int, repeat: int) -> Iterator[str]:
    """The lines of the table of a study of n trials."""
    with tempfile.TemporaryDirectory() as folder:
        url = large_store(Path(folder), n)
        with client_of(url) as client:
            first = client.get(PATHS["a study"])
            answer_s = wait_for_answer(client)
            yield f"## {n:,} trials"
            yield ""
            yield (
                f"The first answer took {answer_s:.1f} s beside the requests; meanwhile the page "
                f"({len(first.content) / 1e3:.0f} KB) says that it is being made."
            )
            yield ""
            yield "| page | KB | clock: median | 95 % | processor: median | 95 % |"
            yield "|---|---:|---:|---:|---:|---:|"
            for name, path in PATHS.items():
                client.get(path.format(last=-(-n // 50)))
                size, *clocks = timed(client, path.format(last=-(-n // 50)), repeat)
                cells = [point(times, share) for times in clocks for share in (0.5, 0.95)]
                yield f"| {name} | {size / 1e3:.0f} | {' | '.join(cells)} |"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, nargs="+", default=[10_000])
    parser.add_argument("--repeat", type=int, default=40)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    lines = [
        "# Pages of the dashboard",
        "",
        f"`PYTHONPATH=tests/support python -m benchmarks.pages --trials "
        f"{' '.join(map(str, options.trials))} --repeat {options.repeat}` on "
        f"{os.cpu_count()} cores ({platform.machine()}), SQLite. Milliseconds. Each page is asked "
        "for in turn, one request at a time, through the application in this process. The load "
        f"average was {load:.0f} at the start: other programs of the machine lengthen the times "
        "of the clock, hardly those of the processor.",
        "",
    ]
    for n in options.trials:
        for line in table(n, options.repeat):
            print(line, flush=True)
            lines.append(line)
        lines.append("")
    if options.out is not None:
        options.out.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

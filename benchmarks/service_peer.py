"""The same trials in a study of Optuna, and what optuna-dashboard takes to show them."""

import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial, create_trial

from search.store.repo import Store

PATIENCE_S = 600


def mirrored(url: str, study: str) -> Iterator[FrozenTrial]:
    """The completed trials as Optuna keeps them."""
    with Store.open(url) as store:
        for row in store.rows(study, curves=True):
            choices = tuple(dict.fromkeys(("attention", "sepconv", "average", *row.mixers)))
            names = [f"layer_{layer}" for layer in range(len(row.mixers))]
            yield create_trial(
                value=row.selection["loss"],
                params=dict(zip(names, row.mixers, strict=True)),
                distributions={name: CategoricalDistribution(choices) for name in names},
                intermediate_values=dict(row.curve),
            )


def asked(address: str) -> tuple[float, float]:
    """Seconds and kilobytes of an answer."""
    begin = time.perf_counter()
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
        size = len(answer.read())
    return time.perf_counter() - begin, size / 1e3


def peer_table(url: str, study: str, folder: Path, program: Path) -> Iterator[str]:
    """The lines about optuna-dashboard."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = f"sqlite:///{folder}/optuna.db"
    made = optuna.create_study(storage=storage, study_name=study)
    made.add_trials(mirrored(url, study))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, storage, "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as peer:
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(address)
            route = f"{address}/api/studies/{made._study_id}?after=0"
            (first, size), (again, _) = asked(route), asked(route)
        finally:
            peer.terminate()
    yield (
        f"optuna-dashboard on the same trials sends {size / 1e3:.1f} MB for a study's page: "
        f"{first:.1f} s the first time, {again:.1f} s the second."
    )
    yield ""


def wait_for(address: str) -> None:
    """Waits until a server answers."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            asked(address)
            return
        except URLError:
            time.sleep(0.2)

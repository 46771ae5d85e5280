"""`search worker --on ray`: the same worker in Ray actors, one slot each; the store decides."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from search.engine.stopping import StopFlag, stop_on_signals
from search.errors import InputError

if TYPE_CHECKING:
    from search.engine.observer import RunObserver

LOOK_S = 0.5
CONNECT_S = 10.0
GIVEN_ON = ("SEARCH_", "PGPASSWORD", "PGPASSFILE", "HF_")
"""Variables that the actors get from whoever starts them."""


class RayWorker:
    """The body of an actor: `work` runs in one thread, `stop` is heard in another."""

    def __init__(self) -> None:
        self.flag = StopFlag()

    def work(
        self, url: str, server: str | None, token: str | None, study: str | None, until_idle: bool
    ) -> int:
        """Pulls trials until told to end; returns how many were started."""
        from search.settings import settings
        from search.workers.opening import open_for_work
        from search.workers.pull import pull

        with open_for_work(url, server, token) as store:
            return pull(
                store, settings(), study=study, slots=1, until_idle=until_idle, stop=self.flag
            )

    def stop(self, reason: str) -> None:
        """Asks `work` to save what is in hand and end."""
        self.flag.ask(reason)


def pull_on_ray(
    url: str,
    *,
    server: str | None,
    token: str | None,
    address: str | None,
    slots: int | None,
    study: str | None,
    until_idle: bool,
    observer: RunObserver,
    stop: StopFlag,
) -> int:
    """Keeps actors at work on a Ray cluster until told to end; returns the trials they started.

    Args:
        url: The store, as the machines of the cluster reach it.
        server: A service before it, as they reach that; the store itself if None.
        token: What the service is shown.
        address: The cluster's; one of this machine alone is started if None.
        slots: Actors; by default one for each GPU of the cluster, or one for each machine.
        study: Work on this study only.
        until_idle: End when no study has work.
        observer: Told what happens.
        stop: Ends the work from outside; Ctrl-C and SIGTERM set it too.

    Raises:
        InputError: Ray is not installed, or there is no cluster at the address.
    """
    ray = connected(address)
    try:
        gpus = int(ray.cluster_resources().get("GPU", 0))
        n = slots or gpus or sum(node["Alive"] for node in ray.nodes())
        actor = ray.remote(
            num_gpus=1 if gpus else 0,
            num_cpus=1,
            max_restarts=-1,
            max_task_retries=-1,
            max_concurrency=2,
        )(RayWorker)
        workers = [actor.remote() for _ in range(n)]
        each = "a GPU" if gpus else "a core"
        observer.message(f"{n} actor{'' if n == 1 else 's'} on Ray, {each} each")
        with stop_on_signals(stop, observer.message):
            jobs = [worker.work.remote(url, server, token, study, until_idle) for worker in workers]
            return sum(followed(ray, workers, jobs, stop))
    finally:
        ray.shutdown()


def followed(ray: Any, workers: Sequence[Any], jobs: Sequence[Any], stop: StopFlag) -> list[int]:
    """Waits for the actors' work, and passes a request to stop on to them."""
    at_work, told = dict(zip(jobs, workers, strict=True)), False
    while at_work:
        done, _ = ray.wait(list(at_work), num_returns=len(at_work), timeout=LOOK_S)
        for job in done:
            # One that lost its machine may be waiting for the room that this one takes.
            ray.kill(at_work.pop(job))
        if stop.reason is not None and not told:
            told = True
            for worker in at_work.values():
                worker.stop.remote(stop.reason)
    return [int(started) for started in ray.get(list(jobs))]


def connected(address: str | None) -> Any:
    """Connects to a cluster, with this process's settings for its actors.

    Raises:
        InputError: Ray is not installed, or there is no cluster at the address.
    """
    try:
        import ray
    except ImportError:
        raise InputError("--on ray needs Ray; pip install 'mixsearch[ray]'") from None
    if address is not None:
        refuse_silence(address)
    given = {name: value for name, value in os.environ.items() if name.startswith(GIVEN_ON)}
    try:
        ray.init(
            address=address,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={"env_vars": given},
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise InputError(f"--address {address}: Ray cannot use it: {first}") from None
    return ray


def refuse_silence(address: str) -> None:
    """Refuses an address where nothing listens; Ray itself would try for minutes.

    Raises:
        InputError: Nothing answers there.
    """
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():
        return  # A word of Ray's, such as auto.
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_S).close()
    except OSError as error:
        raise InputError(f"--address {address}: no Ray cluster answers there: {error}") from None

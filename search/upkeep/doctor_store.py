"""What keeps the work of a store going or from going: locks, clocks, room, leases, each study."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from search.upkeep.findings import Finding, Status, disk

if TYPE_CHECKING:
    from pathlib import Path

    from search.files import Files
    from search.rows import StudyRow
    from search.settings import Settings
    from search.store.health import Blocked, StudyHealth
    from search.store.repo import Store

SLOW_LOCK_S = 1.0
MOST_SKEW_S = 5.0


def store_health(url: str, local: Settings) -> Iterator[Finding]:
    """Looks into a store that can be opened; one that cannot is the finding of another check."""
    from search.errors import NothingThereError, SearchError
    from search.files import Files
    from search.store.repo import Store

    try:
        store = Store.open(url, create=False)
    except (NothingThereError, SearchError):
        return
    with store:
        files = Files.of(store.address, local)
        yield from locks(store)
        yield clock(store)
        yield from rooms(store, files)
        yield from leases(store)
        yield from spool(files)
        yield workers(store, local.lease_s)
        for study in store.studies():
            yield from study_findings(store, study)


def locks(store: Store) -> Iterator[Finding]:
    """Whether writers get their turn."""
    from search.errors import StoreError
    from search.store.health import blocked

    began = time.monotonic()
    try:
        with store.writing():
            pass
    except StoreError:
        return  # The check of the store says so.
    waited = time.monotonic() - began
    with store.reading() as connection:
        waiting = blocked(connection)
    yield from blocked_findings(waiting)
    if waited > SLOW_LOCK_S:
        yield Finding(
            "locks",
            "warning",
            f"a write had to wait {waited:.1f} s",
            "look for a program that keeps the store open in a transaction",
        )
    elif not waiting:
        yield Finding("locks", "ok", f"a write waited {1000 * waited:.0f} ms; nobody is blocked")


def blocked_findings(waiting: list[Blocked]) -> Iterator[Finding]:
    """Names who waits for whom."""
    for one in waiting:
        yield Finding(
            "locks",
            "warning",
            f"session {one.waits} waits for session {one.holds}, which is "
            f"{one.state or 'at work'} since {one.since_s:.0f} s",
            f"if it should not be: SELECT pg_terminate_backend({one.holds})",
        )


def clock(store: Store) -> Finding:
    """How far this machine's clock is from the database's, by which leases run out."""
    from search.store.engine import database_time

    before = datetime.now(UTC)
    with store.reading() as connection:
        there = database_time(connection)
    middle = before + (datetime.now(UTC) - before) / 2
    return clock_finding((middle - there).total_seconds(), is_own=store.address.is_sqlite)


def clock_finding(ahead_s: float, *, is_own: bool) -> Finding:
    """Says what a difference of clocks means."""
    if is_own:
        return Finding("clock", "ok", "leases go by this machine's clock (SQLite)")
    side = "ahead of" if ahead_s > 0 else "behind"
    if abs(ahead_s) <= MOST_SKEW_S:
        return Finding("clock", "ok", f"{abs(ahead_s):.1f} s {side} the database's")
    return Finding(
        "clock",
        "warning",
        f"{abs(ahead_s):.0f} s {side} the database's; leases go by the database's and are right",
        "set this machine's clock (NTP), so that times in its logs agree",
    )


def rooms(store: Store, files: Files) -> Iterator[Finding]:
    """Room on the disks of the store and of its files."""
    places: dict[str, Path] = {"files": files.root}
    if store.address.path is not None:
        places = {"store's folder": store.address.path.absolute().parent, **places}
    for topic, folder in places.items():
        yield from disk(topic, folder)


def leases(store: Store) -> Iterator[Finding]:
    """Takes back what dead workers held, and says so."""
    from search.errors import StoreError

    try:
        taken = store.reap()
    except StoreError:
        return  # The check of the store says so.
    if taken:
        yield Finding(
            "leases",
            "warning",
            f"took back {_trials(taken)} of workers that gave no sign of life",
            "they are queued again; 'search show STUDY TRIAL' lists their attempts",
        )


def spool(files: Files) -> Iterator[Finding]:
    """Results that wait on this machine for a store that was away."""
    waiting = sorted(files.spool.glob("*.json")) if files.spool.is_dir() else []
    if waiting:
        yield Finding(
            "spool",
            "warning",
            f"{len(waiting)} results wait in {files.spool}",
            "the next 'search run' or 'search worker' on this machine sends them",
        )


def workers(store: Store, lease_s: float) -> Finding:
    """Who is there to take trials."""
    from search.store.engine import database_time
    from search.store.health import present_workers

    with store.reading() as connection:
        since = database_time(connection) - timedelta(seconds=lease_s)
        names = present_workers(connection, since)
    seen = ", ".join(names) or "none"
    return Finding("workers", "ok", f"seen idle in the last {lease_s:g} s: {seen}")


def study_findings(store: Store, study: StudyRow) -> Iterator[Finding]:
    """What a study is doing, why it is doing nothing, and what went wrong in it."""
    from search.spec.budget import Budget
    from search.store.health import study_health

    with store.reading() as connection:
        health = study_health(connection, study.id)
    used_up = None
    if study.budget is not None:
        budget = Budget.parse(study.budget)
        used_up = str(budget) if budget.is_used_up(store.counts(study.id)) else None
    yield activity(study, health, used_up)
    yield from troubles(study, health)


def activity(study: StudyRow, health: StudyHealth, used_up: str | None) -> Finding:
    """Says what a study is doing, or why nothing of it is running.

    Args:
        study: The study.
        health: What its trials are doing.
        used_up: Its budget in words, where that is used up.
    """
    topic, name = f"study {study.name}", study.name
    queued = health.states.get("queued", 0)
    waiting = f", {_trials(queued)} in the queue" if queued else ""
    if study.state in ("paused", "stopped"):
        status: Status = "warning" if queued or study.state == "paused" else "ok"
        why = f" ({study.reason})" if study.reason else ""
        detail = f"hands out nothing: it is {study.state}{why}{waiting}"
        return Finding(topic, status, detail, f"search resume {name}" if status != "ok" else "")
    if health.holders:
        held = "; ".join(
            f"{worker}: {', '.join(map(str, numbers))}"
            for worker, numbers in health.holders.items()
        )
        return Finding(topic, "ok", f"running, trials by worker: {held}{waiting}")
    if queued:
        return Finding(
            topic,
            "warning",
            f"{_trials(queued)} in the queue and no worker at it",
            "start one: search worker, or the same search run as before",
        )
    if study.state == "failed":
        return Finding(
            topic,
            "warning",
            f"ended without a result: {_words(health.states)}",
            f"search retry {name}, once the cause is removed",
        )
    if study.state == "completed":
        return Finding(
            topic, "ok", f"ended ({study.reason or 'completed'}); a larger budget goes on"
        )
    if used_up is not None:
        return Finding(topic, "ok", f"idle: its budget of {used_up} is used up")
    return Finding(topic, "ok", "idle: no worker is at it; search run or search worker starts one")


def troubles(study: StudyRow, health: StudyHealth) -> Iterator[Finding]:
    """Failures, abandoned trials and results that came too late."""
    topic, name = f"study {study.name}", study.name
    if health.last_failure is not None:
        number, error = health.last_failure
        total = sum(health.causes.values())
        yield Finding(
            topic,
            "warning",
            f"{_trials(total)} failed ({_words(health.causes)}); the last, {number}: {error}",
            f"search show {name} {number} has the traceback; search retry {name} tries again",
        )
    if health.left:
        numbers = ", ".join(map(str, health.left))
        yield Finding(
            topic,
            "warning",
            f"trial {numbers} is held by a worker that has ended",
            "it is handed out again when its lease runs out",
        )
    if health.late:
        plural = "" if health.late == 1 else "s"
        yield Finding(
            topic,
            "warning",
            f"{health.late} result{plural} came after the lease was lost",
            "if workers are held up for so long, raise SEARCH_LEASE_S",
        )


def _words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))


def _trials(n: int) -> str:
    return f"{n} trial{'' if n == 1 else 's'}"

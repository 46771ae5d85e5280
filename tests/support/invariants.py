"""What must hold of a store after whatever happened to its workers; reads nothing but the store."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from fault_worker import value_of

from search.rows import FINAL_STATES, TrialRow
from search.store.repo import Store
from search.store.retries import is_of_machine


def made_up(row: TrialRow) -> float:
    """What the made-up training of a trial brings."""
    return value_of(row.code, row.seed)


def check_invariants(
    store: Store,
    study: str,
    budget: int,
    lost: int | None = None,
    *,
    value: Callable[[TrialRow], float] = made_up,
    redone: int | None = None,
) -> list[dict[str, Any]]:
    """Hold a finished study to its promises; returns its trials as documents."""
    found = violations(store, study, budget, lost, value=value, redone=redone)
    assert not found, found
    return [store.trial(row.id) for row in store.rows(study)]


def violations(
    store: Store,
    study: str,
    budget: int,
    lost: int | None = None,
    *,
    value: Callable[[TrialRow], float] = made_up,
    redone: int | None = None,
) -> list[str]:
    """Say which promises a finished study breaks, each by its name and the facts.

    The budget is exact, no trial is lost or brought to an end twice, each ended for a stated
    reason, nothing is in anybody's hands any more, and every number is the one that the training
    gives.

    Args:
        store: Where it is.
        study: Its name.
        budget: Its trials.
        lost: Attempts that may have been lost, since so many workers were killed or suspended;
            not looked at if None.
        value: What the training of a trial brings where nothing disturbs it.
        redone: Steps that an attempt may do again; not looked at if None.
    """
    rows = store.rows(study)
    documents = [store.trial(row.id) for row in rows]
    found = store.study(study)
    broken = []
    if len(rows) != budget:
        broken.append(f"budget: {len(rows)} trials for {budget}")
    # A reservation that was given back may leave a number unused.
    if len({row.number for row in rows}) != len(rows):
        broken.append("numbers: two trials have the same")
    trained = Counter((row.mixers, row.seed_index) for row in rows)
    broken += [f"trained twice: {key}" for key, times in trained.items() if times > 1]
    for row, document in zip(rows, documents, strict=True):
        broken += [f"{what} (trial {row.number})" for what in of_trial(row, document, value)]
        if redone is not None:
            broken += [
                f"redone: from step {before['step']} back to {after['resumed_step']}"
                for before, after in pairwise(document["attempts"])
                if before["step"] - (after["resumed_step"] or 0) > redone
            ]
    attempts = [attempt for document in documents for attempt in document["attempts"]]
    n_lost = sum(attempt["outcome"] == "lost" for attempt in attempts)
    if lost is not None and n_lost > lost:
        broken.append(f"lost: {n_lost} attempts for {lost} faults")
    if found.n_running or found.state != "completed":
        broken.append(f"study: {found.state} ({found.reason}), {found.n_running} running")
    return broken


def of_trial(
    row: TrialRow, document: dict[str, Any], value: Callable[[TrialRow], float]
) -> Iterator[str]:
    """Yield the promises that one trial breaks."""
    attempts = document["attempts"]
    if row.state not in FINAL_STATES:
        yield f"no end: {row.state}"
    elif row.state != "completed" and not row.reason:
        yield f"no reason: {row.state}"
    if [attempt["number"] for attempt in attempts] != list(range(1, len(attempts) + 1)):
        yield f"attempts: {[attempt['number'] for attempt in attempts]}"
    outcomes = [attempt["outcome"] for attempt in attempts]
    if not all(attempt["ended_at"] and attempt["outcome"] for attempt in attempts):
        yield f"in hand: {outcomes}"
    ends = [a["outcome"] for a in attempts if a["outcome"] in FINAL_STATES and not is_retried(a)]
    if len(ends) > 1 or (row.state in FINAL_STATES and outcomes[-1] != row.state):
        yield f"ended twice: {outcomes}, {row.state}"
    if row.state == "completed":
        if row.selection["loss"] != value(row):
            yield f"value: {row.selection}"
        steps = [step for step, _ in row.curve]
        if steps != sorted(set(steps)) or len(steps) == 0:
            yield f"curve: {row.curve}"


def is_retried(attempt: dict[str, Any]) -> bool:
    """Whether an attempt failed by no fault of its trial, which is tried again then."""
    return attempt["outcome"] == "failed" and is_of_machine(attempt["cause"])

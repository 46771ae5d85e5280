"""What must hold of a store after whatever happened to its workers; reads nothing but the store."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from fault_worker import value_of

from search.rows import FINAL_STATES, TrialRow
from search.store.repo import Store


def check_invariants(
    store: Store, study: str, budget: int, lost: int | None = None
) -> list[dict[str, Any]]:
    """Hold a finished study to its promises; returns its trials as documents."""
    found = violations(store, study, budget, lost)
    assert not found, found
    return [store.trial(row.id) for row in store.rows(study)]


def violations(store: Store, study: str, budget: int, lost: int | None = None) -> list[str]:
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
        broken += [f"{what} (trial {row.number})" for what in of_trial(row, document)]
    attempts = [attempt for document in documents for attempt in document["attempts"]]
    n_lost = sum(attempt["outcome"] == "lost" for attempt in attempts)
    if lost is not None and n_lost > lost:
        broken.append(f"lost: {n_lost} attempts for {lost} faults")
    if found.n_running or found.state != "completed":
        broken.append(f"study: {found.state} ({found.reason}), {found.n_running} running")
    return broken


def of_trial(row: TrialRow, document: dict[str, Any]) -> Iterator[str]:
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
    ends = [outcome for outcome in outcomes if outcome in FINAL_STATES]
    if len(ends) > 1 or (row.state in FINAL_STATES and outcomes[-1] != row.state):
        yield f"ended twice: {outcomes}, {row.state}"
    if row.state == "completed":
        if row.selection["loss"] != value_of(row.code, row.seed):
            yield f"value: {row.selection}"
        steps = [step for step, _ in row.curve]
        if steps != sorted(set(steps)) or len(steps) == 0:
            yield f"curve: {row.curve}"

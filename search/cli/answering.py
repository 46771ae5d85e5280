"""The answer of a stored study, for every command that prints a part of it."""

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.rows import StudyRow, TrialRow
    from search.store.readable import ReadableStore


def answer_of(
    store: "ReadableStore", study: "StudyRow", rows: "list[TrialRow] | None" = None
) -> "Answer":
    """Answer a study from its trials, and count that as a look at them.

    Args:
        store: Where they are.
        study: The study.
        rows: Its trials with their curves and documents, if they are at hand.

    Raises:
        InputError: The study's spec cannot be built here, as when a mixer is not installed.
    """
    from search.answers.answer import answer_study
    from search.cli.opening import spec_of
    from search.followups.derived import derived_rows

    rows = store.rows(study.name, documents=True) if rows is None else rows
    return answer_study(
        rows,
        spec_of(study),
        device=_device(store, rows),
        look=look_at(store, study, rows),
        derived=derived_rows(store, study),
    )


def look_at(store: "ReadableStore", study: "StudyRow", rows: "list[TrialRow]") -> int:
    """Return which look at a study's confirmation this is, from 1.

    Reading the same trials again is the same look, and so is reading none. It is kept, so that the
    next raise of the budget is the next look, except while trials are under way or where the store
    cannot be written.
    """
    from search.errors import StoreError
    from search.rows import FINAL_STATES

    confirmed = sum(row.phase == "confirm" and row.state == "completed" for row in rows)
    if not confirmed:
        return 1
    if all(row.state in FINAL_STATES for row in rows):
        with suppress(StoreError):
            return store.record_look(study.id, confirmed)
    before = store.looks(study.name)
    return len(before) + (not before or confirmed > before[-1])


def _device(store: "ReadableStore", rows: "list[TrialRow]") -> str | None:
    """Where the newest finished trial was measured."""
    timed = [row.id for row in rows if row.state == "completed" and row.latency_s is not None]
    if not timed:
        return None
    costs = store.trial(timed[-1])["costs"]
    return str(costs["device"]) if costs and costs["device"] else None


def require_finished(answer: "Answer", study: "StudyRow") -> None:
    """Refuse to go on where nothing can be said yet.

    Raises:
        NothingThereError: No trial has ended with a result; names the first failure.
    """
    from search.errors import NothingThereError

    if answer.leaders:
        return
    cause = answer.spent.first_failure
    counted = [f"{n} {state}" for state, n in answer.spent.by_state.items() if n]
    why = f": {', '.join(counted)}; first cause: {cause}" if cause else ""
    raise NothingThereError(f"study {study.name!r} has no finished trial yet{why}")

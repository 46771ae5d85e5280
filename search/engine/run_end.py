"""How a run ends: whether anything may start, and what to say when nothing does any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.engine.assignments import Ended
from search.engine.observer import RunObserver, RunOutcome
from search.engine.stopping import StopFlag
from search.phases.rungs import promotions
from search.rows import FINAL_STATES, StudyRow, StudyState, TrialRow
from search.spec.budget import Budget
from search.spec.listed import is_listed, n_trainings
from search.workers.worker import Tally

if TYPE_CHECKING:
    from search.spec.study import StudySpec
    from search.store.repo import Store
    from search.workers.contract import PullStore

EXIT_OK, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130


STATES: dict[str, StudyState] = {"failed": "failed"}
"""The state of a study that ended for a reason; `completed` for every other one."""


def used_up(store: Store, row: StudyRow, study: StudySpec, budget: Budget) -> Ended | None:
    """Says that a budget allows nothing, before anything is prepared.

    A trial that waits has its place in a budget of trials or FLOPs, and goes on; so does one that
    is to be promoted.
    """
    rows = store.rows(row.id, curves=False)
    waiting = any(trial.state not in FINAL_STATES for trial in rows)
    waiting = waiting or promotions(rows, study).closing is not None
    if waiting and budget.unit != "seconds":
        return None
    if is_listed(study) and not waiting and row.n_trials >= (n := n_trainings(study)):
        return Ended("space used up", f"nothing started: all {n} trainings are done")
    counts = store.counts(row.id)
    if not budget.is_used_up(counts):
        return None
    spent = budget.words(budget.spent(counts))
    return Ended("budget", f"nothing started: the study has used {spent} of {budget}")


def report_end(
    store: Store,
    row: StudyRow,
    tally: Tally,
    stop: StopFlag,
    observer: RunObserver,
    again: str,
) -> RunOutcome:
    """Works out how the run ended, notes it with the study and tells the observer."""
    rows = store.rows(row.id, curves=False)
    completed = sum(trial.state == "completed" for trial in rows)
    failed = [trial for trial in rows if trial.state in ("failed", "diverged")]
    code = EXIT_OK
    goes_on = f"nothing is lost: {again} continues"
    rests = tally.ended is not None and tally.ended.reason == "stopped"
    if stop.reason is not None:
        reason, code = stop.reason, EXIT_INTERRUPTED
        message = f"{reason}; {goes_on}"
    elif rests and tally.ended is not None:
        reason, code = tally.ended.reason, EXIT_INTERRUPTED
        is_over = store.study(row.id).state == "stopped"
        follows = "the answer is drawn from what is there" if is_over else goes_on
        message = f"{tally.ended.message}; {follows}"
    elif rows and not completed:
        reason, code, message = "failed", EXIT_FAILED, why_nothing(rows, failed)
    else:
        ended = tally.ended or Ended("budget", "the time budget is used up")
        reason, message = ended.reason, ended.message
    # While another worker has a trial in hand the study goes on.
    elsewhere = [trial.number for trial in rows if trial.state in ("proposed", "running")]
    if elsewhere:
        numbers = ", ".join(map(str, elsewhere))
        message += (
            f"; another worker holds trial {numbers} (or died with it: it is handed out again when "
            "its lease ends), so this answer is without it"
        )
    elif stop.reason is None and not rests:
        store.set_study_state(row.id, STATES.get(reason, "completed"), reason)
    outcome = RunOutcome(
        study=row.name,
        study_id=row.id,
        reason=reason,
        message=message,
        exit_code=code,
        started=tally.started,
        completed=completed,
        failed=len(failed),
        n_trials=len(rows),
    )
    observer.finished(outcome)
    return outcome


def settle_study(store: PullStore, study_id: int, ended: Ended) -> None:
    """Notes that a study has ended, once no worker has a trial of it in hand any more."""
    rows = store.rows(study_id, curves=False)
    if ended.reason == "stopped" or any(row.state not in FINAL_STATES for row in rows):
        return
    if rows and all(row.state != "completed" for row in rows):
        store.set_study_state(study_id, "failed", "failed")
    else:
        store.set_study_state(study_id, "completed", ended.reason)


def why_nothing(rows: Sequence[TrialRow], failed: Sequence[TrialRow]) -> str:
    """Says why no trial of a study ended with a result."""
    if not failed:
        return f"none of {len(rows)} trials came to an end within the budget; raise it"
    first = failed[0]
    cause = first.error or first.reason or "unknown"
    return (
        f"{len(failed)} of {len(rows)} trials failed and none succeeded; "
        f"first cause (trial {first.number}): {cause}"
    )

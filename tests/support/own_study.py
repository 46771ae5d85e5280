"""Studies over a function of the architecture: the whole engine without any training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import search
from search.api import study_of
from search.engine.observer import RunObserver, RunOutcome, StudyStart, TrialStart
from search.rows import TrialRow
from search.spec.study import StudySpec

WORTH = {"attention": 0.5, "sepconv": 0.1, "bproj": 0.2, "average": 0.4, "hardmax_shift": 0.3}


def loss(architecture: Any, seed: int, report: Any) -> float:
    """A loss that prefers sepconv, then bproj; the seed moves it a little."""
    kinds = [block.mixer.kind for block in architecture.blocks]
    return 1.0 + sum(WORTH[kind] for kind in kinds) / 4 + 0.001 * seed


def own_study(
    objective: Callable[..., Any] = loss,
    *,
    n_layers: int = 4,
    choices: Sequence[str] = ("attention", "sepconv", "bproj"),
    strategy: str = "random",
    **options: Any,
) -> StudySpec:
    """A study of an own function; random search, because it is the quickest to ask."""
    return study_of(
        {"strategy": {"name": strategy}},
        objective=objective,
        n_layers=n_layers,
        choices=list(choices),
        **options,
    )


class Recorder(RunObserver):
    """Keeps what a run tells."""

    def __init__(self) -> None:
        self.study: StudyStart | None = None
        self.started: list[TrialStart] = []
        self.rows: list[TrialRow] = []
        self.readings: list[tuple[int, dict[str, float]]] = []
        self.messages: list[str] = []
        self.outcome: RunOutcome | None = None

    def study_started(self, start: StudyStart) -> None:
        """Keep it."""
        self.study = start

    def trial_started(self, trial: TrialStart) -> None:
        self.started.append(trial)

    def trial_finished(self, row: TrialRow) -> None:
        self.rows.append(row)

    def validation(self, trial: TrialStart, step: int, metrics: Any) -> None:
        self.readings.append((step, dict(metrics)))

    def message(self, text: str) -> None:
        self.messages.append(text)

    def finished(self, outcome: RunOutcome) -> None:
        self.outcome = outcome


def run_own(
    folder: Path, budget: str | int, objective: Callable[..., Any] = loss, **options: Any
) -> RunOutcome:
    """Runs a study of an own function in the store of a folder."""
    run_options = {key: options.pop(key) for key in ("name", "observer") if key in options}
    study = own_study(objective, **options)
    return search.run(study, budget, store_url(folder), objective=objective, **run_options)


def store_url(folder: Path) -> str:
    """The store of a folder."""
    return f"sqlite:///{folder / 'search.db'}"


def stored_rows(folder: Path, outcome: RunOutcome) -> list[TrialRow]:
    """The trials of a run's study."""
    with search.open(store_url(folder)) as store:
        return store.rows(outcome.study_id)

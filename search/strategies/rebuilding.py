"""Past trials of the store as an Optuna study.

A trial's number and id are its number in the store: samplers refer to trials by id (NSGA-II's
parents), so slots without a trial of this space hold a waiting trial, which every sampler ignores.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from search.spec.space import Space, parameter
from search.strategies.base import History, PastTrial

STATES = {
    "complete": TrialState.COMPLETE,
    "pruned": TrialState.PRUNED,
    "failed": TrialState.FAIL,
    "running": TrialState.RUNNING,
}
DIRECTIONS = {"minimize": StudyDirection.MINIMIZE, "maximize": StudyDirection.MAXIMIZE}
STUDY_NAME = "rebuilt"


def distributions(space: Space) -> dict[str, CategoricalDistribution]:
    """Returns one categorical per layer over the notation of its choices."""
    return {
        parameter(layer): CategoricalDistribution(tuple(choices))
        for layer, choices in enumerate(space.layers)
    }


class SharedTrial(FrozenTrial):
    """A past trial that storages take as it is; copying it took most of a proposal's time.

    Optuna replaces a trial that changes by a changed copy, so nothing shared is ever written.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> SharedTrial:
        return self

    @classmethod
    def of(cls, trial: FrozenTrial) -> SharedTrial:
        """Returns a trial that is not copied."""
        shared = cls.__new__(cls)
        vars(shared).update(vars(trial))
        return shared


class SharedTrials:
    """Optuna's form of each past trial, made once and again where the trial changed."""

    def __init__(self) -> None:
        self.space: Space | None = None
        self.made: dict[int, tuple[PastTrial | None, SharedTrial]] = {}

    def in_order(
        self, space: Space, known: Mapping[int, PastTrial], number: int
    ) -> Iterator[SharedTrial]:
        """Yields the trials of the slots below a number; one without a past trial waits."""
        if self.space is not space:
            self.space, self.made = space, {}
        made = self.made
        cast: dict[str, BaseDistribution] = dict(distributions(space))
        for slot in range(number):
            past = known.get(slot)
            found = made.get(slot)
            if found is None or (found[0] is not past and found[0] != past):
                trial = frozen_trial(past, space, cast) if past else waiting_trial()
                found = made[slot] = past, SharedTrial.of(trial)
            yield found[1]


def rebuild(
    storage: InMemoryStorage,
    space: Space,
    history: History,
    number: int,
    shared: SharedTrials,
) -> int:
    """Fills an empty storage so that its next trial has this number; returns the study's id."""
    with unannounced():
        study_id = storage.create_new_study(
            [DIRECTIONS[direction] for direction in history.directions], STUDY_NAME
        )
    for key, value in history.study_attrs.items():
        storage.set_study_system_attr(study_id, key, value)
    known = {past.number: past for past in history.trials}
    for trial in shared.in_order(space, known, number):
        storage.create_new_trial(study_id, trial)
    return study_id


@contextmanager
def unannounced() -> Iterator[None]:
    """Keeps Optuna from announcing a new study at every proposal."""
    logger = logging.getLogger("optuna.storages._in_memory")
    before = logger.disabled
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = before


def frozen_trial(past: PastTrial, space: Space, cast: dict[str, BaseDistribution]) -> FrozenTrial:
    """Writes a past trial with its parameters cast to the present space."""
    return optuna.create_trial(
        state=STATES[past.state],
        values=past.values if past.state == "complete" else None,
        params=dict(space.params(past.labels) or {}),
        distributions=cast,
        system_attrs=dict(past.attrs),
        intermediate_values=dict([past.at_rung] if past.at_rung else []),
        constraints=dict(past.excesses),
    )


def waiting_trial() -> FrozenTrial:
    """Returns the trial that stands for a number without a trial of the present space."""
    return optuna.create_trial(state=TrialState.WAITING)

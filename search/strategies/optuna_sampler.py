"""An Optuna sampler over a study that is rebuilt from the rows before every proposal.

The rows are the only truth, so a resumed study never replays its first suggestions and no trial
needs the commits of Optuna's own storage. In the rebuilt study a trial's number and id are its
number in the store: samplers refer to trials by id (NSGA-II's parents), so slots without a trial of
this space hold a waiting trial, which every sampler ignores.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, Trial, TrialState

from search.space import Space, parameter
from search.strategies.base import History, PastTrial, Proposal, trial_seed
from search.strategies.catalog import Offer, OptionValue

STATES = {
    "complete": TrialState.COMPLETE,
    "pruned": TrialState.PRUNED,
    "failed": TrialState.FAIL,
    "running": TrialState.RUNNING,
}
DIRECTIONS = {"minimize": StudyDirection.MINIMIZE, "maximize": StudyDirection.MAXIMIZE}
STUDY_NAME = "rebuilt"


class OptunaSampler:
    """Proposes what an Optuna sampler suggests.

    Args:
        offer: Which sampler.
        options: Its options.
        study_seed: Seed of the study; each proposal's own seed derives from it, except for
            sequences that depend on one seed as a whole.

    Raises:
        ValueError: The sampler refuses an option.
    """

    def __init__(self, offer: Offer, options: Mapping[str, OptionValue], study_seed: int) -> None:
        self.offer = offer
        self.options = options
        self.study_seed = study_seed
        self.sampler(0)

    def sampler(self, seed: int) -> BaseSampler:
        """Builds the sampler with a seed."""
        build: Any = getattr(optuna.samplers, self.offer.sampler)
        with warnings.catch_warnings():
            # The catalog offers what its tests hold stable, whatever Optuna calls it.
            warnings.simplefilter("ignore", ExperimentalWarning)
            sampler: BaseSampler = build(seed=seed, **self.options)
        return sampler

    def sampler_for(self, space: Space, seed: int, sub_seed: int = 0) -> BaseSampler:
        """Builds the sampler that searches a space; most need no more than a seed."""
        return self.sampler(seed)

    def propose(
        self, space: Space, history: History, *, number: int, sub_seed: int
    ) -> Proposal | None:
        """Returns the sampler's suggestion for the trial of this number."""
        seed = self.study_seed
        if not self.offer.seeded_by_study:
            seed = trial_seed(self.study_seed, number, sub_seed)
        storage = InMemoryStorage()
        study_id = rebuild(storage, space, history, number)
        study = optuna.Study(STUDY_NAME, storage, self.sampler_for(space, seed, sub_seed))
        trial_id = storage.create_new_trial(study_id)
        trial = Trial(study, trial_id)
        params = {
            name: str(trial.suggest_categorical(name, distribution.choices))
            for name, distribution in distributions(space).items()
        }
        return Proposal(
            space.labels(params),
            storage.get_trial_system_attrs(trial_id),
            storage.get_study_system_attrs(study_id),
        )


def distributions(space: Space) -> dict[str, CategoricalDistribution]:
    """Returns one categorical per layer over the notation of its choices."""
    return {
        parameter(layer): CategoricalDistribution(tuple(choices))
        for layer, choices in enumerate(space.layers)
    }


def rebuild(storage: InMemoryStorage, space: Space, history: History, number: int) -> int:
    """Fills an empty storage so that its next trial has this number; returns the study's id."""
    with unannounced():
        study_id = storage.create_new_study(
            [DIRECTIONS[direction] for direction in history.directions], STUDY_NAME
        )
    for key, value in history.study_attrs.items():
        storage.set_study_system_attr(study_id, key, value)
    known = {past.number: past for past in history.trials}
    cast: dict[str, BaseDistribution] = dict(distributions(space))
    for slot in range(number):
        past = known.get(slot)
        template = frozen_trial(past, space, cast) if past else waiting_trial()
        storage.create_new_trial(study_id, template)
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
        constraints=dict(past.excesses),
    )


def waiting_trial() -> FrozenTrial:
    """Returns the trial that stands for a number without a trial of the present space."""
    return optuna.create_trial(state=TrialState.WAITING)

"""An Optuna sampler over a study that is rebuilt from the rows before every proposal.

The rows are the only truth, so a resumed study never replays its first suggestions and no trial
needs the commits of Optuna's own storage.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler
from optuna.storages import InMemoryStorage
from optuna.trial import Trial

from search.spec.space import Space
from search.strategies.base import History, Proposal, trial_seed
from search.strategies.offers import Offer, OptionValue
from search.strategies.rebuilding import STUDY_NAME, SharedTrials, distributions, rebuild


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
        self.shared = SharedTrials()
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
        study_id = rebuild(storage, space, history, number, self.shared)
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

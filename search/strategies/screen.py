"""A sampler that first runs a screening design, and then leaves the search to TPE.

What a sampler chose by looking at results cannot carry effects of layers: a design can. Its runs
vary two mixers, the reference and the best cheap one, layer by layer; see
`search.strategies.screen_design` for which runs these are and in which order they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from search.spec.space import Labels, Space, parameter
from search.strategies.base import History, Proposal
from search.strategies.offers import Offer, OptionValue
from search.strategies.optuna_sampler import OptunaSampler
from search.strategies.screen_plan import NOTE, Screening, screening_of

Attrs = Mapping[str, Any]


class ScreenSampler(BaseSampler):
    """Runs a two-level design over categorical parameters, one a layer; then another sampler.

    In plain Optuna::

        space = {f"layer_{i}": ["attention", "sepconv", "average"] for i in range(4)}
        sampler = ScreenSampler(space, reference="attention", cheap="sepconv")
        study = optuna.create_study(sampler=sampler)

    Each trial of the design carries the note ``screen`` among its system attributes: the two
    mixers, the layers, and its place in the design. The first of them settles the cheap mixer: the
    one whose uniform stack has the best value so far (enqueue these stacks before to have it
    chosen), else ``cheap``. A run that has a trial already, in whatever state, is not repeated.

    Args:
        search_space: Choices of each parameter, first layer first.
        reference: The mixer to be replaced: a choice, or what stands before its ``(``. Where it is
            no choice, there is no design.
        cheap: Its replacement where no uniform stack has a value.
        is_allowed: Whether a run may be trained; the others are left out.
        skip: So many of the runs that are left come later.
        then: What goes on after the design, which has nothing random; `TPESampler` by default.
    """

    def __init__(
        self,
        search_space: Mapping[str, Sequence[str]],
        *,
        reference: str = "attention",
        cheap: str = "sepconv",
        is_allowed: Callable[[Labels], bool] | None = None,
        skip: int = 0,
        then: BaseSampler | None = None,
    ) -> None:
        self.search_space = {name: tuple(choices) for name, choices in search_space.items()}
        self.reference = reference
        self.cheap = cheap
        self.is_allowed = is_allowed
        self.skip = skip
        self.then = then or TPESampler()

    def reseed_rng(self) -> None:
        """Reseeds the other sampler."""
        self.then.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Gives the trial a run of the design, if one is left."""
        if "fixed_params" in trial.system_attrs or not self._assign(study, trial):
            self.then.before_trial(study, trial)

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Nothing for a run of the design; else what the other sampler says."""
        if note_of(study, trial):
            return {}
        return self.then.infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Nothing for a run of the design; else what the other sampler says."""
        if note_of(study, trial):
            return {}
        return self.then.sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """The run's choice for a parameter; else what the other sampler says."""
        note = note_of(study, trial)
        if note is None or param_name not in self.search_space:
            return self.then.sample_independent(study, trial, param_name, param_distribution)
        return run_of_note(note)[list(self.search_space).index(param_name)]

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Tells the other sampler."""
        self.then.after_trial(study, trial, state, values)

    def _assign(self, study: Study, trial: FrozenTrial) -> bool:
        storage = study._storage
        trials = storage.get_all_trials(study._study_id, deepcopy=False)
        past = [past for past in trials if past.number != trial.number]
        noted = storage.get_study_system_attrs(study._study_id).get(NOTE)
        sign = 1.0 if study.directions[0] == StudyDirection.MINIMIZE else -1.0
        screening = settled(
            tuple(self.search_space.values()),
            self.reference,
            self.cheap,
            notes=[past.system_attrs for past in past],
            study_note=noted,
            values={
                labels: sign * past.values[0]
                for past in past
                if past.state == TrialState.COMPLETE and (labels := self._labels(past))
            },
        )
        if screening is None:
            return False
        left = runs_left(screening, [self._labels(past) for past in past], self.is_allowed)
        if len(left) <= self.skip:
            return False
        note = screening.note()
        # Private as in Optuna's own samplers: the public way to leave a note is deprecated.
        storage.set_study_system_attr(study._study_id, NOTE, note)
        place = {"run": left[self.skip], "runs": len(screening.runs)}
        storage.set_trial_system_attr(trial._trial_id, NOTE, {**note, **place})
        return True

    def _labels(self, trial: FrozenTrial) -> Labels | None:
        params = trial.params
        if any(name not in params for name in self.search_space):
            return None
        return tuple(params[name] for name in self.search_space)


def settled(
    choices: Sequence[Sequence[str]],
    reference: str,
    cheap: str,
    *,
    notes: Iterable[Attrs],
    study_note: Attrs | None,
    values: Mapping[Labels, float],
) -> Screening | None:
    """Returns the design that a study has begun, else the one to begin.

    Args:
        choices: Notation of the choices of each layer.
        reference: The mixer to be replaced.
        cheap: Its replacement where no uniform stack is trained.
        notes: The sampler's notes about each trial, by rising number.
        study_note: Its note about the study.
        values: What each architecture was worth; low is good.
    """
    begun = next((note[NOTE] for note in notes if NOTE in note), study_note)
    if begun is not None:
        return Screening.of_note(begun)
    uniform = {labels[0]: value for labels, value in values.items() if len(set(labels)) == 1}
    return screening_of(choices, reference, cheap, uniform)


def runs_left(
    screening: Screening,
    tried: Iterable[Labels | None],
    is_allowed: Callable[[Labels], bool] | None,
) -> list[int]:
    """Returns the places of the runs that have no trial and may be trained, in order."""
    known = set(tried)
    return [
        place
        for place, labels in enumerate(screening.runs)
        if labels not in known and (is_allowed is None or is_allowed(labels))
    ]


def note_of(study: Study, trial: FrozenTrial) -> Attrs | None:
    """Returns the note about a trial, which the frozen trial at hand may be too old to have."""
    note: Attrs | None = study._storage.get_trial_system_attrs(trial._trial_id).get(NOTE)
    return note


def run_of_note(note: Attrs) -> Labels:
    """Returns the architecture of a trial that carries a note."""
    return Screening.of_note(note).runs[note["run"]]


class Screen(OptunaSampler):
    """The strategy ``screen``: `ScreenSampler` over the rows of a study.

    Args:
        offer: Its entry in the catalog.
        options: Options of TPE.
        study_seed: Seed of the study.
        levels: The reference and the cheap mixer, by notation or kind.

    Raises:
        ValueError: TPE refuses an option.
    """

    def __init__(
        self,
        offer: Offer,
        options: Mapping[str, OptionValue],
        study_seed: int,
        levels: tuple[str, str],
    ) -> None:
        self.levels = levels
        super().__init__(offer, options, study_seed)

    def sampler_for(self, space: Space, seed: int, sub_seed: int = 0) -> BaseSampler:
        """Builds the sampler; each sub-seed passes over one more run of the design."""
        reference, cheap = self.levels
        return ScreenSampler(
            {parameter(layer): tuple(choices) for layer, choices in enumerate(space.layers)},
            reference=reference,
            cheap=cheap,
            is_allowed=space.__contains__,
            skip=sub_seed,
            then=self.sampler(seed),
        )

    def is_screening(self, space: Space, history: History) -> bool:
        """Whether a run of the design is left."""
        sign = 1.0 if history.directions[0] == "minimize" else -1.0
        screening = settled(
            tuple(tuple(layer) for layer in space.layers),
            *self.levels,
            notes=[past.attrs for past in history.trials],
            study_note=history.study_attrs.get(NOTE),
            values={
                past.labels: sign * past.value
                for past in history.trials
                if past.value is not None and past.state == "complete"
            },
        )
        if screening is None:
            return False
        return bool(runs_left(screening, history.taken, space.__contains__))

    def is_of_design(self, proposal: Proposal | None) -> TypeGuard[Proposal]:
        """Whether a proposal is a run of the design."""
        return proposal is not None and NOTE in proposal.attrs

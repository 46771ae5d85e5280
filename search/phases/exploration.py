"""The phase of the search: what the study's strategy proposes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from search.phases.base import Ask, Choice
from search.phases.history import SeenRows, history_of, trained_labels
from search.rows import Phase, TrialRow
from search.spec.limits import limits_of
from search.spec.space import Space
from search.strategies.base import History, Proposal, Strategy, trial_seed

if TYPE_CHECKING:
    from search.spec.study import StudySpec

MAX_ASKS = 20


class SearchPhase:
    """Asks the strategy up to `MAX_ASKS` times for what is neither trained nor over a limit.

    Where that fails, its first proposal over a limit is changed in as few layers as bring it
    within; without one, it draws among what is untrained.
    """

    phase: Phase = "search"

    def __init__(self, study: StudySpec, space: Space, strategy: Strategy) -> None:
        self.study = study
        self.space = space
        self.strategy = strategy
        self.measures = study.measures
        self.limits = tuple(
            limit for limit in limits_of(study) if not limit.measure.is_known_before
        )
        self.seen: SeenRows = {}

    def is_open(self, rows: Sequence[TrialRow]) -> bool:
        """Whether an architecture of the space has no trial yet."""
        if len(rows) < self.space.size:
            return True
        return len(self.space.inside(trained_labels(rows))) < self.space.size

    def history(self, rows: Sequence[TrialRow], notes: Mapping[str, Any]) -> History:
        """Returns what the strategy may learn from."""
        return history_of(
            rows,
            self.space,
            measures=self.measures,
            limits=self.limits,
            study_attrs=notes,
            seen=self.seen,
        )

    def choose(self, rows: Sequence[TrialRow], ask: Ask) -> Choice | None:
        """Returns the strategy's proposal, or a uniform draw where it has none of use."""
        history = self.history(rows, ask.notes)
        taken = history.taken | {labels for labels, _, _ in ask.refused}
        seed = trial_seed(self.study.seed, ask.number, MAX_ASKS)
        over: Proposal | None = None
        for sub_seed in range(MAX_ASKS):
            proposal = self.strategy.propose(
                self.space, history, number=ask.number, sub_seed=sub_seed
            )
            if proposal is None:
                break
            history = replace(history, study_attrs=proposal.study_attrs)
            if proposal.labels in self.space and proposal.labels not in taken:
                return Choice(
                    proposal.labels, attrs=proposal.attrs, study_attrs=proposal.study_attrs
                )
            if over is None and proposal.labels not in self.space:
                over = proposal
        if over is not None:
            labels = self.space.nearest_untrained(over.labels, taken, seed)
        else:
            labels = self.space.untrained(taken, seed)
        return None if labels is None else Choice(labels, study_attrs=history.study_attrs)

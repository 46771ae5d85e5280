"""Spends a budget through the real phases, with any function in place of the training.

Neither a store nor a process: a study of 80 trials takes a fraction of a second, so hundreds of
them can be replayed against a known truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from search.phases import Agenda, Ask, Choice, PhaseSource, next_phase
from search.rows import Counts, Phase, TrialRow
from search.spec.budget import Budget
from search.spec.space import Space
from search.strategies.base import History, Proposal, Strategy, trial_seed
from search.strategies.catalog import make_strategy, offered

Train = Callable[[Choice, Phase, int], TrialRow]


def spend(
    n_trials: int, sources: Sequence[PhaseSource], n_baselines: int, train: Train
) -> list[TrialRow]:
    """Returns the rows of a study that spent so many trials, or all that its space holds.

    Args:
        n_trials: the budget.
        sources: the phases of the study.
        n_baselines: length of its list of baselines.
        train: gives the row of a choice, its phase and its number.
    """
    budget, by_phase = Budget("trials", n_trials), {source.phase: source for source in sources}
    rows: list[TrialRow] = []
    ask = Ask(0)
    while True:
        started: Counter[str] = Counter(row.phase for row in rows)
        open_phases = frozenset(source.phase for source in sources if source.is_open(rows))
        counts = Counts(by_phase=started, started=len(rows), busy_s=0.0, flops=0)
        phase = next_phase(budget, counts, Agenda(n_baselines, open_phases))
        choice = None if phase is None else by_phase[phase].choose(rows, ask)
        if phase is None or choice is None:
            return rows
        rows.append(train(choice, phase, len(rows)))
        notes = ask.notes if choice.study_attrs is None else choice.study_attrs
        ask = Ask(len(rows), notes=notes)


def quick_strategy(name: str, study_seed: int) -> Strategy:
    """Returns a strategy; one that draws at random does not rebuild what it does not look at."""
    return Forgetful(study_seed) if name == "random" else make_strategy(name, {}, study_seed)


@dataclass(frozen=True)
class Forgetful:
    """The strategy `random`, with the same proposals, in a fraction of the time."""

    study_seed: int

    def propose(
        self, space: Space, history: History, *, number: int, sub_seed: int
    ) -> Proposal | None:
        """Draws as the sampler does: its draw depends on the seed of the trial alone."""
        from search.strategies.optuna_sampler import OptunaSampler

        offer = replace(offered()["random"], seeded_by_study=True)
        sampler = OptunaSampler(offer, {}, trial_seed(self.study_seed, number, sub_seed))
        return sampler.propose(space, replace(history, trials=()), number=0, sub_seed=0)

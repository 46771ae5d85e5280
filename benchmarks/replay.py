"""Spends a budget through the real phases, with any function in place of the training.

Neither a store nor a process: a study of 80 trials takes a fraction of a second, so hundreds of
them can be replayed against a known truth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from search.budget import Budget
from search.phases import Agenda, Ask, Choice, PhaseSource, next_phase
from search.rows import Counts, Phase, TrialRow

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

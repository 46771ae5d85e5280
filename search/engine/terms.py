"""On what terms a worker takes its next trial: plain data, judged where the budget is counted.

A worker works out from the rows which phases are open and what may be promoted; whether the budget
allows it is decided by the counts of the transaction that reserves, wherever that runs: in this
process, or in the service that a worker without a database reaches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from search.phases.quotas import Agenda, next_phase
from search.phases.rungs import Promotions
from search.rows import Counts, Phase, Promotion
from search.spec.budget import Budget


@dataclass(frozen=True)
class Terms:
    """What a worker asks for.

    Attributes:
        budget: What the study may spend.
        agenda: What is left to do in each phase, by the rows that the worker read.
        promotions: What may be promoted, by the same rows.
    """

    budget: Budget
    agenda: Agenda
    promotions: Promotions

    def phase(self, counts: Counts) -> Phase | None:
        """Returns the phase of the next trial; None where nothing may or can start."""
        return next_phase(self.budget, counts, self.agenda)

    def may_resume(self, counts: Counts) -> bool:
        """A queued trial has its place in a budget of trials or FLOPs, but still takes time."""
        return self.budget.unit != "seconds" or not self.budget.is_used_up(counts)

    def promotion(self, counts: Counts) -> Promotion | None:
        """A trial that ended at a rung has its place in a budget of trials; its steps cost more."""
        if not self.may_resume(counts):
            return None
        # Before the confirmation's share goes to the search, for want of finalists, the search is
        # brought to its end: that makes finalists.
        at_the_end = replace(self.agenda, open_phases=self.agenda.open_phases | {"confirm"})
        is_closing = next_phase(self.budget, counts, at_the_end) in (None, "confirm")
        found = self.promotions.closing if is_closing else self.promotions.usual
        return None if found is None else replace(found, most_flops=self.budget.most_flops)

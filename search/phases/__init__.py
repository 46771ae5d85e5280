"""What each part of a budget is for, and what the next trial of each part is.

A phase is one `PhaseSource`: it says whether something is left to train and what comes next.
`quotas` shares a budget among the phases. All of it is pure: functions of rows and counts.
"""

from search.phases.base import Ask, Choice, ChoiceKey, PhaseSource
from search.phases.quotas import Agenda, left_out, next_phase, quotas
from search.phases.screen import n_runs
from search.phases.sources import phase_sources

__all__ = [
    "Agenda",
    "Ask",
    "Choice",
    "ChoiceKey",
    "PhaseSource",
    "left_out",
    "n_runs",
    "next_phase",
    "phase_sources",
    "quotas",
]

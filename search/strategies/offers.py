"""What a strategy that can be named offers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

OptionValue = bool | int | float | str


@dataclass(frozen=True)
class Offer:
    """A strategy that can be named in a study.

    Attributes:
        summary: One line for people.
        options: Type of each option.
        sampler: Name of the class in ``optuna.samplers`` that decides, or that goes on after a
            design; empty for our own strategies.
        seeded_by_study: The sequence depends on the study's seed alone, not on the trial.
    """

    summary: str
    options: Mapping[str, type] = field(default_factory=dict)
    sampler: str = ""
    seeded_by_study: bool = False

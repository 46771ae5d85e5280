"""How the next architecture is chosen: Optuna's samplers by name, and exhaustive enumeration.

`offered` says which names and options there are without importing Optuna; `make_strategy` builds
one. Each strategy keeps nothing between calls: it sees the rows of the store and proposes.
"""

from search.strategies.base import (
    DesignStrategy,
    History,
    PastTrial,
    Proposal,
    Strategy,
    trial_seed,
)
from search.strategies.catalog import make_strategy, offered, option_problems

__all__ = [
    "DesignStrategy",
    "History",
    "PastTrial",
    "Proposal",
    "Strategy",
    "make_strategy",
    "offered",
    "option_problems",
    "trial_seed",
]

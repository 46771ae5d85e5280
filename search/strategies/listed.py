"""No proposals: a listed study trains what it lists, in the phase `confirm`."""

from __future__ import annotations

from search.spec.space import Space
from search.strategies.base import History, Proposal


class Listed:
    """Proposes nothing."""

    def propose(
        self, space: Space, history: History, *, number: int, sub_seed: int
    ) -> Proposal | None:
        """Returns None: there is nothing to choose."""
        return None

"""Every architecture of the space in turn; the last layer moves fastest."""

from __future__ import annotations

from search.spec.space import Space
from search.strategies.base import History, Proposal


class Exhaustive:
    """Proposes the first architecture, in the order of the space, that was not trained yet."""

    def propose(
        self, space: Space, history: History, *, number: int, sub_seed: int
    ) -> Proposal | None:
        """Returns the next architecture; with sub-seed k, the k-th after it."""
        labels = space.first_untrained(history.taken, skip=sub_seed)
        return None if labels is None else Proposal(labels, study_attrs=history.study_attrs)

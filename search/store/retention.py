"""Which trials still need their files."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from search.rows import FINAL_STATES, TrialState
from search.store.tables import Architecture, Study, Trial


@dataclass(frozen=True, kw_only=True)
class Owner:
    """The trial that files belong to.

    Attributes:
        study_id: Id of its study.
        study: Name of its study.
        number: Its number there.
        state: Its state.
        is_best: Whether it is the best trial of the study's best architecture.
    """

    study_id: int
    study: str
    number: int
    state: TrialState
    is_best: bool

    @property
    def has_ended(self) -> bool:
        """Whether no worker can be about to go on from its files."""
        return self.state in FINAL_STATES


def owners(connection: Connection, trial_ids: Collection[int]) -> dict[int, Owner]:
    """Return the trials among some ids that the store has."""
    best_score = (
        select(Architecture.study_id, func.min(Architecture.score).label("score"))
        .group_by(Architecture.study_id)
        .subquery()
    )
    best = set(
        connection.execute(
            select(Architecture.best_trial_id).join(
                best_score,
                (best_score.c.study_id == Architecture.study_id)
                & (best_score.c.score == Architecture.score),
            )
        ).scalars()
    )
    found = connection.execute(
        select(Trial.id, Trial.study_id, Study.name, Trial.number, Trial.state)
        .join(Study, Study.id == Trial.study_id)
        .where(Trial.id.in_(trial_ids))
    ).all()
    return {
        row.id: Owner(
            study_id=row.study_id,
            study=row.name,
            number=row.number,
            state=row.state,
            is_best=row.id in best,
        )
        for row in found
    }

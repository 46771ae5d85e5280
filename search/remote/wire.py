"""What a worker and a service say to each other: one place for both sides.

The models are strict and frozen as all documents are; a service reads them as JSON text. What a
trial measured travels as the very messages of its training process.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from mixers.config import FrozenModel
from search.messages import Message, TrialFailure, TrialResult
from search.phases.quotas import Agenda
from search.phases.rungs import Promotions
from search.rows import CommitOutcome, FailOutcome, Offer, StudyRow, StudyState, TrialRow
from search.tasks.base import Split

LARGEST = 2**63 - 1
"""The largest integer that both databases hold."""
MOST_ROWS = 500
"""Rows of a page."""
MOST_HELD = 10_000
MOST_MESSAGES = 10_000

Id = Annotated[int, Field(ge=1, le=2**53 - 1, examples=[1])]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Token = Annotated[
    int, Field(ge=1, le=2**31 - 1, description="Fencing token of the claim.", examples=[1])
]
Word = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Words = Annotated[str, StringConstraints(max_length=1000)]


class Answer(BaseModel):
    """Base of what the service answers."""

    model_config = ConfigDict(frozen=True)


class Registration(FrozenModel):
    """A process that will claim trials."""

    host: Annotated[Word, Field(examples=["gpu-1"])]
    pid: Annotated[int, Field(ge=1, le=2**31 - 1, examples=[4711])]
    devices: Annotated[list[Word], Field(max_length=1000)]
    slots: Annotated[int, Field(ge=1, le=1000)]


class Registered(Answer):
    """What the service knows it by."""

    worker_id: int = Field(description="Id of the worker.")
    files: str = Field(description="Name of the store's folder where files are shared.")


class Held(FrozenModel):
    """A claim that a worker has in hand."""

    trial_id: Id
    token: Token


class ClaimRequest(FrozenModel):
    """What a worker asks for: its terms without the budget, which is the study's own."""

    study_id: Id
    agenda: Agenda
    promotions: Promotions
    held: Annotated[list[Held], Field(max_length=MOST_HELD)]
    """All that it has in hand. What else the store lists as its own was handed out in an answer
    that never arrived, and goes back."""


class Lease(FrozenModel):
    """A write that the holder of a trial alone may make."""

    token: Token


class Commit(Lease):
    """The architecture of a reserved trial."""

    spec: dict[str, Any]
    """Encoder spec."""
    seed: Count
    seed_index: Count
    training_key: Word
    role: Word | None
    params: dict[str, Any]
    attrs: dict[str, Any]
    study_attrs: dict[str, Any]
    recipe: dict[str, float]
    flops: Count
    splits: Annotated[list[Split], Field(min_length=1, max_length=2)]
    until: Annotated[int, Field(ge=1, le=LARGEST)] | None


class Reports(Lease):
    """What a trial said while it runs."""

    messages: Annotated[list[Message], Field(max_length=MOST_MESSAGES)]


class Finish(Lease):
    """A trial's result."""

    result: TrialResult


class Fail(Lease):
    """How an attempt broke."""

    failure: TrialFailure


class Release(Lease):
    """A claim that goes back."""

    returned: bool
    """True when nothing was left to train, false after an interruption."""
    reason: Words


class StudyEnd(FrozenModel):
    """How a study ended, once nothing of it is in hand or waits."""

    state: Literal["completed", "failed"]
    reason: Annotated[Words, Field(examples=["budget"])]


class Committed(Answer):
    """What became of an architecture."""

    outcome: CommitOutcome


class Beat(Answer):
    """The answer to a sign of life."""

    state: StudyState = Field(description="The study's, by which a worker learns of a pause.")


class Failed(Answer):
    """What became of a trial whose attempt broke."""

    outcome: FailOutcome


class RowsPage(Answer):
    """Trials of a study that changed since a revision, in the order of their changes."""

    epoch: str = Field(description="Revisions of another epoch mean nothing: begin anew.")
    revision: int = Field(description="Ask from here on next time.")
    more: bool = Field(description="Whether there is more to ask for now.")
    rows: list[TrialRow] = Field(description="Trials that are new or have changed.")
    gone: list[int] = Field(description="Ids of trials that are there no more.")


REQUESTS = (Registration, ClaimRequest, Lease, Commit, Reports, Finish, Fail, Release, StudyEnd)
OFFER = TypeAdapter(Offer)
STUDIES = TypeAdapter(list[StudyRow])

"""The tables of what was measured, and of what happened.

The checks on values keep NaN and infinities out of both databases, whatever program writes.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from search.store.tables import Base, one_of
from search.store.types import Document

LARGEST = "1.7976931348623157e308"


def finite(column: str) -> CheckConstraint:
    """A constraint that the number is finite: PostgreSQL sorts NaN above every number."""
    return CheckConstraint(f"abs({column}) <= {LARGEST}", name=f"{column}_finite")


class MetricPoint(Base):
    """A metric during training."""

    __tablename__ = "metric_points"
    __table_args__ = (finite("value"),)

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, doc="The trial."
    )
    split: Mapped[str] = mapped_column(primary_key=True, doc="`train` or `selection`.")
    metric: Mapped[str] = mapped_column(primary_key=True, doc="Name of the metric.")
    step: Mapped[int] = mapped_column(
        primary_key=True, autoincrement=False, doc="Training steps made by then."
    )
    value: Mapped[float] = mapped_column(doc="Value in the metric's unit.")


class Evaluation(Base):
    """A metric over a whole split at the end of a trial."""

    __tablename__ = "evaluations"
    __table_args__ = (finite("value"),)

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, doc="The trial."
    )
    split: Mapped[str] = mapped_column(
        primary_key=True, doc="`selection`, `test` (finalists, baselines) or `train`."
    )
    metric: Mapped[str] = mapped_column(primary_key=True, doc="Name of the metric.")
    value: Mapped[float] = mapped_column(doc="Value in the metric's unit.")
    by_document: Mapped[dict[str, Any] | None] = mapped_column(
        Document,
        doc="`n`: targets in each group of documents, `sums`: the metric's sum over them; the "
        "study's first objective only, where it is a mean over targets.",
    )


class Cost(Base):
    """What a trial's architecture costs, with what the times were measured on."""

    __tablename__ = "costs"

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, doc="The trial."
    )
    params: Mapped[int] = mapped_column(doc="Parameters.")
    flops: Mapped[int] = mapped_column(
        doc="FLOPs (2 x multiply-accumulate) of one forward pass of one sequence."
    )
    step_s: Mapped[float | None] = mapped_column(doc="Training step, median seconds.")
    step_s_low: Mapped[float | None] = mapped_column(doc="Its 10 % point.")
    step_s_high: Mapped[float | None] = mapped_column(doc="Its 90 % point.")
    step_n: Mapped[int | None] = mapped_column(doc="Steps timed.")
    step_batch_size: Mapped[int | None] = mapped_column(doc="Sequences in a training batch.")
    latency_s: Mapped[float | None] = mapped_column(doc="Forward pass, median seconds.")
    latency_s_low: Mapped[float | None] = mapped_column(doc="Its 10 % point.")
    latency_s_high: Mapped[float | None] = mapped_column(doc="Its 90 % point.")
    latency_n: Mapped[int | None] = mapped_column(doc="Passes timed.")
    latency_batch_size: Mapped[int | None] = mapped_column(doc="Sequences in a timed pass.")
    seq_len: Mapped[int | None] = mapped_column(doc="Tokens per sequence.")
    device: Mapped[str | None] = mapped_column(doc="Device of the measurements.")
    dtype: Mapped[str | None] = mapped_column(doc="Number format of the measurements.")
    peak_memory_bytes: Mapped[int | None] = mapped_column(doc="Peak memory of the trial.")


class Probe(Base):
    """One reading of the contextual-mapping probe."""

    __tablename__ = "probes"

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, doc="The trial."
    )
    moment: Mapped[str] = mapped_column(primary_key=True, doc="`init` or `final`.")
    name: Mapped[str] = mapped_column(
        primary_key=True, doc="`probe` is the one number of the views; the rest stand beside it."
    )
    value: Mapped[float | None] = mapped_column(
        doc="The reading; none where its definition has no value."
    )
    __table_args__ = (one_of("moment", ("init", "final")), finite("value"))


class Proof(Base):
    """Which modules a trial really ran."""

    __tablename__ = "proofs"

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, doc="The trial."
    )
    sha256: Mapped[str] = mapped_column(doc="Hash of the text.")
    text: Mapped[str] = mapped_column(doc="Classes, parameters and influence patterns.")
    layers: Mapped[list[Any]] = mapped_column(doc="The same by layer, as JSON.")


class Environment(Base):
    """A set of versions and machine facts, stored once."""

    __tablename__ = "environments"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - read by SQLAlchemy

    id: Mapped[int] = mapped_column(primary_key=True, doc="Key.")
    sha256: Mapped[str] = mapped_column(unique=True, doc="Hash of the facts.")
    facts: Mapped[dict[str, Any]] = mapped_column(doc="Name -> text.")


class Artifact(Base):
    """A file that belongs to a trial."""

    __tablename__ = "artifacts"
    __table_args__ = (Index(None, "trial_id"), {"sqlite_autoincrement": True})

    id: Mapped[int] = mapped_column(primary_key=True, doc="Key.")
    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), doc="The trial."
    )
    kind: Mapped[str] = mapped_column(doc="What it is (`checkpoint`, `log`, `export`).")
    uri: Mapped[str] = mapped_column(doc="Where it lies.")
    sha256: Mapped[str | None] = mapped_column(doc="Hash of its content.")
    size_bytes: Mapped[int | None] = mapped_column(doc="Its size.")
    created_at: Mapped[datetime] = mapped_column(doc="When it was written, UTC.")


class Event(Base):
    """Something that happened; ids only rise, so a reader can go on where it stopped."""

    __tablename__ = "events"
    __table_args__ = (Index(None, "study_id", "id"), {"sqlite_autoincrement": True})

    # No foreign keys: what happened stays on record when a reservation is returned.
    id: Mapped[int] = mapped_column(primary_key=True, doc="Rises with every event.")
    study_id: Mapped[int] = mapped_column(doc="The study.")
    trial_id: Mapped[int | None] = mapped_column(doc="The trial, if it concerns one.")
    kind: Mapped[str] = mapped_column(doc="What happened.")
    at: Mapped[datetime] = mapped_column(doc="When, UTC.")
    data: Mapped[dict[str, Any] | None] = mapped_column(Document, doc="Details.")


class StudyVerdict(Base):
    """One line of the newest answer."""

    __tablename__ = "study_verdicts"
    __table_args__ = (
        finite("estimate"),
        finite("low"),
        finite("high"),
        finite("p_value"),
        one_of("kind", ("confirmatory", "exploratory")),
    )

    study_id: Mapped[int] = mapped_column(
        ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True, doc="The study."
    )
    place: Mapped[int] = mapped_column(
        primary_key=True, autoincrement=False, doc="Order in the answer."
    )
    contrast: Mapped[str] = mapped_column(doc="What is compared with what.")
    estimate: Mapped[float | None] = mapped_column(doc="The difference.")
    low: Mapped[float | None] = mapped_column(doc="Lower end of its interval.")
    high: Mapped[float | None] = mapped_column(doc="Upper end of its interval.")
    unit: Mapped[str] = mapped_column(doc="Unit of the three.")
    n: Mapped[int] = mapped_column(doc="Runs behind it.")
    verdict: Mapped[str] = mapped_column(doc="The verdict's words.")
    kind: Mapped[str] = mapped_column(
        doc="`confirmatory` was declared before the run; `exploratory` was found in it.",
        server_default=text("'confirmatory'"),
    )
    p_value: Mapped[float | None] = mapped_column(doc="Adjusted for the whole family.")
    made_at: Mapped[datetime] = mapped_column(doc="When the answer was made, UTC.")


class Look(Base):
    """A finished answer that read the confirmation; each one spends part of the error rate."""

    __tablename__ = "looks"

    study_id: Mapped[int] = mapped_column(
        ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True, doc="The study."
    )
    number: Mapped[int] = mapped_column(
        primary_key=True, autoincrement=False, doc="Counts from 1 within the study."
    )
    confirm_trials: Mapped[int] = mapped_column(doc="Confirmation trials that had ended by then.")
    made_at: Mapped[datetime] = mapped_column(doc="When the answer was made, UTC.")

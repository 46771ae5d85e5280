"""The tables of studies, trials and attempts; measurements stand in `measurements.py`.

Each column's `doc` is the source of the schema tables in docs/querying-results.md.
"""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Double,
    ForeignKey,
    Index,
    MetaData,
    Text,
    UniqueConstraint,
    cast,
    func,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from search.rows import PHASES, STUDY_STATES, TRIAL_STATES
from search.store.types import Document, FlopCount, Key, UtcDateTime


class Base(DeclarativeBase):
    """Base of all tables; constraints have names, so migrations can change them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads it as a class attribute
        int: Key,
        float: Double(),
        str: Text(),
        datetime: UtcDateTime(),
        dict[str, Any]: Document,
        list[Any]: Document,
    }


def one_of(column: str, values: tuple[str, ...]) -> CheckConstraint:
    """A constraint that the column holds one of the words."""
    words = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({words})", name=column)


class Study(Base):
    """One search; a study is its name."""

    __tablename__ = "studies"
    __table_args__ = (
        one_of("state", STUDY_STATES),
        one_of("direction", ("minimize", "maximize")),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True, doc="Key.")
    name: Mapped[str] = mapped_column(unique=True, doc="Name, unique in the store.")
    spec: Mapped[dict[str, Any]] = mapped_column(doc="The study spec, canonical JSON.")
    objective: Mapped[str] = mapped_column(doc="Metric that ranks.")
    direction: Mapped[str] = mapped_column(doc="`minimize` or `maximize` the objective.")
    n_layers: Mapped[int] = mapped_column(doc="Depth of a full architecture.")
    reference_kind: Mapped[str] = mapped_column(doc="Mixer kind of the reference baseline.")
    state: Mapped[str] = mapped_column(
        doc="`running`, `paused`, `completed`, `stopped` or `failed`."
    )
    reason: Mapped[str | None] = mapped_column(doc="Why it ended.")
    attrs: Mapped[dict[str, Any]] = mapped_column(doc="A sampler's notes about the study.")
    budget: Mapped[str | None] = mapped_column(
        doc="The budget last asked for, as text; workers that are given none spend this one."
    )
    busy_s: Mapped[float] = mapped_column(
        doc="Seconds with a live lease, up to `busy_since`.", server_default=text("0")
    )
    busy_since: Mapped[datetime | None] = mapped_column(
        doc="Since when a lease has been live without a gap."
    )
    created_at: Mapped[datetime] = mapped_column(doc="When it was created, UTC.")


class DerivedStudy(Base):
    """That a study was made from another one."""

    __tablename__ = "derived_studies"
    __table_args__ = (Index(None, "base_id"),)

    study_id: Mapped[int] = mapped_column(
        ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True, doc="The derived study."
    )
    base_id: Mapped[int] = mapped_column(
        ForeignKey("studies.id", ondelete="CASCADE"), doc="The study it was made from."
    )
    purpose: Mapped[str] = mapped_column(doc="What for, in one word.")


class SpaceRevision(Base):
    """What could be chosen, with which plugin versions; a plugin's change gives a new one."""

    __tablename__ = "space_revisions"
    __table_args__ = (
        UniqueConstraint("study_id", "number"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True, doc="Key.")
    study_id: Mapped[int] = mapped_column(
        ForeignKey("studies.id", ondelete="CASCADE"), doc="The study."
    )
    number: Mapped[int] = mapped_column(doc="Counts from 1 within the study.")
    choices: Mapped[list[Any]] = mapped_column(doc="Mixer configs that a layer may take.")
    plugins: Mapped[dict[str, Any]] = mapped_column(
        doc="Kind -> [distribution, version] of every mixer."
    )
    created_at: Mapped[datetime] = mapped_column(doc="When it was first used, UTC.")


class Worker(Base):
    """A process that claims trials."""

    __tablename__ = "workers"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - read by SQLAlchemy

    id: Mapped[int] = mapped_column(primary_key=True, doc="Key.")
    name: Mapped[str] = mapped_column(doc="Host and process id, for people.")
    host: Mapped[str] = mapped_column(doc="Host name.")
    pid: Mapped[int] = mapped_column(
        doc="Process id on that host; 0 for a worker that a service writes for."
    )
    devices: Mapped[list[Any]] = mapped_column(doc="Devices it trains on.")
    slots: Mapped[int] = mapped_column(
        doc="Trials it can have in hand at once.", server_default=text("1")
    )
    started_at: Mapped[datetime] = mapped_column(doc="When it registered, UTC.")
    last_seen_at: Mapped[datetime | None] = mapped_column(
        doc="Its last sign of life while idle, UTC; busy ones beat with their attempts."
    )
    closed_at: Mapped[datetime | None] = mapped_column(
        doc="When it said goodbye; none after a kill."
    )


class Trial(Base):
    """One architecture trained with one seed."""

    __tablename__ = "trials"
    __table_args__ = (
        UniqueConstraint("study_id", "number"),
        UniqueConstraint("study_id", "arch_id", "training_key", "seed_index"),
        one_of("phase", PHASES),
        one_of("state", TRIAL_STATES),
        Index(None, "study_id", "state", "number"),
        Index(None, "study_id", "phase", "training_flops"),
        Index(None, "arch_id", "training_key"),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True, doc="Key; never used twice.")
    study_id: Mapped[int] = mapped_column(
        ForeignKey("studies.id", ondelete="CASCADE"), doc="The study."
    )
    revision_id: Mapped[int] = mapped_column(
        ForeignKey("space_revisions.id"), doc="Space revision it was proposed in."
    )
    number: Mapped[int] = mapped_column(doc="Counts from 0 within the study.")
    phase: Mapped[str] = mapped_column(doc="`recipe`, `baseline`, `screen`, `search` or `confirm`.")
    role: Mapped[str | None] = mapped_column(doc="Name of the baseline or finalist.")
    state: Mapped[str] = mapped_column(
        doc="`proposed`, `queued`, `running`; final: `completed`, `pruned`, `diverged`, `failed`, "
        "`stopped`."
    )
    reason: Mapped[str | None] = mapped_column(doc="Why it is in that state.")
    arch_id: Mapped[str | None] = mapped_column(doc="Id of the architecture.")
    code: Mapped[str | None] = mapped_column(doc="One character a layer, for reading.")
    notation: Mapped[str | None] = mapped_column(doc="The mixers in compact notation.")
    mixers: Mapped[list[Any] | None] = mapped_column(
        Document, doc="Notation of each layer, first layer first."
    )
    n_layers: Mapped[int | None] = mapped_column(doc="Number of blocks.")
    spec: Mapped[dict[str, Any] | None] = mapped_column(
        Document, doc="The encoder spec, canonical JSON."
    )
    seed: Mapped[int | None] = mapped_column(doc="Training seed.")
    seed_index: Mapped[int | None] = mapped_column(
        doc="0 for the first seed of an architecture, k for its k-th repeat."
    )
    recipe: Mapped[dict[str, Any]] = mapped_column(
        doc="What its training changes of the study's recipe; empty = nothing.",
        server_default=text("'{}'"),
    )
    training_key: Mapped[str | None] = mapped_column(
        doc="Hash of all that a result depends on besides architecture and seed."
    )
    sampler_params: Mapped[dict[str, Any]] = mapped_column(doc="Parameters as suggested.")
    sampler_attrs: Mapped[dict[str, Any]] = mapped_column(doc="The sampler's notes on it.")
    worker_id: Mapped[int | None] = mapped_column(
        ForeignKey("workers.id"), doc="Worker of the newest attempt."
    )
    attempt: Mapped[int] = mapped_column(doc="Number of the newest attempt.")
    training_flops: Mapped[int] = mapped_column(
        FlopCount, doc="FLOPs reserved for its training; once it ended with a result, those spent."
    )
    requested_steps: Mapped[int | None] = mapped_column(
        doc="Training steps of the rung that it is to reach; none = all of the study's."
    )
    route: Mapped[dict[str, Any] | None] = mapped_column(
        Document, doc="How far the stack carries information, as found before training."
    )
    steps: Mapped[int | None] = mapped_column(doc="Training steps made.")
    sequences: Mapped[int | None] = mapped_column(doc="Sequences trained on.")
    seconds: Mapped[float | None] = mapped_column(doc="Seconds of the trial.")
    diverged_at: Mapped[int | None] = mapped_column(
        doc="First step whose report held a non-finite value."
    )
    environment_id: Mapped[int | None] = mapped_column(
        ForeignKey("environments.id"), doc="Versions and machine it ran with."
    )
    reused_from: Mapped[int | None] = mapped_column(
        ForeignKey("trials.id", ondelete="SET NULL"),
        doc="Trial of another study whose result this is.",
    )
    error: Mapped[str | None] = mapped_column(doc="First line of the error of a failed trial.")
    created_at: Mapped[datetime] = mapped_column(doc="When it was reserved, UTC.")
    started_at: Mapped[datetime | None] = mapped_column(doc="When it first ran, UTC.")
    finished_at: Mapped[datetime | None] = mapped_column(doc="When it ended, UTC.")


class Attempt(Base):
    """One try at a trial, with the lease that protects it."""

    __tablename__ = "attempts"
    __table_args__ = (
        Index(
            "ix_attempts_live",
            "study_id",
            "lease_expires_at",
            sqlite_where=text("ended_at IS NULL"),
            postgresql_where=text("ended_at IS NULL"),
        ),
    )

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, doc="The trial."
    )
    number: Mapped[int] = mapped_column(
        primary_key=True,
        autoincrement=False,
        doc="Counts from 1 within the trial; the lease's fencing token.",
    )
    study_id: Mapped[int] = mapped_column(
        ForeignKey("studies.id", ondelete="CASCADE"), doc="The study."
    )
    worker_id: Mapped[int] = mapped_column(ForeignKey("workers.id"), doc="Who holds the lease.")
    started_at: Mapped[datetime] = mapped_column(doc="When it was claimed, UTC.")
    heartbeat_at: Mapped[datetime] = mapped_column(doc="Last sign of life, UTC.")
    lease_expires_at: Mapped[datetime] = mapped_column(
        doc="When the lease ends, by the database's clock, UTC."
    )
    resumed_step: Mapped[int] = mapped_column(
        doc="Step of the checkpoint that it went on from; 0 = from the start.",
        server_default=text("0"),
    )
    step: Mapped[int] = mapped_column(doc="Training steps reported so far.")
    n_steps: Mapped[int | None] = mapped_column(doc="Training steps planned.")
    ended_at: Mapped[datetime | None] = mapped_column(doc="When it ended, UTC; none = live.")
    outcome: Mapped[str | None] = mapped_column(
        doc="`completed`, `pruned`, `diverged`, `stopped`, `failed`, `reused`, `preempted` or "
        "`lost`."
    )
    cause: Mapped[str | None] = mapped_column(
        doc="`error`, `out_of_memory`, `hung`, `lost` or `proof`."
    )
    message: Mapped[str | None] = mapped_column(doc="What happened, one line.")
    traceback: Mapped[str | None] = mapped_column(doc="The whole error.")
    result: Mapped[dict[str, Any] | None] = mapped_column(
        Document,
        doc="A result that came after the attempt had ended otherwise, kept for the record.",
    )


class Token(Base):
    """A key to the service; what is kept is its hash."""

    __tablename__ = "tokens"
    __table_args__ = (
        one_of("role", ("read", "submit", "admin")),
        {"sqlite_autoincrement": True},
    )

    id: Mapped[int] = mapped_column(primary_key=True, doc="Key.")
    name: Mapped[str] = mapped_column(unique=True, doc="Whose it is, for people.")
    role: Mapped[str] = mapped_column(doc="`read`, `submit` or `admin`.")
    token_hash: Mapped[str] = mapped_column(unique=True, doc="SHA-256 of the token, in hex.")
    created_at: Mapped[datetime] = mapped_column(doc="When it was made, UTC.")
    last_used_at: Mapped[datetime | None] = mapped_column(doc="When it was last shown, UTC.")
    revoked_at: Mapped[datetime | None] = mapped_column(doc="When it was revoked, UTC.")


class Audit(Base):
    """Something that was asked of the service and could change what is stored."""

    __tablename__ = "audit"
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012 - read by SQLAlchemy

    id: Mapped[int] = mapped_column(primary_key=True, doc="Key.")
    at: Mapped[datetime] = mapped_column(doc="When, UTC.")
    actor: Mapped[str] = mapped_column(doc="Name of the token, or `local`.")
    action: Mapped[str] = mapped_column(doc="What was asked.")
    subject: Mapped[str | None] = mapped_column(doc="The study, trial or token it concerned.")
    outcome: Mapped[str] = mapped_column(doc="`done`, or why it was refused.")


SUM_OF_FLOPS = func.sum(cast(Trial.training_flops, Double))
"""A float: a sum of integers beyond 64 bits is an error in SQLite."""


class TrialBlock(Base):
    """One layer of a trial's architecture."""

    __tablename__ = "trial_blocks"
    __table_args__ = (Index(None, "kind", "layer"),)

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True, doc="The trial."
    )
    layer: Mapped[int] = mapped_column(
        primary_key=True, autoincrement=False, doc="Counts from 0 at the input."
    )
    kind: Mapped[str] = mapped_column(doc="Mixer kind.")
    config: Mapped[dict[str, Any]] = mapped_column(doc="Mixer config, canonical JSON.")
    notation: Mapped[str] = mapped_column(doc="Mixer in compact notation.")
    distribution: Mapped[str | None] = mapped_column(doc="Package that supplied the mixer.")
    version: Mapped[str | None] = mapped_column(doc="Version of that package.")


class Architecture(Base):
    """An architecture's results over its seeds; the finishing transaction keeps it up to date."""

    __tablename__ = "architectures"
    __table_args__ = (
        Index(None, "study_id", "score", "arch_id"),
        Index(
            "ix_architectures_front",
            "study_id",
            sqlite_where=text("is_pareto = 1"),
            postgresql_where=text("is_pareto"),
        ),
    )

    study_id: Mapped[int] = mapped_column(
        ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True, doc="The study."
    )
    arch_id: Mapped[str] = mapped_column(primary_key=True, doc="Id of the architecture.")
    code: Mapped[str] = mapped_column(doc="One character a layer, for reading.")
    notation: Mapped[str] = mapped_column(doc="The mixers in compact notation.")
    n_layers: Mapped[int] = mapped_column(doc="Number of blocks.")
    uniform_kind: Mapped[str | None] = mapped_column(
        doc="Mixer kind of all layers; none when they differ."
    )
    is_baseline: Mapped[bool] = mapped_column(doc="Whether a baseline has this architecture.")
    n: Mapped[int] = mapped_column(doc="Completed trials with the objective on selection.")
    mean: Mapped[float] = mapped_column(doc="Mean objective on selection.")
    sd: Mapped[float | None] = mapped_column(doc="Standard deviation over seeds; none if n < 2.")
    score: Mapped[float] = mapped_column(doc="`mean`, negated when maximized: least is best.")
    best: Mapped[float] = mapped_column(doc="Best objective on selection of one trial.")
    best_trial_id: Mapped[int] = mapped_column(
        ForeignKey("trials.id", ondelete="CASCADE"), doc="The trial that reached it."
    )
    test_n: Mapped[int] = mapped_column(doc="Completed trials read on test.")
    test_mean: Mapped[float | None] = mapped_column(doc="Mean objective on test.")
    test_sd: Mapped[float | None] = mapped_column(doc="Standard deviation on test.")
    params: Mapped[int | None] = mapped_column(doc="Parameters.")
    flops: Mapped[int | None] = mapped_column(doc="Forward FLOPs of one sequence.")
    latency_s: Mapped[float | None] = mapped_column(doc="Median latency of the best trial.")
    probe: Mapped[float | None] = mapped_column(doc="Final probe of the best trial.")
    is_pareto: Mapped[bool] = mapped_column(
        doc="No other is as good in mean, FLOPs and parameters and better in one."
    )

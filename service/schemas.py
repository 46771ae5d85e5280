"""What goes in and out: strict requests, described answers. Never rows of the database."""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field

from search.rows import PHASES, STUDY_STATES, TRIAL_STATES, Phase, StudyState, TrialState
from search.spec.study import StudySpec

Item = TypeVar("Item")
LARGEST_ID = 2**53 - 1  # what every JSON reader takes as a whole number
MOST_PAGE = 500
STUDY_NAME = r"^[A-Za-z0-9][A-Za-z0-9 ._+-]{0,127}$"
PLAIN_TEXT = r"^[^\x00-\x1f\x7f/]+$"

StudyPath = Annotated[
    str,
    Path(
        description="Name of the study; its id where no study has that name.",
        min_length=1,
        max_length=200,
        pattern=PLAIN_TEXT,
        examples=["demo"],
    ),
]
IdPath = Annotated[int, Path(ge=1, le=LARGEST_ID, examples=[1])]
NumberPath = Annotated[int, Path(ge=0, le=LARGEST_ID, examples=[0])]
KindPath = Annotated[
    str, Path(min_length=1, max_length=200, pattern=PLAIN_TEXT, examples=["attention"])
]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000, description="Counts from 1.")]
PageSize = Annotated[int, Query(ge=1, le=MOST_PAGE, description="Items of a page.")]
Text = Annotated[str, Query(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Budgets = Annotated[
    str,
    Field(
        min_length=1,
        max_length=40,
        description="Trials (`20`), time (`2h`) or training FLOPs (`3e15flop`), all in all.",
        examples=["40"],
    ),
]


class Request(BaseModel):
    """Base of every request: unknown keys, wrong types and numbers that are not finite are 422."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Described(BaseModel):
    """Base of every answer."""

    model_config = ConfigDict(from_attributes=True)


class Page(BaseModel, Generic[Item]):
    """A part of a list."""

    items: list[Item] = Field(description="The items of this page.")
    total: int = Field(description="Items of all pages.", examples=[1])
    page: int = Field(description="Counts from 1.", examples=[1])
    page_size: int = Field(description="Most items of a page.", examples=[50])


class Spec(Request):
    """A study to be looked at."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "two-layers",
                    "spec": {
                        "encoder": {"d_model": 32, "n_layers": 2, "d_ff": 64},
                        "space": {"choices": ["attention", "sepconv"]},
                    },
                }
            ]
        }
    )

    name: Annotated[str, Field(pattern=STUDY_NAME, examples=["two-layers"])] | None = None
    """The study is its name: the same request again changes nothing. Left out: from the spec."""
    spec: dict[str, Any] = Field(
        default_factory=dict,
        description="The study spec, as in a study file; what is left out has its default. Its "
        "JSON Schema is `GET /api/v1/schemas/study`.",
    )


class Submission(Spec):
    """A study to be worked on."""

    budget: Budgets | None = None


class PlanRequest(Spec):
    """A study to be timed."""

    budget: Budgets


class BudgetChange(Request):
    """How much a study may spend, all in all."""

    budget: Budgets


class SqlRequest(Request):
    """A query."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"sql": "SELECT code, mean FROM leaderboard ORDER BY place LIMIT 5"}]
        }
    )

    sql: Annotated[str, Field(min_length=1, max_length=20_000)]
    """One SELECT on the views; `GET /api/v1/query/views` lists them."""
    limit: Annotated[int, Field(ge=1, le=LARGEST_ID)] = 1000
    """Most rows; the service's own limit holds too."""
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 10.0
    """Longest time; the service's own limit holds too."""


class Login(Request):
    """A token, to be kept as a cookie."""

    token: Annotated[str, Field(min_length=1, max_length=256, examples=["mixsearch_..."])]


class Session(BaseModel):
    """Who asks."""

    name: str = Field(description="Name of the token; `local` on the machine without one.")
    role: Literal["read", "submit", "admin"]
    csrf: str = Field(description="To be sent back as `X-CSRF-Token`; empty without a cookie.")


class StudySummary(Described):
    """A study in a list."""

    id: int = Field(examples=[1])
    name: str = Field(examples=["demo"])
    objective: str = Field(description="Metric that ranks.", examples=["loss"])
    direction: Literal["minimize", "maximize"]
    state: StudyState = Field(description=f"One of {', '.join(STUDY_STATES)}.")
    reason: str | None = Field(description="Why it ended or rests.")
    budget: str | None = Field(description="What was asked for; none where workers decide.")
    created_at: str = Field(description="UTC.", examples=["2026-01-31T12:00:00+00:00"])
    n_trials: int = Field(description="Trials, whatever their outcome.")
    n_completed: int = Field(description="Trials with a result.")
    n_running: int = Field(description="Trials in hand of a worker.")
    busy_s: float = Field(description="Seconds with a trial in hand of a worker.")
    base: str | None = Field(description="Study that this one was derived from.")
    purpose: str | None = Field(description="What it was derived for.")


class StudyDocument(StudySummary):
    """A study in full."""

    spec: dict[str, Any] = Field(description="The study spec.")
    space_revision: int = Field(description="Rises when a mixer's version changes.")
    plugins: dict[str, list[str]] = Field(description="Distribution and version by mixer kind.")
    states: dict[str, int] = Field(description="Trials by state.")
    attrs: dict[str, Any] = Field(description="A sampler's notes, and the hash of the data.")
    looks: list[int] = Field(description="Confirmation trials at each answer that read them.")
    last_event: int = Field(description="Id of its newest event, to follow from.")


class StudyForWork(StudySummary):
    """A study as a worker needs it."""

    spec: dict[str, Any] = Field(description="The study spec.")
    space_revision: int = Field(description="Rises when a mixer's version changes.")
    plugins: dict[str, list[str]] = Field(description="Distribution and version by mixer kind.")
    attrs: dict[str, Any] = Field(description="A sampler's notes, and the hash of the data.")


class Validated(BaseModel):
    """A valid study, not stored."""

    name: str = Field(description="The name it would have.")
    exists: bool = Field(description="Whether a study of that name is there.")
    spec: dict[str, Any] = Field(description="The spec with every default in it.")
    objective: str
    direction: Literal["minimize", "maximize"]
    unit: str = Field(description="Unit of the objective and of the tolerance.")
    layers: list[list[str]] = Field(description="Choices of each layer, in notation.")
    space_size: int | None = Field(description="Architectures; none where beyond 2^53.")


class PlanDocument(BaseModel):
    """What a budget buys."""

    plan: dict[str, Any] = Field(description="The numbers, as `search run --dry-run --json`.")
    words: list[str] = Field(description="The same in sentences.")


class ChangeDocument(Described):
    """What became of a study's state."""

    study: str
    before: StudyState
    state: StudyState
    changed: bool = Field(description="Whether there was anything to change.")
    running: int = Field(description="Trials in hand of a worker.")
    queued: int = Field(description="Trials that wait for an attempt.")


class TrialSummary(BaseModel):
    """A row of the view `trials_flat`."""

    trial: int = Field(description="Id of the trial.")
    study: str
    number: int
    phase: Phase = Field(description=f"One of {', '.join(PHASES)}.")
    role: str | None
    state: TrialState = Field(description=f"One of {', '.join(TRIAL_STATES)}.")
    reason: str | None
    arch_id: str | None
    code: str | None
    notation: str | None
    n_layers: int | None
    seed: int | None
    seed_index: int | None
    objective: str
    direction: Literal["minimize", "maximize"]
    selection: float | None
    test: float | None
    params: int | None
    flops: int | None
    step_s: float | None
    latency_s: float | None
    device: str | None
    probe: float | None
    peak_memory: int | None
    recipe: str
    steps: int | None
    seconds: float | None
    training_flops: int
    reused_from: int | None
    worker: str | None
    error: str | None
    created_at: str
    finished_at: str | None


class Points(BaseModel):
    """A curve, thinned out: of each part its least and its greatest value are kept."""

    split: str
    metric: str
    total: int = Field(description="Points stored.")
    points: list[tuple[int, float]] = Field(description="(step, value) by rising step.")


class Rows(BaseModel):
    """Rows of a view."""

    columns: dict[str, str] = Field(description="Columns and what they mean.")
    rows: list[dict[str, Any]]


class Document(BaseModel):
    """An answer of the library as it prints it."""

    model_config = ConfigDict(extra="allow")


class QueryDocument(BaseModel):
    """Rows of a query."""

    columns: list[str]
    rows: list[list[Any]] = Field(description="Values in the columns' order.")
    truncated: bool = Field(description="Whether there were more rows than allowed.")


class ArtifactDocument(BaseModel):
    """A file of a trial."""

    id: int
    kind: str
    sha256: str | None
    size_bytes: int | None
    created_at: str


class WorkerDocument(BaseModel):
    """A process that claims trials."""

    id: int
    name: str
    host: str
    pid: int
    devices: list[str]
    slots: int
    started_at: str
    last_seen_at: str | None
    closed_at: str | None
    alive: bool = Field(description="Whether it gave a sign of life lately.")
    trials: list[int] = Field(description="Ids of the trials in its hands.")


class EventDocument(BaseModel):
    """Something that happened."""

    id: int = Field(description="Rises with every event.")
    study_id: int
    trial_id: int | None
    kind: str
    at: str
    data: dict[str, Any] | None


def spec_schema() -> dict[str, Any]:
    """The JSON Schema of a study spec, with the mixers that are installed now."""
    return StudySpec.model_json_schema()

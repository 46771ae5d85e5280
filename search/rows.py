"""What the store gives and takes, as plain frozen dataclasses.

No SQL and no pydantic here: the answers, the strategies, the plots and a client behind HTTP all
work on these. Specs stay plain JSON documents, so a stored trial whose mixer is no longer installed
can still be listed, queried and compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, get_args

Phase = Literal["recipe", "baseline", "screen", "search", "confirm"]
TrialState = Literal[
    "proposed", "queued", "running", "completed", "pruned", "diverged", "failed", "stopped"
]
StudyState = Literal["running", "paused", "completed", "stopped", "failed"]
CommitOutcome = Literal["running", "reused", "duplicate", "no room", "lost"]
FailOutcome = Literal["queued", "failed", "lost"]

PHASES: tuple[Phase, ...] = get_args(Phase)
TRIAL_STATES: tuple[TrialState, ...] = get_args(TrialState)
STUDY_STATES: tuple[StudyState, ...] = get_args(StudyState)
FINAL_STATES: frozenset[TrialState] = frozenset(
    {"completed", "pruned", "diverged", "failed", "stopped"}
)


@dataclass(frozen=True, slots=True)
class DocumentSums:
    """A metric by document, for the part of its error that comes from the choice of documents.

    The groups are the same, in the same order, in all trials of a study.

    Attributes:
        n: Targets in each group of documents.
        sums: Sum of the metric's values over the targets of each group.
    """

    n: tuple[int, ...]
    sums: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """A forward pass as it was timed, and what it was timed on.

    Attributes:
        median: Median seconds of a pass.
        low: The 10 % point of the passes.
        high: The 90 % point.
        n: Passes timed.
        batch_size: Sequences in a pass.
        seq_len: Tokens per sequence.
        device: The device.
        dtype: The number format.
    """

    median: float
    low: float
    high: float
    n: int
    batch_size: int
    seq_len: int
    device: str
    dtype: str

    @property
    def conditions(self) -> tuple[str, str, int, int]:
        """Device, number format, batch and length: only times under equal ones compare."""
        return self.device, self.dtype, self.batch_size, self.seq_len


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """One trial: one architecture trained with one seed.

    Attributes:
        id: Unique in the store.
        study: Name of the study.
        number: Counts from 0 within the study.
        phase: What this slot of the budget was for.
        role: Name of the baseline or of the finalist, else None.
        state: `proposed` has no architecture yet, `queued` waits for a (new) attempt, `running`
            trains; the rest are final.
        reason: Why it ended so, in words.
        arch_id: Id of the architecture; None while proposed.
        code: One character a layer, for reading ("SSAA").
        notation: Compact notation of the whole stack ("sepconv*2, attention*2").
        mixers: Notation of each layer's mixer, first layer first.
        n_layers: Number of blocks.
        seed: Training seed.
        seed_index: 0 for an architecture's first seed, k for its k-th repeat.
        recipe: What its training changed of the study's recipe, by field; empty = nothing.
        route: How far its stack carries information (see `search.store.routes`); None in older
            stores.
        selection: Metrics on the selection split, by name; empty unless evaluated.
        test: Metrics on the test split, by name; empty unless evaluated.
        documents: The objective's sums by document, by split; empty unless asked for.
        params: Trainable parameters.
        flops: FLOPs of one forward pass of one sequence.
        step_s: Median seconds of a training step.
        latency_s: Median seconds of a forward pass at the recorded batch size.
        latency: The same with its spread and what it was measured on.
        peak_memory: Peak bytes of memory of the trial.
        probe: Contextual-mapping probe after training (median gap), None where absent.
        probe_init: The same of the untrained network.
        steps: Training steps made.
        seconds: Seconds that the training took.
        reused_from: Id of the trial of another study whose result this is.
        curve: (step, objective on the selection split), by rising step.
        rungs: Metrics on the selection split by rung of the study, as far as it got.
        params_json: The sampler's own parameters, as suggested.
        sampler_attrs: The sampler's own notes about the trial.
        worker: Name of the worker that ran (or runs) it.
        error: First line of the error of a failed trial.
        cause: What a failed trial failed of: `error`, `out_of_memory`, `hung`, `lost`, `proof`.
    """

    id: int
    study: str
    number: int
    phase: Phase
    state: TrialState
    role: str | None = None
    reason: str | None = None
    arch_id: str | None = None
    code: str = ""
    notation: str = ""
    mixers: tuple[str, ...] = ()
    n_layers: int = 0
    seed: int = 0
    seed_index: int = 0
    recipe: Mapping[str, float] = field(default_factory=dict)
    route: Mapping[str, Any] | None = None
    selection: Mapping[str, float] = field(default_factory=dict)
    test: Mapping[str, float] = field(default_factory=dict)
    documents: Mapping[str, DocumentSums] = field(default_factory=dict)
    params: int | None = None
    flops: int | None = None
    step_s: float | None = None
    latency_s: float | None = None
    latency: Latency | None = None
    peak_memory: int | None = None
    probe: float | None = None
    probe_init: float | None = None
    steps: int | None = None
    seconds: float | None = None
    reused_from: int | None = None
    curve: tuple[tuple[int, float], ...] = ()
    rungs: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    params_json: Mapping[str, Any] = field(default_factory=dict)
    sampler_attrs: Mapping[str, Any] = field(default_factory=dict)
    worker: str | None = None
    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True, kw_only=True)
class StudyRow:
    """One study.

    Attributes:
        id: Unique in the store.
        name: A study is its name.
        spec: The study spec as its JSON document (`StudySpec.model_validate(row.spec)`).
        objective: Name of the metric that ranks.
        direction: `minimize` or `maximize`.
        state: `paused` and `stopped` studies hand out no trial.
        reason: Why it ended (budget, space used up, goal reached, stopped, failed).
        space_revision: 1 for the first; rises when a plugin's version changes.
        plugins: Distribution and version of every mixer kind of that revision.
        attrs: Notes that a sampler keeps about the whole study.
        budget: The budget last asked for, as text; None before any.
        created_at: UTC.
        n_trials: Rows of `trials`, whatever their outcome.
        n_completed: Those that ended with a result.
        n_running: Those with a live lease.
        busy_s: Seconds during which the study had a live lease.
        base: Name of the study that this one was derived from.
        purpose: What it was derived for.
    """

    id: int
    name: str
    spec: Mapping[str, Any]
    objective: str
    direction: Literal["minimize", "maximize"]
    state: StudyState
    reason: str | None
    space_revision: int
    plugins: Mapping[str, tuple[str, str]]
    attrs: Mapping[str, Any]
    created_at: datetime
    budget: str | None = None
    n_trials: int = 0
    n_completed: int = 0
    n_running: int = 0
    busy_s: float = 0.0
    base: str | None = None
    purpose: str | None = None


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a budget is compared with, read in the transaction that reserves.

    Attributes:
        by_phase: Trials started, by phase.
        started: Trials started in all, whatever their outcome; attempts are not trials.
        busy_s: Seconds during which the study had a live lease, over all calls.
        flops: Training FLOPs spent by ended trials and reserved for the others.
    """

    by_phase: Mapping[str, int]
    started: int
    busy_s: float
    flops: int


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A worker's right to a trial until its lease ends.

    Attributes:
        study_id: The study.
        trial_id: The trial.
        number: The trial's number in the study.
        phase: What the trial is for.
        token: Fencing token: the number of the attempt. A call with an older one changes nothing.
        lease_s: The lease ends so long after the last heartbeat.
        spec: Encoder spec (JSON document) of a queued trial that waits for a new attempt; None for
            a fresh reservation, which needs `commit`.
        seed: Training seed of a queued trial.
        seed_index: Which of the architecture's seeds that is.
        recipe: What the training of a queued trial changes of the study's recipe.
        role: Name of the baseline or finalist of a queued trial.
        until: The rung at which the training is to end; None = it is trained to its end.
        promoted_from: The rung from which a promoted trial goes on; None for any other.
    """

    study_id: int
    trial_id: int
    number: int
    phase: Phase
    token: int
    lease_s: float
    spec: Mapping[str, Any] | None = None
    seed: int | None = None
    seed_index: int | None = None
    recipe: Mapping[str, float] = field(default_factory=dict)
    role: str | None = None
    until: int | None = None
    promoted_from: int | None = None


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What a worker gets that asks for work.

    Attributes:
        claim: The trial; None where there is nothing to start.
        counts: What the budget was compared with; None where it needed no look: the study rests, or
            a trial was handed out that is in the counts already.
    """

    claim: Claim | None = None
    counts: Counts | None = None


@dataclass(frozen=True, kw_only=True)
class Promotion:
    """That a trial which ended at a rung is to go on.

    Attributes:
        trial_id: The trial.
        steps: Steps that it has made; where it has made more, somebody promoted it already.
        until: The rung at which it is to end now; None = it is trained to its end.
        until_steps: The same in steps.
        most_flops: What the study may spend and reserve in all; None = no limit.
    """

    trial_id: int
    steps: int
    until: int | None
    until_steps: int
    most_flops: float | None = None


@dataclass(frozen=True, kw_only=True)
class VerdictRow:
    """One line of the answer: a contrast with its interval and its verdict.

    Attributes:
        contrast: What is compared with what.
        estimate: Difference, in `unit`; None where nothing can be estimated.
        low: Lower end of the interval.
        high: Upper end of the interval.
        unit: Unit of the numbers.
        n: Runs behind it.
        verdict: The verdict's words.
        kind: `confirmatory` for what was declared before the run and read on the test split.
        p_value: Adjusted for all contrasts of the family; None where there is none.
    """

    contrast: str
    estimate: float | None
    low: float | None
    high: float | None
    unit: str
    n: int
    verdict: str
    kind: Literal["confirmatory", "exploratory"] = "confirmatory"
    p_value: float | None = None

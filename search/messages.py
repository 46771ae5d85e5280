"""What a worker and its training process say to each other, and what a trial hands back.

Frozen pydantic models that are JSON on the wire. Numbers are finite: a NaN or an infinity anywhere
is a validation error, so that nothing non-finite can reach a store or a page. Units: seconds,
bytes, FLOPs = 2 x multiply-accumulate. Importing this module does not import torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from mixers.config import FrozenModel, Items
from mixers.spec import EncoderSpec
from search.rows import DocumentSums
from search.spec.study import StudySpec
from search.tasks.base import Split

Outcome = Literal["completed", "pruned", "diverged", "stopped"]
Cause = Literal["error", "out_of_memory", "hung", "lost", "proof"]
OneLine = Annotated[str, StringConstraints(pattern=r"^[^\r\n]*$")]


class CheckpointPlan(FrozenModel):
    """Where and how often a trial's training is saved, so that another attempt can go on.

    ``folder`` is the trial's own, ``every_s`` the seconds between two checkpoints. ``key`` names
    the training (architecture, training key, seed): a checkpoint of another one is never read.
    ``promised`` is the step from which the trial is known to be able to go on; where nothing so far
    is found, it says so and makes the steps again.
    """

    folder: str
    every_s: Annotated[float, Field(ge=0.0)]
    key: str
    promised: int = 0


class TrialConfig(FrozenModel):
    """All that a training process needs to know of a trial; it needs no database.

    ``seed`` decides initialisation, order and masking of the training data and dropout; the
    study's own seed draws evaluation windows, masks and probe contexts. ``splits`` are read at the
    end of a completed trial. With ``checkpoints`` the training goes on from the newest one and
    saves its own; ``until`` ends it after that step as ``pruned``, with its checkpoint kept.
    ``compile`` is for the steps of the training alone.
    """

    study: StudySpec
    spec: EncoderSpec
    seed: Annotated[int, Field(ge=0)]
    splits: Items[Split] = ("selection",)
    threads: Annotated[int, Field(ge=1)] = 1
    device: str = "cpu"
    cache_dir: str
    check_proof: bool = True
    checkpoints: CheckpointPlan | None = None
    until: Annotated[int, Field(ge=1)] | None = None
    compile: bool = False


class Timing(FrozenModel):
    """A measured time with its spread, and what it was measured on.

    ``low`` and ``high`` are the 10 % and 90 % points of the ``n`` samples, in seconds.
    """

    median: float
    low: float
    high: float
    n: int = Field(ge=1)
    batch_size: int
    seq_len: int
    device: str
    dtype: str

    @classmethod
    def of(
        cls, samples: Sequence[float], *, batch_size: int, seq_len: int, device: str, dtype: str
    ) -> Timing:
        """Summarises samples (seconds) by order statistics, interpolated between neighbours.

        Raises:
            ValueError: no sample was given.
        """
        if not samples:
            raise ValueError("a timing needs at least one sample")
        ordered = sorted(samples)
        return cls(
            median=_quantile(ordered, 0.5),
            low=_quantile(ordered, 0.1),
            high=_quantile(ordered, 0.9),
            n=len(ordered),
            batch_size=batch_size,
            seq_len=seq_len,
            device=device,
            dtype=dtype,
        )


class Progress(FrozenModel):
    """The training stands after ``step`` of ``steps`` optimiser steps.

    ``checkpoint_step`` is the step of the newest checkpoint, None while there is none.
    """

    step: int
    steps: int
    checkpoint_step: int | None = None


class Report(FrozenModel):
    """Metrics of a split after ``step`` steps.

    The train split's ``loss`` is the mean over the steps since the report before.
    """

    step: int
    split: Literal["train", "selection"]
    metrics: dict[str, float]


class Resumed(FrozenModel):
    """This attempt went on from a checkpoint after ``step`` steps; sent once, before all else."""

    step: int


class Warned(FrozenModel):
    """Something went wrong that the trial can do without, in words."""

    text: OneLine


Message = Progress | Report | Resumed | Warned
"""What a trial says while it runs."""


class Costs(FrozenModel):
    """What an architecture costs.

    ``flops`` is the forward pass of one sequence, from the mixers' formulas. ``step_s`` is absent
    when the trial ended before a step was timed, ``latency_s`` when it did not complete.
    """

    params: int
    flops: int
    step_s: Timing | None
    latency_s: Timing | None
    peak_memory_bytes: int


class ProbeReading(FrozenModel):
    """Contextual-mapping distinctness of a network at one moment.

    ``readings["probe"]`` is the one number that tables show: the median gap over one-edit pairs
    and unedited positions at the last block (not its logarithm). A reading is None where its
    definition has no value.
    """

    when: Literal["init", "final"] = "init"
    readings: dict[str, float | None]
    text: str = ""


class LayerProof(FrozenModel):
    """Which module one layer really ran.

    ``influence`` is a square of "0" and "1", one row of text per output position: which outputs
    move when the token of a column is replaced.
    """

    kind: str
    qualified_class: str
    distribution: str
    version: str
    parameters: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    influence: tuple[str, ...]


class MixerProof(FrozenModel):
    """The layers' proofs, the text they were hashed from and its sha256."""

    sha256: str
    text: str
    layers: tuple[LayerProof, ...]


class TrialResult(FrozenModel):
    """A trial that reached an end of its own: completed, pruned, diverged or stopped.

    ``steps`` and ``sequences`` count what was trained, ``seconds`` the wall time of the trial, over
    all attempts whose work is in it; the last one went on from step ``resumed_step``.
    ``evaluations`` holds the metrics of each split that was read at the end (of what there was
    time for when the trial was stopped: the last selection reading), ``documents`` the sums of
    the study's objective by document, of the same splits. ``proof`` is absent for a
    diverged trial, whose weights answer nothing. ``stages`` says where the seconds went.
    """

    outcome: Outcome
    reason: OneLine
    steps: int
    sequences: int
    seconds: float
    evaluations: dict[Split, dict[str, float]]
    documents: dict[Split, DocumentSums] = Field(default_factory=dict)
    costs: Costs
    probes: tuple[ProbeReading, ...]
    proof: MixerProof | None
    environment: dict[str, str]
    stages: dict[str, float] = Field(default_factory=dict)
    resumed_step: int = 0


class TrialFailure(FrozenModel):
    """A trial that broke: the cause, one line for people and the traceback for the record."""

    cause: Cause
    message: OneLine
    traceback: str = ""


class PlanTiming(FrozenModel):
    """A few steps of an architecture, timed for a plan.

    ``step_s`` is one optimiser step, ``evaluation_s`` one reading of the selection split,
    ``rest_s`` all else that a trial costs once (building, probes, proof, latency).
    """

    step_s: float
    evaluation_s: float
    peak_memory_bytes: int
    rest_s: float = 0.0


def _quantile(ordered: Sequence[float], q: float) -> float:
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)

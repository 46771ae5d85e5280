"""One trial: from a config to a result. Knows neither Optuna nor SQL."""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import torch
from torch import nn

from mixers import count_flops, count_parameters
from mixers.config import canonical_json
from search.devices import choose_precision, device_facts
from search.environment import environment
from search.failure import failure_of
from search.latency import device_name, time_latency
from search.memory import peak_bytes, release, reset_peak
from search.messages import (
    Costs,
    Message,
    PlanTiming,
    ProbeReading,
    Timing,
    TrialConfig,
    TrialFailure,
    TrialResult,
)
from search.probe import probe
from search.proof import mixer_proof
from search.tasks.base import PROBE_CONTEXTS, build_task, task_registry
from search.tasks.evaluation import collect_records, compute_metrics, document_sums
from search.training import Training, autocast, train

if TYPE_CHECKING:
    from search.messages import MixerProof
    from search.rows import DocumentSums
    from search.tasks.base import Split, Task, TaskConfig

Reporter = Callable[[Message], None]
StopAsked = Callable[[], str | None]
Metrics = dict[str, float]
Outcome = TypeVar("Outcome")

# Dropout draws from a stream of its own, so that it does not depend on how many numbers the
# initialisation of an architecture took.
DROPOUT_STREAM = 1 << 32


def run_trial(config: TrialConfig, *, report: Reporter, should_stop: StopAsked) -> TrialResult:
    """Builds, probes, trains, proves and measures one architecture.

    What can be shared by the trials of a study (data, tokenizer, windows, probe contexts) is made
    once per process. Global random states, the thread count and loggers are as before afterwards.

    Args:
        config: the trial.
        report: receives ``Progress`` after each step and ``Report`` at each reading.
        should_stop: asked at step boundaries; a reason ends the trial there as ``stopped``.

    Raises:
        Exception: whatever the task or a mixer raises; see ``attempt``.
    """
    trial = Trial(config)
    with process_settings(config):
        trial.prepare()
        probes = [trial.probe("init")]
        stopped = should_stop()
        training = Training(stopped=stopped)
        if stopped is None:
            training = trial.train(report, should_stop)
        evaluations: dict[Split, Metrics] = {}
        if training.selection:
            evaluations["selection"] = training.selection
        proof, latency = None, None
        if training.diverged is None and training.stopped is None:
            evaluations = trial.evaluate(training)
        if training.diverged is None:
            proof = trial.prove()
        if training.diverged is None and training.stopped is None:
            probes.append(trial.probe("final"))
            latency = trial.time_latency()
        return trial.result(training, evaluations, probes, proof, latency)


def attempt(
    config: TrialConfig, *, report: Reporter, should_stop: StopAsked
) -> TrialResult | TrialFailure:
    """``run_trial``, with whatever a trial can raise turned into its recorded cause."""
    return guarded(lambda: run_trial(config, report=report, should_stop=should_stop))


def guarded(work: Callable[[], Outcome]) -> Outcome | TrialFailure:
    """Does a trial's work; what it raises becomes a failure, and its memory is given back.

    Code of a trial may well call ``sys.exit``: that too is a failure of the trial. Ctrl-C is not
    the trial's: it comes out.
    """
    try:
        return work()
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        failure = failure_of(error)
        # The frames hold the model and its activations.
        error.__traceback__ = None
        return failure
    finally:
        release()


def time_steps(config: TrialConfig, n_steps: int = 12) -> PlanTiming:
    """Times a few training steps and all that a trial does once, for a plan; no result is kept."""
    trial = Trial(config)
    with process_settings(config):
        trial.prepare()
        trial.probe("init")
        recipe = config.study.training.model_copy(update={"steps": n_steps, "validations": 1})
        training = trial.train(lambda message: None, lambda: None, recipe=recipe)
        trial.prove()
        trial.probe("final")
        trial.time_latency()
        spent = trial.stages
        return PlanTiming(
            step_s=float(np.median(training.step_seconds)),
            evaluation_s=spent["evaluate"],
            peak_memory_bytes=peak_bytes(config.device),
            rest_s=sum(spent.values()) - spent["prepare"] - spent["train"] - spent["evaluate"],
        )


@dataclass(frozen=True)
class Prepared:
    """What the trials of one study share in one process."""

    task: Task[Any]
    contexts: torch.Tensor
    vocabulary: torch.Tensor


KEPT_TASKS = 2
SHARED: dict[tuple[object, ...], Prepared] = {}


def prepared_task(config: TaskConfig, seed: int, cache_dir: str) -> Prepared:
    """The task of a study, read and tokenised, with its probe contexts; kept for later trials.

    The class belongs to the key: a notebook may define a task of the same name anew.
    """
    key = (task_registry().load(config.kind), canonical_json(config), seed, cache_dir)
    if key not in SHARED:
        task = build_task(config, seed=seed, cache_dir=Path(cache_dir))
        task.prepare()
        contexts = task.probe_contexts(PROBE_CONTEXTS)
        if len(SHARED) >= KEPT_TASKS:
            SHARED.pop(next(iter(SHARED)))
        SHARED[key] = Prepared(task, contexts, task.probe_vocabulary())
    return SHARED[key]


class Trial:
    """The stages of one trial; ``stages`` holds the seconds of each."""

    def __init__(self, config: TrialConfig) -> None:
        self.started = time.perf_counter()
        self.config = config
        self.study = config.study
        self.device = device_facts(config.device)
        self.precision = choose_precision(self.study.training.precision, self.device)
        self.metrics = self.study.trained_metrics
        self.stages: dict[str, float] = {}
        self.documents: dict[Split, DocumentSums] = {}

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time of a block to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - start

    def prepare(self) -> None:
        """Gets the shared task and builds the model from the seed."""
        with self.stage("prepare"):
            shared = prepared_task(self.study.task, self.study.seed, self.config.cache_dir)
            self.task, self.shared = shared.task, shared
        with self.stage("build"):
            self.model: nn.Module = self.task.build_model(self.config.spec)
            self.model.to(torch.device(self.config.device))
        reset_peak(self.config.device)

    def train(self, report: Reporter, should_stop: StopAsked, *, recipe: Any = None) -> Training:
        """Trains the model; time spent on evaluations is a stage of its own."""
        torch.manual_seed(self.config.seed + DROPOUT_STREAM)
        start = time.perf_counter()
        training = train(
            self.model,
            self.task,
            recipe or self.study.training,
            seed=self.config.seed,
            device=self.config.device,
            precision=self.precision,
            read=lambda model: self.read("selection"),
            report=report,
            should_stop=should_stop,
        )
        spent = time.perf_counter() - start
        self.stages["train"] = spent - self.stages.get("evaluate", 0.0)
        return training

    def read(self, split: Split) -> Metrics:
        """The study's metrics on a split; keeps the objective's sums by document."""
        with self.stage("evaluate"), autocast(self.config.device, self.precision):
            records = collect_records(
                self.task,
                self.model,
                split,
                2 * self.study.training.batch_size,
                self.config.device,
            )
            sums = document_sums(records, self.study.objective)
            if sums is not None:
                self.documents[split] = sums
            return compute_metrics(records, self.metrics)

    def evaluate(self, training: Training) -> dict[Split, Metrics]:
        """Reads the splits asked for; a metric that is not finite makes the trial diverged."""
        found: dict[Split, Metrics] = {}
        for split in self.config.splits:
            # The last reading was made at the end: there is nothing new to read.
            known = split == "selection" and training.read_at == training.steps
            metrics = training.selection if known else self.read(split)
            bad = next((name for name in metrics if not math.isfinite(metrics[name])), None)
            if bad is not None:
                training.diverged = f"{bad} on {split} is {metrics[bad]} after the training"
                return found
            found[split] = metrics
        return found

    def probe(self, when: Literal["init", "final"]) -> ProbeReading:
        """Contextual-mapping distinctness, at the study's contexts and edits."""
        with self.stage("probe"):
            return probe(
                self._encoder(),
                self.shared.contexts,
                self.shared.vocabulary,
                seed=self.study.seed,
                when=when,
            )

    def prove(self) -> MixerProof | None:
        """Compares what ran with the spec."""
        if not self.config.check_proof:
            return None
        with self.stage("proof"):
            return mixer_proof(self._encoder(), self.config.spec)

    def time_latency(self) -> Timing:
        """Forward pass of the encoder on one batch of the study's shape."""
        with self.stage("latency"), autocast(self.config.device, self.precision):
            contexts = self.shared.contexts
            rows = torch.arange(self.study.training.batch_size) % len(contexts)
            return time_latency(self._encoder(), contexts[rows].to(self.config.device))

    def result(
        self,
        training: Training,
        evaluations: dict[Split, Metrics],
        probes: list[ProbeReading],
        proof: MixerProof | None,
        latency: Timing | None,
    ) -> TrialResult:
        """Puts everything together."""
        outcome: Literal["completed", "diverged", "stopped"] = "completed"
        if training.diverged is not None:
            outcome = "diverged"
        elif training.stopped is not None:
            outcome = "stopped"
        config, batch_size = self.config, self.study.training.batch_size
        step_s = None
        if training.step_seconds:
            step_s = Timing.of(
                training.step_seconds,
                batch_size=batch_size,
                seq_len=config.spec.max_seq_len,
                device=device_name(torch.device(config.device)),
                dtype="bfloat16" if self.precision == "bf16" else "float32",
            )
        return TrialResult(
            outcome=outcome,
            reason=training.diverged or training.stopped or "",
            steps=training.steps,
            sequences=training.steps * batch_size,
            seconds=time.perf_counter() - self.started,
            evaluations=evaluations,
            documents={
                split: sums for split, sums in self.documents.items() if split in evaluations
            },
            costs=Costs(
                params=count_parameters(config.spec),
                flops=count_flops(config.spec),
                step_s=step_s,
                latency_s=latency,
                peak_memory_bytes=peak_bytes(config.device),
            ),
            probes=tuple(probes),
            proof=proof,
            environment=environment(
                device=self.device,
                threads=config.threads,
                seed=config.seed,
                precision=self.precision,
            ),
            stages=self.stages,
        )

    def _encoder(self) -> nn.Module:
        encoder = self.model.encoder
        assert isinstance(encoder, nn.Module)
        return encoder


@contextlib.contextmanager
def process_settings(config: TrialConfig) -> Iterator[None]:
    """Seeds and threads of one trial; the caller's own come back afterwards."""
    threads = torch.get_num_threads()
    python, numpy = random.getstate(), np.random.get_state()
    device = torch.device(config.device)
    gpus = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus):
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        # Mixers of other people may draw from these.
        random.seed(config.seed)
        np.random.seed(config.seed % 2**32)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            random.setstate(python)
            np.random.set_state(numpy)

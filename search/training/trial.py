"""One trial: from a config to a result. Knows neither Optuna nor SQL."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from mixers import count_flops, count_parameters
from search.devices import choose_precision, device_facts
from search.messages import (
    Costs,
    Message,
    PlanTiming,
    ProbeReading,
    Report,
    Resumed,
    Timing,
    TrialConfig,
    TrialFailure,
    TrialResult,
    Warned,
)
from search.probe import BASES, probe
from search.tasks.evaluation import collect_records, compute_metrics, document_sums
from search.timing.device_lease import DeviceLease, machine_name
from search.timing.latency import device_name, synchronizer, time_latency
from search.training.checkpointing import Keeper, Saved, TrialFacts
from search.training.compiling import compiled, eager
from search.training.environment import environment
from search.training.failure import failure_of
from search.training.loop import Training, autocast, train
from search.training.memory import peak_bytes, release, reset_peak
from search.training.prepared import prepared_task
from search.training.proof import mixer_proof
from search.training.random_states import DROPOUT_STREAM, process_settings
from search.training.stages import Stages

if TYPE_CHECKING:
    from search.messages import MixerProof
    from search.rows import DocumentSums
    from search.spec.study import TrainingSpec
    from search.tasks.base import Split

Reporter = Callable[[Message], None]
StopAsked = Callable[[], str | None]
Metrics = dict[str, float]
NOT_ONCE = ("prepare", "train", "evaluate", "wait", "probe")
"""Stages that a plan leaves out of what a trial costs once; the probes' seconds are projected."""
LONG_PROBE_S = 5.0
"""A plan runs no probe that would take longer."""
Work = TypeVar("Work")


def run_trial(config: TrialConfig, *, report: Reporter, should_stop: StopAsked) -> TrialResult:
    """Builds, probes, trains, proves and measures one architecture.

    What can be shared by the trials of a study (data, tokenizer, windows, probe contexts) is made
    once per process. Global random states, the thread count and loggers are as before afterwards.
    A trial of which a checkpoint is left goes on from there, and reports its readings once more.

    Args:
        config: the trial.
        report: receives ``Progress`` after each step and ``Report`` at each reading.
        should_stop: asked at step boundaries; a reason ends the trial there as ``stopped``.

    Raises:
        Exception: whatever the task or a mixer raises; see ``attempt``.
    """
    trial = Trial(config, report)
    with process_settings(config):
        trial.prepare()
        with trial.lease:
            trial.begin()
            training = Training.of(trial.saved)
            training.stopped = should_stop()
            if training.stopped is None:
                training = trial.train(should_stop)
            evaluations: dict[Split, Metrics] = {}
            if training.selection:
                evaluations["selection"] = training.selection
            proof, latency = None, None
            if training.diverged is None and training.stopped is None:
                evaluations = trial.evaluate(training)
            if training.diverged is None:
                proof = trial.prove()
            if training.diverged is None and training.stopped is None:
                trial.probe("final")
                latency = trial.time_latency()
        return trial.result(training, evaluations, proof, latency)


def attempt(
    config: TrialConfig, *, report: Reporter, should_stop: StopAsked
) -> TrialResult | TrialFailure:
    """``run_trial``, with whatever a trial can raise turned into its recorded cause."""
    return guarded(lambda: run_trial(config, report=report, should_stop=should_stop))


def guarded(work: Callable[[], Work]) -> Work | TrialFailure:
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
    trial = Trial(config, lambda message: None)
    with process_settings(config), trial.lease:
        trial.prepare()
        probes_s = trial.seconds_of_probes()
        recipe = config.study.training.model_copy(update={"steps": n_steps, "validations": 1})
        training = trial.train(lambda: None, recipe=recipe)
        trial.prove()
        trial.time_latency()
        spent = trial.stages.seconds
        return PlanTiming(
            step_s=float(np.median(training.step_seconds)),
            evaluation_s=spent["evaluate"],
            peak_memory_bytes=peak_bytes(config.device),
            rest_s=probes_s + sum(spent[stage] for stage in spent if stage not in NOT_ONCE),
        )


class Trial:
    """The stages of one trial, and the seconds of each.

    Seconds, stages, readings and probes are those of the trial: of this attempt, and of what
    earlier ones left in the checkpoint that it goes on from.
    """

    def __init__(self, config: TrialConfig, report: Reporter) -> None:
        self.started = time.perf_counter()
        self.report = report
        self.config = config
        self.study = config.study
        self.device = device_facts(config.device)
        self.precision = choose_precision(self.study.training.precision, self.device)
        self.metrics = self.study.trained_metrics
        self.stages = Stages()
        self.lease = DeviceLease(machine_name(config.device))
        self.alone = True
        self.documents: dict[Split, DocumentSums] = {}
        self.probes: list[ProbeReading] = []
        self.readings: list[Report] = []
        self.earlier_s = 0.0
        self.earlier_peak = 0
        self.saved: Saved | None = None
        plan = config.checkpoints
        self.keeper = None if plan is None else Keeper(plan, self.stages, self.facts, report)

    def prepare(self) -> None:
        """Gets the shared task and builds the model from the seed."""
        with self.stages.time("prepare"):
            shared = prepared_task(self.study.task, self.study.seed, self.config.cache_dir)
            self.task, self.shared = shared.task, shared
        with self.stages.time("build"):
            self.model: nn.Module = self.task.build_model(self.config.spec)
            self.model.to(torch.device(self.config.device))
        reset_peak(self.config.device)

    def begin(self) -> None:
        """Takes up what an earlier attempt saved; the first one probes the fresh model."""
        if self.keeper is not None:
            self.saved = self.keeper.find()
            self.keeper.warn_of_lost_steps()
        if self.saved is None:
            self.probe("init")
            return
        facts = self.saved.facts
        self.report(Resumed(step=self.saved.state.step))
        # The worker of the earlier attempt may have died with a reading in its hands.
        for reading in facts.reports:
            self.note(reading)
        self.probes = list(facts.probes)
        self.documents = dict(facts.documents)
        self.earlier_s, self.earlier_peak = facts.seconds, facts.peak_memory_bytes
        self.stages.add(facts.stages)

    def train(self, should_stop: StopAsked, *, recipe: TrainingSpec | None = None) -> Training:
        """Trains the model; evaluations and checkpoints are stages of their own."""
        torch.manual_seed(self.config.seed + DROPOUT_STREAM)
        compiling = compiled(self._encoder(), wanted=self.config.compile)
        with self.stages.time("train"), compiling:
            return train(
                self.model,
                self.task,
                recipe or self.study.training,
                seed=self.config.seed,
                device=self.config.device,
                precision=self.precision,
                read=lambda model: self.read("selection"),
                report=self.note,
                should_stop=should_stop,
                rungs=self.study.rungs if recipe is None else (),
                until=self.config.until,
                keeper=self.keeper,
                saved=self.saved,
                give_way=lambda: self.give_way(should_stop),
            )

    def note(self, message: Message) -> None:
        """Passes a message on; readings go into the checkpoints too."""
        if isinstance(message, Report):
            self.readings.append(message)
        self.report(message)

    def facts(self) -> TrialFacts:
        """The trial's own part of a checkpoint."""
        return TrialFacts(
            seconds=self.seconds,
            stages=self.stages.seconds,
            peak_memory_bytes=self.peak,
            probes=tuple(self.probes),
            documents=self.documents,
            reports=tuple(self.readings),
        )

    @property
    def seconds(self) -> float:
        """Wall time of the trial so far."""
        return self.earlier_s + time.perf_counter() - self.started

    @property
    def peak(self) -> int:
        """Peak memory of the trial so far, bytes."""
        return max(self.earlier_peak, peak_bytes(self.config.device))

    def read(self, split: Split) -> Metrics:
        """The study's metrics on a split; keeps the objective's sums by document."""
        precise = autocast(self.config.device, self.precision)
        with self.stages.time("evaluate"), precise, eager():
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
        for split in ("selection",) if training.pruned else self.config.splits:
            # The last reading was made at the end: there is nothing new to read.
            known = split == "selection" and training.read_at == training.steps
            metrics = training.selection if known else self.read(split)
            bad = next((name for name in metrics if not math.isfinite(metrics[name])), None)
            if bad is not None:
                training.diverged = f"{bad} on {split} is {metrics[bad]} after the training"
                return found
            found[split] = metrics
        return found

    def probe(self, when: Literal["init", "final"], contexts: Tensor | None = None) -> None:
        """Contextual-mapping distinctness, at the study's contexts (or others) and edits."""
        with self.stages.time("probe"):
            reading = probe(
                self._encoder(),
                self.shared.contexts if contexts is None else contexts,
                self.shared.vocabulary,
                seed=self.study.seed,
                when=when,
            )
        self.probes.append(reading)

    def seconds_of_probes(self) -> float:
        """What both probes of a trial will take: of one context times their number, where long."""
        before = self.stages.seconds.get("probe", 0.0)
        self.probe("init", self.shared.contexts[:1])
        one = self.stages.seconds["probe"] - before
        n_contexts = min(BASES["small"], len(self.shared.contexts))
        if one * n_contexts > LONG_PROBE_S:
            return 2 * one * n_contexts
        self.probe("init")
        return 2 * (self.stages.seconds["probe"] - before - one)

    def prove(self) -> MixerProof | None:
        """Compares what ran with the spec."""
        if not self.config.check_proof:
            return None
        with self.stages.time("proof"):
            return mixer_proof(self._encoder(), self.config.spec)

    def give_way(self, should_stop: StopAsked) -> bool:
        """Between two steps: lets another trial of this device measure first, if one wants to."""
        settle = synchronizer(torch.device(self.config.device))
        with self.stages.time("wait"):
            return self.lease.give_way(settle, lambda: should_stop() is not None)

    def time_latency(self) -> Timing:
        """Forward pass of the encoder on one batch of the study's shape, alone on the device."""
        contexts = self.shared.contexts
        rows = torch.arange(self.study.training.batch_size) % len(contexts)
        inputs = contexts[rows].to(self.config.device)
        with (
            self.stages.time("wait"),
            self.lease.alone() as self.alone,
            self.stages.time("latency"),
            autocast(self.config.device, self.precision),
        ):
            timing = time_latency(self._encoder(), inputs)
        if not self.alone:
            self.report(
                Warned(text="latency was measured beside other trainings on the same device")
            )
        return timing

    def result(
        self,
        training: Training,
        evaluations: dict[Split, Metrics],
        proof: MixerProof | None,
        latency: Timing | None,
    ) -> TrialResult:
        """Puts everything together."""
        config, batch_size = self.config, self.study.training.batch_size
        step_s = None
        dtype = "bfloat16" if self.precision == "bf16" else "float32"
        if training.step_seconds:
            step_s = Timing.of(
                training.step_seconds,
                batch_size=batch_size,
                seq_len=config.spec.max_seq_len,
                device=device_name(torch.device(config.device)),
                # Another condition: such times are not compared with the others.
                dtype=f"{dtype}, compiled" if config.compile else dtype,
            )
        return TrialResult(
            outcome=training.outcome,
            reason=training.reason(self.study.training.steps),
            steps=training.steps,
            sequences=training.steps * batch_size,
            seconds=self.seconds,
            evaluations=evaluations,
            documents={
                split: sums for split, sums in self.documents.items() if split in evaluations
            },
            costs=Costs(
                params=count_parameters(config.spec),
                flops=count_flops(config.spec),
                step_s=step_s,
                latency_s=latency,
                peak_memory_bytes=self.peak,
            ),
            probes=tuple(self.probes),
            proof=proof,
            environment=environment(
                device=self.device,
                threads=config.threads,
                seed=config.seed,
                precision=self.precision,
                alone=self.alone,
                compiled=config.compile,
            ),
            stages=self.stages.seconds,
            resumed_step=0 if self.saved is None else self.saved.state.step,
        )

    def _encoder(self) -> nn.Module:
        encoder = self.model.encoder
        assert isinstance(encoder, nn.Module)
        return encoder

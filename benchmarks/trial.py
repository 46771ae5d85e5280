"""What a trial costs beside a bare PyTorch loop, and where the rest of its time goes.

    python -m benchmarks.trial --steps 200 --pairs 3

The loop below trains the same model class from the same initialisation on the same batches, with
the same optimiser, schedule, clipping, readings of the selection split and number of threads. The
two loss curves must be bitwise equal, else the comparison means nothing and the run ends with
exit code 1. Pairs alternate which comes first; the medians of their ratios are printed, of wall
time and of processor time (which other programs on the machine disturb less).
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from mixers import parse_architecture
from search.messages import Message, Report, TrialConfig, TrialResult
from search.spec.study import StudySpec
from search.tasks.base import Task
from search.tasks.evaluation import evaluate
from search.training.prepared import prepared_task
from search.training.random_states import DROPOUT_STREAM, process_settings
from search.training.recipe import build_optimizer, reading_steps
from search.training.trial import Trial, run_trial


@dataclass
class Run:
    """Seconds of one training, and its losses on the selection split by step."""

    wall: float = 0.0
    cpu: float = 0.0
    curve: list[tuple[int, float]] = field(default_factory=list)

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Times a block."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.wall, self.cpu = time.perf_counter() - wall, time.process_time() - cpu


def bare_loop(config: TrialConfig) -> Run:
    """The trial's training as a plain loop."""
    study = config.study
    task = prepared_task(study.task, study.seed, config.cache_dir).task
    torch.manual_seed(config.seed)
    model = task.build_model(config.spec)
    torch.manual_seed(config.seed + DROPOUT_STREAM)
    run = Run()
    with run.timed():
        train_plainly(config, task, model, run)
    return run


def train_plainly(config: TrialConfig, task: Task[Any], model: nn.Module, run: Run) -> None:
    """The loop itself."""
    study, recipe = config.study, config.study.training
    optimizer, schedule = build_optimizer(model, recipe)
    readings = set(reading_steps(recipe.steps, recipe.validations))
    metrics = study.trained_metrics
    model.train()
    for step in range(recipe.steps):
        batch = task.train_batch(step, seed=config.seed, batch_size=recipe.batch_size)
        optimizer.zero_grad()
        loss = task.loss(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), recipe.gradient_clip)
        optimizer.step()
        schedule.step()
        if step + 1 in readings:
            found = evaluate(task, model, "selection", 2 * recipe.batch_size, "cpu", metrics)
            run.curve.append((step + 1, found["loss"]))


def lightning(config: TrialConfig) -> Run:
    """The training of a trial, as ``run_trial`` does it."""
    run = Run()

    def note(message: Message) -> None:
        if isinstance(message, Report) and message.split == "selection":
            run.curve.append((message.step, message.metrics["loss"]))

    trial = Trial(config, note)
    with process_settings(config):
        trial.prepare()
        with run.timed():
            trial.train(lambda: None)
    return run


def breakdown(result: TrialResult) -> str:
    """Where the seconds of a whole trial went, as lines of text."""
    rest = result.seconds - sum(result.stages.values())
    rows = sorted(result.stages.items(), key=lambda item: -item[1])
    return "\n".join(
        f"  {name:10} {seconds:8.3f} s {seconds / result.seconds:7.1%}"
        for name, seconds in [*rows, ("other", rest), ("whole", result.seconds)]
    )


def main() -> int:
    """Runs the pairs and prints the ratios and the breakdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--mixers", default="sepconv*2, attention(rotary=true)*2")
    parser.add_argument("--cache", default=tempfile.gettempdir() + "/mixsearch-benchmark")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    study = StudySpec.model_validate({"training": {"steps": options.steps}})
    config = TrialConfig(
        study=study,
        spec=study.encoder_spec(parse_architecture(options.mixers)),
        seed=0,
        threads=options.threads,
        cache_dir=options.cache,
    )
    lightning(config), bare_loop(config)  # imports, caches and allocator are warm from here on
    walls, cpus = [], []
    for pair in range(options.pairs):
        order = (lightning, bare_loop) if pair % 2 == 0 else (bare_loop, lightning)
        runs = {run.__name__: run(config) for run in order}
        ours, bare = runs["lightning"], runs["bare_loop"]
        if ours.curve != bare.curve:
            print(f"the curves differ:\n  trial {ours.curve}\n  loop  {bare.curve}")
            return 1
        walls.append(ours.wall / bare.wall)
        cpus.append(ours.cpu / bare.cpu)
        print(
            f"pair {pair + 1}: trial {ours.wall:.3f} s ({ours.cpu:.3f} s of processor), "
            f"loop {bare.wall:.3f} s ({bare.cpu:.3f} s), {ours.wall / bare.wall:.3f}x"
        )
    print(f"{options.steps} steps of {options.mixers}, {options.threads} thread(s)")
    print(f"curves equal, last selection loss {ours.curve[-1][1]:.6f}")
    print(f"trial / loop, wall time: median {statistics.median(walls):.3f}")
    print(f"trial / loop, processor time: median {statistics.median(cpus):.3f}")
    whole = run_trial(config, report=lambda message: None, should_stop=lambda: None)
    print("one whole trial:")
    print(breakdown(whole))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a confirmation would train, and about how long it takes, from the base study's trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from mixers.notation import parse_architecture
from search.rows import TrialRow
from search.spec.budget import duration_words
from search.spec.listed import seeds_of, stacks
from search.wording import plural

if TYPE_CHECKING:
    from search.followups.derived import Stage
    from search.spec.space import Labels
    from search.spec.study import StudySpec
    from search.store.repo import Store


@dataclass(frozen=True)
class StagePlan:
    """One derived study before it is run.

    Attributes:
        name: Its name.
        architectures: Notation of the stacks.
        seeds: Seeds of each.
        steps: Training steps.
        d_model: Width.
        done: Trials that it has already.
        taken_over: Trainings that the base study has with the same steps, width and seeds.
        seconds: What the others take, scaled by FLOPs from the base study's trials; None where
            it has none that was timed.
        left_out: Notation and reason of what cannot be built.
    """

    name: str
    architectures: tuple[str, ...]
    seeds: int
    steps: int
    d_model: int
    done: int
    taken_over: int
    seconds: float | None
    left_out: tuple[tuple[str, str], ...]

    @property
    def missing(self) -> int:
        """Trainings that would be started."""
        return len(self.architectures) * self.seeds - self.done - self.taken_over


def plan_of(store: Store, base: StudySpec, rows: Sequence[TrialRow], stage: Stage) -> StagePlan:
    """Works out one stage; starts nothing.

    Args:
        store: The store.
        base: The base study.
        rows: Its trials.
        stage: The derived study.
    """
    study, scale = stage.derived.study, stage.derived.scale
    done = store.rows(stage.row.id, curves=False) if stage.row else []
    started = {(row.mixers, row.seed_index) for row in done}
    trainings = {
        (labels, seed) for seed in range(1, seeds_of(study) + 1) for labels in stacks(study)
    }
    is_own = (scale.steps, scale.d_model) == (base.training.steps, base.encoder.d_model)
    there = {
        (row.mixers, row.seed_index)
        for row in rows
        if is_own and row.state == "completed" and row.phase == "confirm" and not row.recipe
    }
    taken_over = (trainings - started) & there
    missing = trainings - started - there
    return StagePlan(
        name=stage.name,
        architectures=study.space.architectures,
        seeds=seeds_of(study),
        steps=scale.steps,
        d_model=scale.d_model,
        done=len(started),
        taken_over=len(taken_over),
        seconds=_seconds(base, study, rows, [labels for labels, _ in missing]),
        left_out=stage.derived.left_out,
    )


def plan_words(base: str, planned: Sequence[StagePlan]) -> list[str]:
    """Writes what a confirmation would train, one derived study a line."""
    lines = [f"confirmation of {base}; nothing was started"]
    for plan in planned:
        known = [
            f"{n} {what}"
            for n, what in ((plan.done, "done"), (plan.taken_over, f"taken over from {base}"))
            if n
        ]
        about = f", about {duration_words(plan.seconds)}" if plan.seconds else ""
        lines.append(
            f"{plan.name}: {plural(len(plan.architectures), 'architecture')} x "
            f"{plural(plan.seeds, 'seed')}, {plan.steps} steps, d_model {plan.d_model}: "
            f"{plural(plan.missing, 'training')} to do{about}"
            + (f" ({', '.join(known)})" if known else "")
        )
        lines += [f"  left out: {notation}: {problem}" for notation, problem in plan.left_out]
    total = sum(plan.seconds or 0.0 for plan in planned)
    if total:
        lines.append(f"in all about {duration_words(total)}, scaled by FLOPs from {base}'s trials")
    return lines


def _seconds(
    base: StudySpec, study: StudySpec, rows: Sequence[TrialRow], missing: Sequence[Labels]
) -> float | None:
    """Scales the seconds per FLOP of the base study's trials to the missing trainings."""
    from mixers.cost import count_flops

    rates = [
        row.seconds / row.flops
        for row in rows
        if row.state == "completed" and row.seconds and row.flops and row.reused_from is None
    ]
    if not rates:
        return None
    flops = {
        labels: count_flops(study.encoder_spec([parse_architecture(x)[0] for x in labels]))
        for labels in set(missing)
    }
    longer = study.training.steps / base.training.steps
    return median(rates) * longer * sum(flops[labels] for labels in missing)

"""How often are the verdicts wrong? Replays whole studies whose truth is known.

    python -m benchmarks.calibration --out benchmarks/results [--replays 500] [--quick]

Worlds (`benchmarks.worlds`) stand in place of trainings; strategies, phases, finalists and answers
are the real ones. Per world, strategy and budget the table has: the share of studies with a false
verdict (`better` where the true difference is not negative, `may be cheap` where it exceeds the
tolerance, `keep attention` where it does not, and likewise for the shorter model and the rival),
with those of single layers and without; how often the 95 % intervals of the contrasts hold the
truth; how many verdicts are made and right. Rows already in the file are not replayed again.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.calibration_table import summary, table
from benchmarks.replay import quick_strategy, spend
from benchmarks.rows import read_rows
from benchmarks.worlds import TOLERANCE, WORLDS, Sample, World
from search.answers.arms import arms_of, finalists_of
from search.answers.design import design_of
from search.answers.effects import layer_effects_of
from search.answers.family import Family
from search.answers.intervals import Interval
from search.answers.question import Question, question_of
from search.answers.verdicts import (
    UNDECIDED,
    Against,
    comparisons_of,
    contrasts_of,
    hybrid_beats_all,
)
from search.phases import Choice, phase_sources
from search.phases.finalists import finalists
from search.rows import Phase, TrialRow
from search.spec.baselines import Baseline, baselines
from search.spec.space import Labels, Space
from search.spec.study import StudySpec
from search.strategies.catalog import offered

BUDGETS = (12, 24, 40, 80)
STRATEGIES = ("random", "tpe", "screen")
REPLAYS = 500
QUICK = 60
LEVEL = 0.95


def main() -> None:
    """Replays what is missing in the file, then writes the table and the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of calibration.jsonl")
    parser.add_argument("--replays", type=int, default=REPLAYS)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} replays of each study")
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument(
        "--strategies", nargs="+", default=[s for s in STRATEGIES if s in offered()]
    )
    parser.add_argument("--budgets", type=int, nargs="+", default=BUDGETS)
    parser.add_argument("--draw", action="store_true", help="also the picture, as HTML and PNG")
    options = parser.parse_args()
    replays = QUICK if options.quick else options.replays
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "calibration.jsonl"
    rows = read_rows(path)
    done = {(row["world"], row["strategy"], row["budget"], row["replays"]) for row in rows}
    share_copies()
    studies = product(options.budgets, options.worlds, options.strategies)
    with path.open("a") as file:
        for budget, world, strategy in studies:
            if (world, strategy, budget, replays) in done:
                continue
            rows.append(calibrate(WORLDS[world], strategy, budget, replays))
            file.write(json.dumps(rows[-1]) + "\n")
            file.flush()
            print(rows[-1], flush=True)
    shown = [row for row in rows if row["replays"] == replays]
    text = f"{summary(shown)}\n\n{table(shown)}\n"
    (options.out / "calibration.md").write_text(text)
    print(text)
    if options.draw:
        from benchmarks.calibration_figure import draw

        draw(shown, options.out)


def share_copies() -> None:
    """Lets Optuna's copies of past trials share what nothing changes in a replay.

    A proposal rebuilds its study from the rows; copying them takes most of a replay's time.
    """
    from optuna.distributions import CategoricalDistribution
    from optuna.trial import FrozenTrial

    equal = CategoricalDistribution.__eq__
    patches: dict[Any, dict[str, Any]] = {
        FrozenTrial: {"__deepcopy__": lambda self, memo: copy(self)},
        CategoricalDistribution: {
            "__deepcopy__": lambda self, memo: self,
            "__eq__": lambda self, other: self is other or equal(self, other),
        },
    }
    for owner, methods in patches.items():
        for name, method in methods.items():
            setattr(owner, name, method)


def calibrate(world: World, strategy: str, budget: int, replays: int) -> dict[str, Any]:
    """Replays a study so often and counts what its answers say."""
    counted: Counter[str] = Counter()
    for seed in range(replays):
        counted.update(outcome(world, replayed(world, strategy, budget, seed)))
    facts = {"world": world.name, "strategy": strategy, "budget": budget, "replays": replays}
    return {**facts, **{name: counted[name] for name in COUNTED}}


COUNTED = (
    "false_studies",
    "false_finalists",
    "false_layers",
    "false_beats",
    "contrasts",
    "right",
    "first",
    "first_right",
    "first_best_word",
    "intervals",
    "covered",
    "layers_decided",
    "layers_right",
)


@cache
def frame() -> tuple[StudySpec, Space, tuple[Baseline, ...], Question]:
    """The study that all replays share but for its seed."""
    study = StudySpec().model_copy(update={"tolerance": TOLERANCE})
    return study, Space.of(study), baselines(study), question_of(study)


def replayed(world: World, strategy: str, budget: int, seed: int) -> list[TrialRow]:
    """Replays one study; seed sets both the world's disturbances and the strategy's choices."""
    study = frame()[0].model_copy(update={"seed": seed})
    sample = Sample(world, seed)
    sources = phase_sources(study, quick_strategy(strategy, seed))

    def train(choice: Choice, phase: Phase, number: int) -> TrialRow:
        read = sample.read(choice.labels, choice.seed_index)
        splits = ("selection", "test") if phase == "confirm" else ("selection",)
        metrics = {split: {study.objective: read[split][0]} for split in splits}
        return TrialRow(
            id=number + 1,
            study="replay",
            number=number,
            phase=phase,
            state="completed",
            role=choice.role,
            arch_id="-".join(choice.labels),
            code="/".join(choice.labels),
            notation=", ".join(choice.labels),
            mixers=choice.labels,
            n_layers=len(choice.labels),
            seed=seed + choice.seed_index,
            seed_index=choice.seed_index,
            recipe=choice.recipe,
            selection=metrics["selection"],
            test=metrics.get("test", {}),
            documents={split: read[split][1] for split in splits},
            sampler_attrs=choice.attrs,
        )

    return spend(budget, sources, len(frame()[2]), train)


def outcome(world: World, rows: Sequence[TrialRow]) -> Iterator[str]:
    """Yields what is to be counted about one study's answer."""
    study, space, listed, question = frame()
    arms = arms_of(rows, question)
    chosen = finalists(study, space, listed, rows)
    found = finalists_of(arms, {item.role: item.labels for item in chosen}, question)
    mixers = tuple(space.choices)
    family = Family(layer_contrasts=question.n_layers * (len(mixers) - 1))
    contrasts = contrasts_of(found, question, family)
    compared = comparisons_of(found)
    wrong = set()
    for contrast, comparison in zip(contrasts, compared, strict=True):
        truth = world.effect(comparison.candidate.mixers) - world.effect(comparison.other.mixers)
        says = judged(contrast.against, contrast.verdict.word, truth, question.tolerance)
        yield from ("contrasts", *(["right"] if says else []))
        if says is False:
            wrong.add("false_finalists")
        if contrast.against == "reference":
            yield from ("first", *(["first_right"] if says else []))
            if says and contrast.verdict.word == best_word(truth, question.tolerance):
                yield "first_best_word"
        interval = comparison.difference.interval(LEVEL) if comparison.difference else None
        if interval is not None and interval.low is not None and interval.high is not None:
            yield from ("intervals", *(["covered"] * (interval.low <= truth <= interval.high)))
    if found.pick and hybrid_beats_all(found, contrasts, question) == "yes":
        best = world.effect(found.pick.mixers)
        others = [arm for arm in (found.reference, found.shorter, found.rival) if arm]
        if any(best >= world.effect(arm.mixers) for arm in others):
            wrong.add("false_beats")
    pick = found.pick.mixers if found.pick else None
    for word, truth in layer_words(world, rows, question, mixers, pick, family):
        says = judged("reference", word, truth, question.tolerance)
        yield from (["layers_decided"] * (says is not None) + ["layers_right"] * (says is True))
        if says is False:
            wrong.add("false_layers")
    yield from wrong
    if wrong:
        yield "false_studies"


def layer_words(
    world: World,
    rows: Sequence[TrialRow],
    question: Question,
    mixers: Sequence[str],
    pick: Labels | None,
    family: Family,
) -> Iterator[tuple[str, float]]:
    """The verdicts on single layers, each with its estimate from the same runs without noise."""
    noiseless = [
        replace(row, selection={question.objective: world.effect(row.mixers)}) for row in rows
    ]
    said, true = (
        [*pair_words(runs, question, mixers, family), *design_words(runs, question, pick, family)]
        for runs in (rows, noiseless)
    )
    for (word, _), (_, truth) in zip(said, true, strict=True):
        if word != UNDECIDED and truth is not None:
            yield word, truth.estimate


def pair_words(
    rows: Sequence[TrialRow], question: Question, mixers: Sequence[str], family: Family
) -> Iterator[tuple[str, Interval | None]]:
    """What matched pairs say of each layer."""
    for effect in layer_effects_of(rows, question, mixers, family.layer_level):
        yield effect.word, effect.interval


def design_words(
    rows: Sequence[TrialRow], question: Question, pick: Labels | None, family: Family
) -> Iterator[tuple[str, Interval | None]]:
    """What a design says of each layer, averaged and in the pick; nothing without a design."""
    design = design_of(rows, question, pick, family)
    for layer in design.layers if design else ():
        yield layer.average_word, layer.average
        yield layer.stack_word, layer.in_stack


def judged(against: Against, word: str, truth: float, tolerance: float) -> bool | None:
    """Whether a verdict is right of a true difference (pick - other); None where undecided."""
    if word == UNDECIDED:
        return None
    if against == "shorter":
        truth = -truth
    right: Mapping[str, bool] = {
        "better": truth < 0,
        "worse": truth > 0,
        "may be cheap": truth <= tolerance,
        "keep attention": truth > tolerance,
        "shorter is better": truth < 0,
        "may be shorter": truth <= tolerance,
        "keep depth": truth > tolerance,
        "no difference": abs(truth) <= tolerance,
    }
    return right[word]


def best_word(truth: float, tolerance: float) -> str:
    """The most that can be said of a true difference to all-attention."""
    if truth < 0:
        return "better"
    return "may be cheap" if truth <= tolerance else "keep attention"


if __name__ == "__main__":
    main()

"""Two studies of one task, data and recipe side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from search.answers.answer import Answer
from search.answers.arms import Arm, arms_of
from search.answers.intervals import Interval, mean_interval, welch
from search.answers.pairing import MIN_PAIRS
from search.answers.recipe import at_shared_recipe
from search.rows import TrialRow

FAMILY_ALPHA = 0.05
MUST_AGREE = ("task", "training", "recipe", "objectives")
SAME_RUNS = "runs in common"
HYBRID, SHORTER = "hybrid", "shorter model"


@dataclass(frozen=True, slots=True)
class BestOfKind:
    """The best of one kind of stack in each study, by the selection split.

    Attributes:
        kind: ``all <mixer>`` for pure stacks of full depth, ``hybrid``, ``shorter model``.
        codes: the best one's code in each study, None where none was trained.
        values: its mean objective on the selection split.
    """

    kind: str
    codes: tuple[str | None, str | None]
    values: tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class SharedArm:
    """An architecture that both studies trained.

    Attributes:
        split: the split it was read on: ``test`` where both have confirmation runs.
        means: mean objective in each study.
        n: runs in each study.
        interval: of second - first study; without ends, and with the reason, where these cannot be
            told. Of the differences by seed where enough seeds are common, which start and are
            fed alike, else Welch's of all runs.
        paired: the common seeds that the interval is of; none where it is Welch's.
    """

    arch_id: str
    code: str
    notation: str
    split: Literal["selection", "test"]
    means: tuple[float, float]
    n: tuple[int, int]
    interval: Interval
    paired: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Two studies: their answers, the best of each kind, what both trained."""

    studies: tuple[str, str]
    answers: tuple[Answer, Answer]
    kinds: tuple[BestOfKind, ...]
    shared: tuple[SharedArm, ...]
    differing: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for strict JSON."""
        return {
            "studies": list(self.studies),
            "differing": list(self.differing),
            "answers": [answer.to_dict() for answer in self.answers],
            "kinds": [asdict(kind) for kind in self.kinds],
            "shared": [asdict(arm) for arm in self.shared],
        }


def split_differences(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tells the differences that forbid a comparison from the others.

    Args:
        lines: differences of two specs, each beginning with the field's path.
    """
    forbidding = [line for line in lines if line.split(":", 1)[0].split(".")[0] in MUST_AGREE]
    return forbidding, [line for line in lines if line not in forbidding]


def side_by_side(
    studies: tuple[str, str],
    answers: tuple[Answer, Answer],
    rows: tuple[Sequence[TrialRow], Sequence[TrialRow]],
    differing: Sequence[str] = (),
) -> SideBySide:
    """Puts two studies side by side.

    Args:
        studies: their names.
        answers: their answers.
        rows: their trials.
        differing: fields of the specs that differ and do not forbid the comparison.
    """
    first, second = (
        {arm.arch_id: arm for arm in arms_of(at_shared_recipe(trials), answer.question)}
        for trials, answer in zip(rows, answers, strict=True)
    )
    return SideBySide(
        studies=studies,
        answers=answers,
        kinds=_best_by_kind((first, second), answers),
        shared=_shared(first, second),
        differing=tuple(differing),
    )


def _best_by_kind(
    sides: tuple[Mapping[str, Arm], Mapping[str, Arm]], answers: tuple[Answer, Answer]
) -> tuple[BestOfKind, ...]:
    found = tuple(_best_of(arms, answer) for arms, answer in zip(sides, answers, strict=True))
    kinds = sorted({*found[0], *found[1]}, key=lambda kind: (kind in (HYBRID, SHORTER), kind))
    return tuple(
        BestOfKind(
            kind,
            (_code(found[0].get(kind)), _code(found[1].get(kind))),
            (_mean(found[0].get(kind)), _mean(found[1].get(kind))),
        )
        for kind in kinds
    )


def _best_of(arms: Mapping[str, Arm], answer: Answer) -> dict[str, Arm]:
    """The best architecture of each kind."""
    sign = answer.question.sign
    best: dict[str, Arm] = {}
    scored = [(mean, arm) for arm in arms.values() if (mean := arm.selection_mean) is not None]
    for _, arm in sorted(scored, key=lambda pair: sign * pair[0]):
        if arm.n_layers < answer.question.n_layers:
            kind = SHORTER
        else:
            kind = f"all {next(iter(arm.kinds))}" if len(arm.kinds) == 1 else HYBRID
        best.setdefault(kind, arm)
    return best


def _code(arm: Arm | None) -> str | None:
    return arm.code if arm else None


def _mean(arm: Arm | None) -> float | None:
    return arm.selection_mean if arm else None


def _shared(first: Mapping[str, Arm], second: Mapping[str, Arm]) -> tuple[SharedArm, ...]:
    """Architectures of both studies; their intervals hold together (Bonferroni)."""
    pairs = [(arm, second[arch_id]) for arch_id, arm in first.items() if arch_id in second]
    readable = [pair for pair in pairs if _readings(*pair)[1]]
    level = 1 - FAMILY_ALPHA / max(1, len(readable))
    return tuple(_shared_arm(*pair, level) for pair in readable)


def _readings(
    left: Arm, right: Arm
) -> tuple[Literal["selection", "test"], tuple[Mapping[int, float], Mapping[int, float]] | None]:
    """The split that both were read on, by seed; None where there is none."""
    if left.test and right.test:
        return "test", (left.test, right.test)
    both = (left.selection, right.selection) if left.selection and right.selection else None
    return "selection", both


def _shared_arm(left: Arm, right: Arm, level: float) -> SharedArm:
    split, readings = _readings(left, right)
    assert readings is not None
    ours, theirs = readings
    common = tuple(sorted(ours.keys() & theirs.keys()))
    paired = common if len(common) >= MIN_PAIRS else ()
    if paired:
        interval = mean_interval([theirs[seed] - ours[seed] for seed in paired], level)
    else:
        interval = welch(list(theirs.values()), list(ours.values()), level)
    if any(ours[seed] == theirs[seed] for seed in common):
        # Runs that repeat bit for bit are one observation, not two.
        paired = ()
        interval = Interval(interval.estimate, level, reason=SAME_RUNS)
    return SharedArm(
        arch_id=left.arch_id,
        code=left.code,
        notation=left.notation,
        split=split,
        means=(sum(ours.values()) / len(ours), sum(theirs.values()) / len(theirs)),
        n=(len(ours), len(theirs)),
        interval=interval,
        paired=paired,
    )

"""Two studies side by side in words and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.answers.pairing import MIN_PAIRS
from search.report.gains import leader
from search.report.paragraph import summary
from search.report.sections import Section, to_text
from search.wording import (
    ABSENT,
    OTHERS,
    difference_text,
    in_unit,
    plural,
    value_text,
)

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.side_by_side import SideBySide

MOST_SHARED = 20
MOST_DIFFERING = 5


def comparison(sides: SideBySide) -> list[Section]:
    """The parts of a comparison, in order."""
    parts = (_answers(sides), _picks(sides), _verdicts(sides), _kinds(sides), _shared(sides))
    return [part for part in parts if part]


def render_comparison(sides: SideBySide, *, width: int = 100) -> str:
    """The comparison as plain text for a terminal."""
    return to_text(comparison(sides), width)


def _answers(sides: SideBySide) -> Section:
    lines = [
        f"{name}: {summary(answer)}"
        for name, answer in zip(sides.studies, sides.answers, strict=True)
    ]
    if sides.differing:
        more = len(sides.differing) - MOST_DIFFERING
        shown = "; ".join(sides.differing[:MOST_DIFFERING])
        lines.append(f"settings that differ: {shown}" + (f"; and {more} more" if more > 0 else ""))
    return Section("Answers", lines=tuple(lines))


def _picks(sides: SideBySide) -> Section:
    rows = [
        _pick_row(name, answer) for name, answer in zip(sides.studies, sides.answers, strict=True)
    ]
    header = ("study", ">trials", ">stacks", "pick", ">selection", ">test (runs)")
    return Section("Picks", header, tuple(rows))


def _pick_row(name: str, answer: Answer) -> tuple[str, ...]:
    pick, question = leader(answer, answer.pick), answer.question
    counted = (name, str(sum(answer.spent.by_phase.values())), str(answer.reach.n_trained))
    if pick is None:
        return (*counted, ABSENT, ABSENT, ABSENT)
    test = f"{value_text(pick.test, question)} ({pick.n_test})" if pick.n_test else ABSENT
    return (*counted, pick.code, value_text(pick.selection, question), test)


def _verdicts(sides: SideBySide) -> Section:
    question = sides.answers[0].question
    rows = [
        (
            OTHERS[found.against],
            name,
            f"{found.candidate} - {found.other}",
            difference_text(found.interval, question),
            found.verdict.word,
        )
        for against in OTHERS
        for name, answer in zip(sides.studies, sides.answers, strict=True)
        for found in answer.contrasts
        if found.against == against
    ]
    if not rows:
        return Section("Verdicts", lines=("undecided: nothing was confirmed on the test split",))
    header = ("against", "study", "stacks", f">on test{in_unit(question)}", "verdict")
    return Section("Verdicts", header, tuple(rows))


def _kinds(sides: SideBySide) -> Section:
    question = sides.answers[0].question
    rows = tuple(
        (
            best.kind,
            *(
                f"{code} {value_text(value, question)}" if code else ABSENT
                for code, value in zip(best.codes, best.values, strict=True)
            ),
        )
        for best in sides.kinds
    )
    return Section("Best by kind", ("on selection", *sides.studies), rows)


def _shared(sides: SideBySide) -> Section:
    question = sides.answers[0].question
    first, second = sides.studies
    if not sides.shared:
        return Section("In both", lines=("no architecture was trained in both studies",))
    shown = sides.shared[:MOST_SHARED]
    rows = tuple(
        (
            arm.code,
            arm.split,
            *(
                f"{value_text(mean, question)} ({n})"
                for mean, n in zip(arm.means, arm.n, strict=True)
            ),
            difference_text(arm.interval, question),
            arm.interval.reason or _seeds(arm.paired),
        )
        for arm in shown
    )
    header = (
        "layers",
        "split",
        f">{first} (runs)",
        f">{second} (runs)",
        f">{second} - {first}{in_unit(question)}",
        "pairing",
    )
    lines = []
    if any(arm.interval.low is not None for arm in shown):
        level = 100 * shown[0].interval.level
        lines.append(
            f"intervals of {level:.3g} %, 95 % together, of seed noise alone: of the differences "
            f"by seed where {MIN_PAIRS} or more seeds are common, else Welch's"
        )
    if len(sides.shared) > len(shown):
        hidden = len(sides.shared) - len(shown)
        lines.append(f"{plural(hidden, 'more architecture')} in the JSON document")
    return Section("In both", header, rows, tuple(lines))


def _seeds(paired: Sequence[int]) -> str:
    """Which seeds an interval is of: "by seeds 1-3, 7"."""
    if not paired:
        return "unpaired"
    runs: list[list[int]] = []
    for seed in paired:
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    shown = (str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"by seeds {', '.join(shown)}"

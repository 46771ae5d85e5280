"""The parts of the answer in reading order, gathered in chapters.

A part is ``section(answer, room) -> Section``; a new one is one more line in its chapter. On a
terminal (where there is a `Room`) the parts follow each other without the chapters, and a part that
is for pages only gives an empty section.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from search.report import (
    costs,
    counts,
    failures,
    layers,
    leaderboard,
    lengths,
    limits,
    noise,
    pareto,
    probe,
    reach,
    recall,
    recipe,
    selection,
    speedup,
    spent,
    training,
    verdicts,
)
from search.report.sections import Room, Section

if TYPE_CHECKING:
    from search.answers.answer import Answer


Part = Callable[["Answer", Room | None], Section]


@dataclass(frozen=True)
class Chapter:
    """Parts that answer one question of the reader.

    Attributes:
        key: its anchor on a page.
        title: its heading.
        lead: what the reader sees here and how to read it.
        parts: the parts, in order.
        figures: names of the figures beside them (`search.figures.plots.FIGURES`).
    """

    key: str
    title: str
    lead: str
    parts: tuple[Part, ...] = ()
    figures: tuple[str, ...] = ()


CHAPTERS = (
    Chapter(
        "verdicts",
        "Verdicts",
        "Each line holds the chosen stack of layers against another one, both trained again with "
        "fresh seeds and read on the test split, which took no part in the choice. The brackets "
        "hold where the true difference lies, as far as the noise lets one say. A verdict is given "
        "where all of the bracket calls for it: 'better'; 'may be cheap' where layers without "
        "attention lose less than the tolerance; 'keep attention' where they lose more; against a "
        "shorter model 'keep depth' where that one loses more; else 'undecided', with the number "
        "of further runs that would decide it. p, adjusted for all verdicts together, says how "
        "likely chance would show as much if the truth lay where the verdict changes; df, the "
        "degrees of freedom, how well the noise is known.",
        (verdicts.section, recall.section),
    ),
    Chapter(
        "leaderboard",
        "Leaderboard",
        "The best stacks, and those that every study trains for comparison: attention everywhere "
        "(reference), no attention anywhere, and models with fewer layers (shorter). In a code "
        "each letter is one layer's mixer, the layer next to the input first. The order is that of "
        "the selection split, which the search looked at; the test column is the honest one.",
        (leaderboard.section,),
        ("leaderboard",),
    ),
    Chapter(
        "sure",
        "How sure is this?",
        "What the numbers can carry, and what was not tried.",
        (
            reach.section,
            recipe.section,
            training.section,
            lengths.section,
            noise.section,
            selection.section,
            probe.section,
        ),
    ),
    Chapter(
        "costs",
        "Cost and quality",
        "What the chosen stack costs beside the others: counted, and as measured on the device.",
        (costs.section, speedup.section, limits.section, pareto.section),
        ("pareto",),
    ),
    Chapter(
        "layers",
        "Which layers need attention?",
        "First how many layers do without attention, then whether their place matters, then what "
        "each layer's mixer changes.",
        (counts.section, layers.section, layers.others),
        ("counts", "effects", "heat-map"),
    ),
    Chapter(
        "curves",
        "Learning curves",
        "How the objective developed on the selection split while training.",
        (),
        ("curves",),
    ),
    Chapter(
        "spent",
        "What the budget went to",
        "A trial is one stack trained with one seed. Baselines are trained first, then the search "
        "tries stacks, then the finalists are confirmed with fresh seeds.",
        (spent.section,),
    ),
    Chapter(
        "failures",
        "Failures",
        "Trials that ended without a result; they count in the budget.",
        (failures.section,),
    ),
)


def terminal_parts(answer: Answer, room: Room) -> list[Section]:
    """All parts for a terminal, in order; how sure it is comes last, beside what to do next."""
    ordered = sorted(CHAPTERS, key=lambda chapter: chapter.key == "sure")
    return [part(answer, room) for chapter in ordered for part in chapter.parts]

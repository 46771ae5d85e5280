"""Whether the answer holds at longer training and other widths, from the studies that tried."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import (
    ABSENT,
    OTHERS,
    difference_text,
    in_unit,
    plural,
    two_digits,
)

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.lengths import Kept, Lengths, Measured, Order

TITLE = "Longer/wider"
ABOUT = (
    "The finalists, trained again from the start for each length or width, each time with the "
    "whole schedule. A lead that closes as training gets longer may vanish in a training as long "
    "as yours. The rank correlation is 1 where both scales order the stacks alike. Intervals of "
    "leads have 95 % each and hold the noise of seeds alone, not that of the test documents."
)


def section(answer: Answer, room: Room | None) -> Section:
    """Leads, order and verdicts at the scales that were tried; nothing without any."""
    found = answer.lengths
    if found is None:
        return Section(TITLE)
    rows = tuple(
        (
            _scale(one, found),
            difference_text(one.lead, answer.question),
            f"{one.n_candidate} + {one.n_reference}",
            _verdict(one),
        )
        for one in found.measured
    )
    header = (
        "trained for",
        f">lead of {found.candidate} over {found.reference}{in_unit(answer.question)}",
        ">runs",
        "verdict",
    )
    lines = [line for line in (_trend(found), *map(_order, found.orders), _kept(found)) if line]
    return Section(TITLE, header, rows, tuple(lines), about=ABOUT)


def headline(found: Lengths) -> str:
    """The trend in a few words."""
    if found.last is None:
        return ""
    factor = found.last.removeprefix("steps-")
    if found.word == "closing" and found.left is not None and found.left <= 0.5:
        return f"closing (halved by {factor})"
    return found.word


def _scale(one: Measured, found: Lengths) -> str:
    name = f"{one.steps} steps"
    if one.d_model != found.measured[0].d_model:
        return f"{name}, d_model {one.d_model}"
    times = one.purpose.removeprefix("steps-")
    return f"{name} ({times})" if times.startswith("x") else name


def _verdict(one: Measured) -> str:
    word = next((c.verdict.word for c in one.contrasts if c.against == "reference"), ABSENT)
    return word


def _trend(found: Lengths) -> str:
    if found.last is None:
        return ""
    if found.word == "undecided":
        reason = f" ({found.change.reason})" if found.change and found.change.reason else ""
        return f"whether the lead grows or closes is undecided{reason}"
    left = f": {two_digits(found.left)} times that at the own length" if found.left else ""
    return f"the lead is {headline(found)}{left}"


def _order(order: Order) -> str:
    where = order.purpose.replace("-", " ")
    if order.correlation is None:
        return f"order at {where}: too few architectures to compare ({order.n})"
    interval = order.correlation
    line = (
        f"order at {where}: Spearman's rho {interval.estimate:.2f} "
        f"[{interval.low:.2f}, {interval.high:.2f}] over {plural(order.n, 'architecture')}"
    )
    return line if order.is_enough else f"{line}, too few to rely on"


def _kept(found: Lengths) -> str:
    if not found.kept:
        return ""
    return "verdicts: " + "; ".join(map(_outcome, found.kept))


def _outcome(kept: Kept) -> str:
    where = kept.purpose.replace("-", " ")
    said = f"'{kept.before}' against {OTHERS[kept.against]}"
    if kept.outcome == "kept":
        return f"{said} kept at {where}"
    if kept.outcome == "lost":
        return f"{said} lost at {where}: {kept.after}"
    return f"{said} not decided at {where}"

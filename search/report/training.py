"""Whether lead and ranks were still moving at the end of training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import plural, signed

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.question import Question
    from search.answers.ranks import Lead

MAX_POINTS = 4

ABOUT = (
    "Whether the lead and the order of the stacks were still moving when training ended. "
    "A lead that closes may vanish in longer training. Kendall's tau is 1 where two "
    "orders agree in all pairs."
)


def section(answer: Answer, room: Room | None) -> Section:
    """Whether lead and ranks were still moving at the end of training."""
    if answer.question.steps is None:
        return Section("Training")
    lines = [] if answer.lead is None else [_lead(answer.lead, answer.question)]
    ranks = answer.ranks
    found = [agreement for agreement in (ranks.half, ranks.previous) if agreement is not None]
    if found:
        parts = [
            f"{one.tau:.2f} since step {one.step} ({one.swapped} of {one.pairs} pairs)"
            for one in found
        ]
        lines.append(f"order of {ranks.n} architectures: Kendall's tau " + ", ".join(parts))
    else:
        lines.append(f"ranks: too few curves to say whether they still moved ({ranks.n})")
    return Section("Training", lines=tuple(lines), about=ABOUT)


def _lead(lead: Lead, question: Question) -> str:
    stride = -(-len(lead.points) // MAX_POINTS)
    points = lead.points[::-1][::stride][::-1]
    values = " ".join(signed(value, question) for _, value in points)
    reason = f" ({lead.change.reason})" if lead.change.reason else ""
    return (
        f"lead over all-attention from step {points[0][0]} to {points[-1][0]}: {values} "
        f"({plural(lead.n, 'seed')}); since {lead.middle_step}: {lead.word}{reason}"
    )

"""Where the results are and which command goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.api import DEFAULT_STORE
from search.report.sections import Section

if TYPE_CHECKING:
    from search.answers.answer import Answer

CONFIRM_SHARE = 3  # the last third of a budget confirms


def section(answer: Answer, study: str, store: str) -> Section:
    """The store, and the next commands."""
    from search.store.address import masked

    shown = masked(store)
    option = "" if shown == DEFAULT_STORE else f" --store {shown}"
    lines = [f"results: {shown}, study {study}"]
    verdicts = [contrast.verdict for contrast in answer.contrasts]
    per_arm = [verdict.runs_per_arm for verdict in verdicts if verdict.runs_per_arm]
    if per_arm:
        n_finalists = len({answer.pick, answer.reference, answer.shorter, answer.rival} - {None})
        budget = CONFIRM_SHARE * n_finalists * max(per_arm)
        lines.append(f"to decide: the same command with --budget {budget}")
    elif answer.leaders and not answer.contrasts:
        lines.append("to decide: the same command with a larger --budget (6 at least)")
    if answer.leaders:
        lines.append(f"next: search show {study}{option} | search plot {study}{option}")
    return Section("Where", lines=tuple(lines))

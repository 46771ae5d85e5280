"""Where the results are and which command goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.phases.finalists import runs_until
from search.phases.quotas import MIN_TRIALS_TO_CONFIRM
from search.report.sections import Section

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.report.about import About

CONFIRM_SHARE = 3  # the last third of a budget confirms


def section(answer: Answer, about: About) -> Section:
    """The store, and the next commands."""
    lines = [f"results: {about.shown_store}, study {about.study}"]
    verdicts = [contrast.verdict for contrast in answer.contrasts]
    per_arm = [verdict.runs_per_arm for verdict in verdicts if verdict.runs_per_arm]
    if answer.question.is_listed:
        if per_arm:
            lines.append(f"to decide: {_more_seeds(max(per_arm), answer)}")
    elif per_arm:
        n_finalists = len({answer.pick, answer.reference, answer.shorter, answer.rival} - {None})
        rates = 1 + (len(answer.recipe.apart) if answer.recipe else 0)
        budget = CONFIRM_SHARE * rates * runs_until(n_finalists, max(per_arm))
        lines.append(f"to decide: the same command with --budget {budget}")
    elif answer.leaders and not answer.contrasts:
        spent = sum(answer.spent.by_phase.values())
        least = f" ({MIN_TRIALS_TO_CONFIRM} at least)" if spent < MIN_TRIALS_TO_CONFIRM else ""
        lines.append(f"to decide: the same command with a larger --budget{least}")
    if answer.leaders:
        name = about.argument + about.store_option
        lines.append(f"next: search show {name} | search report {name} --out report.html")
        can_go_on = answer.lengths is None and not answer.question.is_listed
        if answer.question.steps and can_go_on and not about.is_served:
            lines.append(f"does it hold at longer training? search confirm {name}")
    return Section("Where", lines=tuple(lines))


def _more_seeds(n: int, answer: Answer) -> str:
    """How a listed study gets to n seeds of each stack."""
    question = answer.question
    if question.seeds and question.space_size and n <= question.seeds:
        return f"the same command with --budget {n * question.space_size}"
    return f"--set strategy.options.seeds={n} (a new study, which takes over what is trained)"

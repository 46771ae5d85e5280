"""What was asked, what ran, and what came out of it in a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Section
from search.spec.budget import duration_words
from search.wording import OTHERS, plural

if TYPE_CHECKING:
    from search.answers.answer import Answer


def section(answer: Answer, study: str) -> Section:
    """The study, its trials and its pick."""
    question, spent = answer.question, answer.spent
    total = sum(spent.by_phase.values())
    phases = ", ".join(f"{n} {phase}" for phase, n in spent.by_phase.items())
    troubles = "".join(
        f"; {n} {state}" for state, n in spent.by_state.items() if state != "completed"
    )
    took = f"; {duration_words(spent.seconds)} of training" if spent.seconds >= 1 else ""
    length = f"{question.steps} steps" if question.steps else ""
    lines = [
        f"{study}: " + "; ".join(fact for fact in (question.task, length, question.size) if fact),
        f"{plural(total, 'trial')} ({phases}){troubles}{took}" if total else "no trial yet",
    ]
    if spent.first_failure:
        lines.append(f"first failure: {spent.first_failure}")
    chosen = next((row for row in answer.leaders if row.arch_id == answer.pick), None)
    if not answer.leaders:
        lines.append("no finished trial: there is no answer")
    else:
        if chosen is not None:
            lines.append(f"pick: {chosen.code} = {chosen.notation}")
        at_length = f" at {length}" if length else ""
        if not question.is_listed:
            lines.append(
                f"does a hybrid beat both pure stacks and the shorter models{at_length}? "
                + _hybrid(answer)
            )
    return Section("Study", lines=tuple(lines))


def _hybrid(answer: Answer) -> str:
    said = answer.hybrid_beats_all
    if said == "yes":
        return said
    if answer.pick_is_pure:
        return f"{said} (the pick is pure)"
    open_to = [OTHERS[contrast.against] for contrast in answer.contrasts if contrast.beats == said]
    return f"{said} ({', '.join(open_to)})" if open_to else said

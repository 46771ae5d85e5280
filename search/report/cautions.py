"""What to beware of when reading an answer, the gravest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from search.answers.intervals import IDENTICAL
from search.answers.verdicts import UNDECIDED
from search.report.gains import some
from search.report.lengths import headline
from search.report.recipe import stack_name
from search.store.routes import unseen_words
from search.wording import OTHERS, joined, role_words, two_digits, value_text, with_unit

if TYPE_CHECKING:
    from search.answers.answer import Answer

NAMED = {"reference": "all-attention", "shorter": "the shorter model", "rival": "the rival"}


def cautions(answer: Answer) -> list[str]:
    """The cautions that this answer's data call for."""
    if not answer.leaders:
        return []
    found = (
        _provisional(answer),
        _unconfirmed(answer),
        _noise(answer),
        _shrinkage(answer),
        _lead(answer),
        _lost(answer),
        _recall(answer),
        _unseen(answer),
        _speed(answer),
        _limits(answer),
        _recipe(answer),
        _failed(answer),
        _left_out(answer),
        _reach(answer),
    )
    return [text for text in found if text]


def _provisional(answer: Answer) -> str:
    if not answer.family.provisional:
        return ""
    return "trials are still under way, and what they find may change this"


def _unconfirmed(answer: Answer) -> str:
    codes = some(answer.reach.unconfirmed)
    return f"no run that was to confirm {codes} ended with a result" if codes else ""


def _noise(answer: Answer) -> str:
    noise = answer.noise
    if noise.reason == IDENTICAL:
        return ""  # every verdict says so
    if not noise.df:
        return f"the noise between repeats was not measured ({noise.reason})"
    few = [contrast for contrast in answer.contrasts if contrast.has_few_df]
    dfs = [contrast.interval.df for contrast in few if contrast.interval and contrast.interval.df]
    if not dfs:
        return ""
    against = joined(list(dict.fromkeys(NAMED[contrast.against] for contrast in few)))
    df = two_digits(min(dfs))
    of = f"{df} degree{'' if df == '1' else 's'} of freedom"
    return f"what is said against {against} rests on as few as {of}"


def _shrinkage(answer: Answer) -> str:
    shrinkage, question = answer.shrinkage, answer.question
    if shrinkage is None or shrinkage.lost <= question.tolerance:
        return ""
    where_chosen = value_text(shrinkage.selection, question)
    on_test = with_unit(value_text(shrinkage.test, question), question)
    return (
        f"the lead of {shrinkage.candidate} over all-attention was {where_chosen} where it was "
        f"chosen and is {on_test} on test"
    )


def _lead(answer: Answer) -> str:
    lead, lengths = answer.lead, answer.lengths
    if lengths is not None and lengths.last is not None and lengths.word != UNDECIDED:
        longer = f"in longer training the lead over all-attention is {headline(lengths)}"
        return "" if lengths.word == "steady" else longer
    if lead is None or lead.word not in ("growing", "closing"):
        return ""
    return f"the lead over all-attention was still {lead.word} when training ended"


def _recall(answer: Answer) -> str:
    found = answer.recall
    return f"{found.pick} {found.text}" if found and found.falls_short else ""


def _unseen(answer: Answer) -> str:
    words = unseen_words(answer.route)
    pick = next((leader.code for leader in answer.leaders if leader.arch_id == answer.pick), "")
    return f"in {pick} {words}" if words else ""


def _lost(answer: Answer) -> str:
    kept = answer.lengths.kept if answer.lengths else ()
    lost = [
        f"'{one.before}' against {OTHERS[one.against]} is lost at {one.purpose.replace('-', ' ')}"
        for one in kept
        if one.outcome == "lost"
    ]
    return joined(lost)


def _speed(answer: Answer) -> str:
    if answer.speed_up is not None:
        return ""  # judged with its noise, in a sentence of its own
    saving = next((found for found in answer.savings if found.against == "reference"), None)
    if saving is None or not saving.latency or saving.latency >= 1:
        return ""
    return "the cheaper stack was not faster than all-attention as measured"


def _limits(answer: Answer) -> str:
    if answer.bounds.reference_is_within is not False:
        return ""
    return "all-attention itself is over a limit"


def _recipe(answer: Answer) -> str:
    check = answer.recipe
    if check is None or not check.stacks:
        return "one training recipe was used for every stack" if answer.question.recipe else ""
    turned = [NAMED[margin.against] for margin in check.margins if not margin.same_sign]
    edge = [stack_name(stack, check) for stack in check.stacks if stack.at_edge]
    found = []
    if turned:
        found.append(f"who is ahead of {joined(turned)} depends on the learning rate")
    if edge:
        found.append(f"better learning rates may lie beyond those tried for {joined(edge)}")
    if check.not_swept:
        roles = joined([role_words(role) for role in check.not_swept])
        found.append(f"not all learning rates were tried for {roles}")
    return "; ".join(found)


def _failed(answer: Answer) -> str:
    roles = _shown(answer.reach.failed)
    return f"no run of these baselines ended with a result: {roles}" if roles else ""


def _left_out(answer: Answer) -> str:
    roles = _shown(answer.reach.untested)
    return f"the budget left out baselines ({roles})" if roles else ""


def _shown(roles: Sequence[str]) -> str:
    words = [role_words(role) for role in roles]
    return joined(words if len(words) <= 3 else [*words[:2], f"{len(words) - 2} more"])


def _reach(answer: Answer) -> str:
    holds = "task, size and length" if answer.question.steps else "objective"
    return f"all of this holds for this {holds} only"

"""The answer in one paragraph: a function for each sentence, every number one of the answer's.

A sentence that the data do not carry is empty and left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixers.notation import kind_of
from search.report.cautions import cautions
from search.report.design import test_text
from search.report.gains import costs, front, leader, some, speed_up
from search.wording import (
    difference_text,
    duration_or_nothing,
    plural,
    with_unit,
)

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.design import Design
    from search.answers.leaders import Leader
    from search.answers.question import Question
    from search.answers.verdicts import Against, Contrast

OWN_OBJECTIVE = "own objective "


def paragraph(answer: Answer) -> str:
    """The whole answer for a reader who sees nothing else."""
    return f"{headline(answer)} {rest(answer)}".strip()


def headline(answer: Answer) -> str:
    """The pick, and how many layers may be cheap."""
    return _together(best(answer, place=True), cheap(answer))


def rest(answer: Answer) -> str:
    """What else the reader should know: depth, position, costs, cautions."""
    return _together(
        listed(answer),
        shorter(answer),
        position(answer),
        costs(answer),
        speed_up(answer),
        front(answer),
        beware(answer),
    )


def summary(answer: Answer) -> str:
    """The answer in two or three lines of a terminal."""
    return _together(best(answer), cheap(answer, brief=True), beware(answer, most=1))


def best(answer: Answer, *, place: bool = False) -> str:
    """Which stack is the pick, or why there is none."""
    head = _place(answer.question) + ", " if place else ""
    pick = leader(answer, answer.pick)
    if pick is None:
        return _capital(head + _no_pick(answer))
    is_only = answer.reach.n_trained == 1
    which = "the only stack with a result so far is" if is_only else "the best stack found is"
    if answer.question.is_listed and not is_only:
        which = "of the listed stacks the best on the selection split is"
    return _capital(f"{head}{which} {pick.code}: {_make_up(pick, answer)}.")


def cheap(answer: Answer, *, brief: bool = False) -> str:
    """How many layers may do without attention, by the verdict against all-attention."""
    if not answer.leaders:
        return ""
    contrast = against(answer, "reference")
    if contrast is None:
        return _not_held(answer)
    candidate = leader(answer, contrast.candidate_id)
    question = answer.question
    n = candidate.n_cheap if candidate else question.n_layers
    open_to = _decided_by(contrast) if brief else _open(contrast, question)
    tolerance = with_unit(f"{question.tolerance:g}", question)
    measured = "" if brief else f": {_measured(contrast, question)}"
    if n == 0:
        return _other_attention(contrast, tolerance, measured, open_to)
    of = "all" if n == question.n_layers else f"{n} of"
    layers = f"{of} {question.n_layers} layers" if question.n_layers > 1 else "the one layer"
    words = {
        "better": f"{_capital(layers)} may do without attention, and the stack is better for it"
        f"{measured}.",
        "may be cheap": f"{_capital(layers)} may do without attention, within the tolerance of "
        f"{tolerance}{measured}.",
        "keep attention": f"Keep attention: {contrast.candidate}, without it in {layers}, loses "
        f"more than the tolerance of {tolerance}{measured}.",
    }
    said = words.get(contrast.verdict.word)
    return said or f"Whether {layers} may do without attention is undecided{open_to}."


def _other_attention(contrast: Contrast, tolerance: str, measured: str, open_to: str) -> str:
    """The verdict on a stack that keeps attention, of other settings, in every layer."""
    stack = f"{contrast.candidate}, with attention in every layer, too,"
    words = {
        "better": f"{stack} is better than the reference{measured}.",
        "may be cheap": f"{stack} is as good as the reference, within the tolerance of "
        f"{tolerance}{measured}.",
        "keep attention": f"{stack} loses more than the tolerance of {tolerance}{measured}.",
    }
    said = words.get(contrast.verdict.word)
    return said or f"Whether {stack} does as well as the reference is undecided{open_to}."


def listed(answer: Answer) -> str:
    """The verdicts of a listed study, stacks by word."""
    if not answer.question.is_listed or len(answer.contrasts) < 2:
        return ""
    by_word: dict[str, list[str]] = {}
    for contrast in answer.contrasts:
        by_word.setdefault(contrast.verdict.word, []).append(contrast.candidate)
    said = [f"{word}: {some(codes)}" for word, codes in by_word.items()]
    return f"Of all that is listed, against all-attention, {'; '.join(said)}."


def shorter(answer: Answer) -> str:
    """Whether a model of fewer layers would do as well."""
    contrast = against(answer, "shorter")
    if contrast is None:
        return ""
    question, other = answer.question, f"the shorter model {contrast.other}"
    measured = _measured(contrast, question)
    words = {
        "keep depth": f"The depth is needed: {other} is worse ({measured}).",
        "shorter is better": f"However, {other} is better ({measured}).",
        "may be shorter": f"However, {other} does as well within the tolerance ({measured}).",
    }
    said = words.get(contrast.verdict.word)
    return said or f"Whether {other} would do as well is undecided{_open(contrast, question)}."


def position(answer: Answer) -> str:
    """Whether it matters which layers are cheap, given how many are."""
    if answer.design is not None:
        return _position_by(answer.design)
    found = answer.position
    if found is None:
        return ""
    measured = f"{found.first} minus {found.last}"
    if found.interval is not None:
        difference = with_unit(difference_text(found.interval, answer.question), answer.question)
        measured += f" is {difference}"
    same = "does not matter whether the first or the last layers do without attention"
    words = {
        "no matter": f"Given their number, it {same} ({measured}).",
        "cheap first": f"Layers without attention do better first than last ({measured}).",
        "cheap last": f"Layers without attention do better last than first ({measured}).",
    }
    reason = f" ({found.reason})" if found.reason else ""
    return words.get(found.word) or (
        f"Whether it matters which layers do without attention, given their number, is undecided"
        f"{reason}."
    )


def _position_by(design: Design) -> str:
    """What a design says of the place."""
    measured = test_text(design.position_test).removesuffix(": ")
    of = f" ({measured})" if measured else ""
    words = {
        "no matter": f"it does not matter which layers have {design.cheap}{of}.",
        "matters": f"it matters which layers have {design.cheap}{of}.",
    }
    said = words.get(design.position_word)
    if said:
        return f"Given their number, {said}"
    which = f"which layers have {design.cheap}"
    return f"Whether it matters {which}, given their number, is undecided{of}."


def beware(answer: Answer, *, most: int | None = None) -> str:
    """What the reader should not forget."""
    found = cautions(answer)[:most]
    return f"Beware: {'; '.join(found)}." if found else ""


def against(answer: Answer, other: Against) -> Contrast | None:
    """The contrast with one of the finalists."""
    return next((found for found in answer.contrasts if found.against == other), None)


def _place(question: Question) -> str:
    """What was asked: task, size and length."""
    is_own = question.task.startswith(OWN_OBJECTIVE)
    task = question.task.removeprefix(OWN_OBJECTIVE)
    name = f"the objective {task}" if is_own else f"the task {task}"
    facts = [fact for fact in (question.size, _steps(question)) if fact]
    return f"for {name if task else 'this task'}" + (f" ({'; '.join(facts)})" if facts else "")


def _steps(question: Question) -> str:
    return plural(question.steps, "training step") if question.steps else ""


def _no_pick(answer: Answer) -> str:
    spent = answer.spent
    total = sum(spent.by_phase.values())
    if answer.leaders and answer.bounds.limits and not answer.bounds.n_within:
        return "no trained stack keeps the limits, so there is no pick."
    if answer.leaders:
        return "no stack of full depth has a result yet, so there is no pick."
    if not total:
        return "no trial has run yet, so there is no answer."
    waiting = sum(spent.by_state.get(state, 0) for state in ("proposed", "queued", "running"))
    trials = "the one trial has not" if total == 1 else f"none of {total} trials has"
    yet = " yet" if waiting else ""
    cause = f"; the first failure was: {spent.first_failure}" if spent.first_failure else ""
    return f"{trials} ended with a result{yet}, so there is no answer{cause.rstrip('.')}."


def _make_up(pick: Leader, answer: Answer) -> str:
    """How much attention a stack has, in words."""
    name = kind_of(answer.question.reference)
    layers = "its one layer" if pick.n_layers == 1 else f"all its {pick.n_layers} layers"
    if not pick.n_cheap:
        return f"{name} in {layers}"
    if not pick.n_attention:
        pure = f"{_first_kind(pick)} in {layers}, " if answer.pick_is_pure else ""
        return f"{pure}no {name} at all"
    return f"{name} in {pick.n_attention} of its {pick.n_layers} layers"


def _first_kind(pick: Leader) -> str:
    first = pick.notation.split(",", 1)[0].split("*", 1)[0]
    return kind_of(first)


def _not_held(answer: Answer) -> str:
    why = "nothing was repeated beside all-attention on the test split"
    if "reference" in answer.reach.failed:
        why = "no run of all-attention ended with a result"
    elif answer.reach.n_trained == 1:
        why = "there is nothing to hold it against"
    return f"How many layers may do without attention is undecided: {why}."


def _measured(contrast: Contrast, question: Question) -> str:
    """The difference on the test split, with its interval."""
    difference = difference_text(contrast.interval, question)
    return (
        f"{contrast.candidate} minus {contrast.other} is {with_unit(difference, question)} "
        f"in {question.objective} on test"
    )


def _open(contrast: Contrast, question: Question) -> str:
    """What is known of an undecided contrast, and what would decide it."""
    if contrast.interval is None:
        return _decided_by(contrast)
    known = f"{_measured(contrast, question)}, against a tolerance of {question.tolerance:g}"
    return f": {known}{_decided_by(contrast)}"


def _decided_by(contrast: Contrast) -> str:
    verdict = contrast.verdict
    if verdict.more_runs is None:
        return f" ({verdict.reason})" if verdict.reason else ""
    about = duration_or_nothing(verdict.more_seconds)
    about = f"{about}," if about else ""
    return f" ({plural(verdict.more_runs, 'more run')}{about} would decide it)"


def _together(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

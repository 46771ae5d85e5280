"""The answer in words and tables: terminal text and Markdown.

Returns text and computes nothing: every number comes from `search.answers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.api import DEFAULT_STORE
from search.budget import duration_words
from search.report_effects import Room, counts, layers, probe, training
from search.sections import Section, to_markdown, to_text
from search.wording import (
    ABSENT,
    difference_text,
    in_unit,
    plural,
    scaled,
    signed,
    time_text,
    two_digits,
    value_text,
)

if TYPE_CHECKING:
    from search.answers.answer import Answer, Leader

MAX_LINES = 40
WIDTH = 100
MIN_WIDTH = 60
ROOMS = (  # tried in turn until the answer fits a terminal
    *(Room(leaders=n, layers=6, mixers=2) for n in (8, 7, 6, 5, 4)),
    *(Room(leaders=4, layers=n, mixers=1) for n in (6, 4, 2, 1)),
)
CONFIRM_SHARE = 3  # the last third of a budget confirms

OTHERS = {"reference": "all-attention", "shorter": "shorter model", "rival": "rival"}


def render(answer: Answer, *, study: str, store: str = DEFAULT_STORE, width: int = WIDTH) -> str:
    """The answer as plain text, at most 40 lines on a terminal of 100 columns.

    Args:
        answer: the answer.
        study: the study's name.
        store: the store's URL; a password in it is not shown.
        width: columns of the terminal.
    """
    text = ""
    for room in ROOMS:
        parts = sections(answer, study=study, store=store, room=room)
        text = to_text(parts, max(width, MIN_WIDTH))
        if text.count("\n") <= MAX_LINES:
            break
    return text


def render_markdown(answer: Answer, *, study: str, store: str = DEFAULT_STORE) -> str:
    """The answer as Markdown, with all the tables."""
    return to_markdown(sections(answer, study=study, store=store), f"Answer of {study}")


def sections(
    answer: Answer, *, study: str, store: str = DEFAULT_STORE, room: Room | None = None
) -> list[Section]:
    """The answer as blocks of text, in reading order.

    Args:
        answer: the answer.
        study: the study's name.
        store: the store's URL.
        room: how much of the long parts to show; None for all.
    """
    parts = [_what_ran(answer, study)]
    if answer.leaders:
        parts += [
            _leaderboard(answer, room),
            _verdicts(answer),
            _noise(answer),
            counts(answer, room),
            layers(answer, room),
            training(answer),
            _costs(answer),
            probe(answer, room),
            _reach(answer),
        ]
    parts.append(_where(answer, study, store))
    return [part for part in parts if part.rows or part.lines]


def _what_ran(answer: Answer, study: str) -> Section:
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


def _leaderboard(answer: Answer, room: Room | None) -> Section:
    question = answer.question
    shown = answer.leaders if room is None else _foremost(answer, room.leaders)
    full = room is None
    columns: dict[str, list[str]] = {
        ">#": [str(row.rank) for row in shown],
        "layers": [row.code for row in shown],
        "what": [_names(row, full=full) for row in shown],
        ">selection": [value_text(row.selection, question) for row in shown],
    }
    for name in question.metrics:
        columns[f">{name}"] = [value_text(row.metrics.get(name), question) for row in shown]
    columns[">test"] = [value_text(row.test, question) for row in shown]
    columns[">SD (runs)"] = [
        f"{two_digits(row.test_sd)} ({row.n_test})" if row.n_test else ABSENT for row in shown
    ]
    columns[">params"] = [scaled(row.params) for row in shown]
    if full:
        columns[">FLOPs"] = [scaled(row.flops) for row in shown]
    columns[">latency"] = [time_text(row.latency_s) for row in shown]
    told = {name: cells for name, cells in columns.items() if set(cells) != {ABSENT}}
    good = "lower" if question.direction == "minimize" else "higher"
    line = f"{question.objective}{in_unit(question)}: {good} is better"
    if question.metrics:
        line += f"; {', '.join(question.metrics)} on selection"
    hidden = answer.reach.n_trained - len(shown)
    if hidden > 0:
        line += f"; {plural(hidden, 'more architecture')} not shown"
    return Section("Leaderboard", tuple(told), tuple(zip(*told.values(), strict=True)), (line,))


def _names(row: Leader, *, full: bool) -> str:
    names = [name.split(":", 1)[0].replace("_", " ") for name in row.names]
    return ", ".join(names if full else names[:1])


def _foremost(answer: Answer, n: int) -> list[Leader]:
    """The finalists, then the best two, then the best baselines, as many as there is room for."""
    finalists = {answer.pick, answer.reference, answer.shorter, answer.rival}
    by_need = sorted(
        answer.leaders,
        key=lambda row: (row.arch_id not in finalists, row.rank > 2, not row.is_baseline, row.rank),
    )
    return sorted(by_need[:n], key=lambda row: row.rank)


def _verdicts(answer: Answer) -> Section:
    question = answer.question
    if not answer.contrasts:
        return Section("Verdicts", lines=("undecided: nothing to compare with was trained",))
    rows = tuple(
        (
            f"{_role_of(answer, contrast.candidate_id)} - {OTHERS[contrast.against]}",
            difference_text(contrast.interval, question),
            contrast.verdict.text,
        )
        for contrast in answer.contrasts
    )
    header = ("on the test split", f">difference{in_unit(question)}", "verdict")
    line = f"tolerance {question.tolerance:g} {question.unit}".rstrip()
    levels = [
        c.interval.level for c in answer.contrasts if c.interval and c.interval.low is not None
    ]
    if levels:
        line += f"; Welch intervals of {100 * levels[0]:.3g} %, 95 % together, of seed noise alone"
    untested = OTHERS.keys() - {contrast.against for contrast in answer.contrasts}
    if untested:
        line += "; not held against: " + ", ".join(OTHERS[name] for name in sorted(untested))
    lines = [line]
    if answer.shrinkage is not None:
        lead = answer.shrinkage
        lines.append(
            f"lead over all-attention: {signed(lead.selection, question)} where it was chosen, "
            f"{signed(lead.test, question)} on test with fresh seeds"
        )
    return Section("Verdicts", header, rows, tuple(lines))


def _role_of(answer: Answer, arch_id: str) -> str:
    return "pick" if arch_id == answer.pick else "best hybrid"


def _noise(answer: Answer) -> Section:
    noise = answer.noise
    if noise.sd is None:
        line = f"not measured ({noise.reason}): no difference can be called real"
    else:
        line = (
            f"repeat SD {two_digits(noise.sd)} ({noise.df} df, 95 %: "
            f"{two_digits(noise.low)}..{two_digits(noise.high)})"
        )
    if noise.uniform_range is not None:
        line += f"; {noise.uniform_n} uniform stacks span {two_digits(noise.uniform_range)}"
        line += f" = {two_digits(noise.ratio)} SD" if noise.ratio is not None else ""
    return Section("Noise floor", lines=(line,))


def _costs(answer: Answer) -> Section:
    candidate = "best hybrid" if answer.pick == answer.reference else "pick"
    lines = []
    for saving in answer.savings:
        counted = (("params", saving.params), ("FLOPs", saving.flops))
        measured = (("step", saving.step), ("inference", saving.latency))
        parts = [
            label + ", ".join(f"{what} {1 / ratio:.2f}" for what, ratio in group if ratio)
            for label, group in (("", counted), ("measured ", measured))
            if any(ratio for _, ratio in group)
        ]
        if parts:
            lines.append(f"ratio {candidate} / {OTHERS[saving.against]}: " + "; ".join(parts))
    return Section("Costs", lines=tuple(lines))


def _reach(answer: Answer) -> Section:
    question, reach = answer.question, answer.reach
    space = f" of a space of {question.space_size}" if question.space_size else ""
    device = f" on {reach.device}" if reach.device else ""
    lines = [
        f"{plural(reach.n_trained, 'architecture')} trained{space}; holds for this task, size and "
        f"length{device}"
    ]
    if question.recipe:
        lines.append(f"one recipe for all: {question.recipe}")
    if reach.untested:
        lines.append("baselines left out: " + ", ".join(_untested(reach.untested)))
    return Section("Reach", lines=tuple(lines))


def _untested(roles: tuple[str, ...]) -> list[str]:
    return [role.replace("_", " ").replace(":", " ") for role in roles]


def _where(answer: Answer, study: str, store: str) -> Section:
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

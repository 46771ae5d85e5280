"""The leaderboard: selection, test with repeat SD, costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from search.report.sections import Room, Section
from search.wording import ABSENT, in_unit, plural, scaled, time_text, two_digits, value_text

if TYPE_CHECKING:
    from search.answers.answer import Answer
    from search.answers.leaders import Leader


def section(answer: Answer, room: Room | None) -> Section:
    """The best architectures, finalists and baselines."""
    question = answer.question
    ranked = list(answer.leaders) if room is None else _foremost(answer, room.leaders)
    own_rate = answer.reference_at_own_rate
    # Sorting is stable: a line beside the order stands before the one that has its rank.
    shown = sorted([own_rate, *ranked] if own_rate else ranked, key=lambda row: row.rank)
    full = room is None
    columns: dict[str, list[str]] = {
        ">#": [ABSENT if row.rate else str(row.rank) for row in shown],
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
    if full:
        columns["mixers"] = [row.notation for row in shown]
    told = {name: cells for name, cells in columns.items() if set(cells) != {ABSENT}}
    good = "lower" if question.direction == "minimize" else "higher"
    line = f"{question.objective}{in_unit(question)}: {good} is better"
    if question.metrics:
        line += f"; {', '.join(question.metrics)} on selection"
    hidden = answer.reach.n_trained - len(ranked)
    if own_rate:
        line += f"; {own_rate.code} at its own learning rate beside the order"
    if hidden > 0:
        line += f"; {plural(hidden, 'more architecture')} not shown"
    return Section("Leaderboard", tuple(told), tuple(zip(*told.values(), strict=True)), (line,))


def _names(row: Leader, *, full: bool) -> str:
    names = [name.split(":", 1)[0].replace("_", " ") for name in row.names]
    if row.rate is not None:
        return f"{names[0]} at {row.rate:g}"
    return ", ".join(names if full else names[:1])


def _foremost(answer: Answer, n: int) -> list[Leader]:
    """The finalists, then the best two, then the best baselines, as many as there is room for."""
    finalists = {answer.pick, answer.reference, answer.shorter, answer.rival}
    by_need = sorted(
        answer.leaders,
        key=lambda row: (row.arch_id not in finalists, row.rank > 2, not row.is_baseline, row.rank),
    )
    return sorted(by_need[:n], key=lambda row: row.rank)

"""A study's page: the answer with its chapters, what runs now, and its long lists."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from search.answers.answer import Answer
from search.report.sections import Section
from search.rows import StudyRow
from search.spec.budget import EXAMPLES, duration_words
from search.store.repo import Store
from search.wording import plural
from service.deps import Reader, StoreDep
from service.pages.board import Reading, Shown, board_of
from service.pages.running import running_now
from service.pages.tables import Table, Value, cell, from_section, study_href
from service.pages.templating import render
from service.pages.words import study_reason, study_state
from service.schemas import StudyPath
from service.studies import find, last_event, state_counts
from service.users import User

router = APIRouter(include_in_schema=False)
FOLDED = ("reproduce", "words")
STATE_ORDER = ("completed", "running", "queued", "proposed", "pruned")


@router.get("/studies/{study}")
def study_page(study: StudyPath, request: Request, store: StoreDep, user: Reader) -> HTMLResponse:
    """The answer first, then what it rests on."""
    row = find(store, study)
    # Of nothing there is no answer, however quickly it could be made.
    reading = board_of(request).read(row) if row.n_trials else Reading(None, is_current=True)
    return render(
        "study.html",
        user,
        "studies",
        **frame(store, row, user, "overview"),
        reading=reading,
        waiting=_waiting(reading, row),
        chapters=_chapters(reading.shown, row),
        key=str(id(reading.shown)) if reading.shown else "",
        running=running_now(store, row),
    )


def frame(store: Store, row: StudyRow, user: User, tab: str) -> dict[str, Any]:
    """What stands above every page of a study."""
    states = state_counts(store, row.id)
    return {
        "study": row,
        "state": study_state(row),
        "reason": study_reason(row),
        "facts": _facts(row, states),
        "tab": tab,
        "tabs": _tabs(row, states),
        "base": study_href(row.name, row.id),
        "base_href": study_href(row.base, 0) if row.base else "",
        "api": study_href(row.name, row.id).replace("/studies/", "/api/v1/studies/", 1),
        "last_event": last_event(store, row.id),
        "may_steer": user.may("submit"),
        "steps": _steps(row, user),
        "budgets": EXAMPLES,
        "n_failed": sum(states.get(state, 0) for state in ("failed", "diverged")),
    }


def _tabs(row: StudyRow, states: dict[str, int]) -> tuple[tuple[str, str, str], ...]:
    total = sum(states.values())
    return (
        ("overview", study_href(row.name, row.id), "Answer"),
        ("leaderboard", study_href(row.name, row.id, "leaderboard"), "Leaderboard"),
        ("trials", study_href(row.name, row.id, "trials"), f"Trials ({total})"),
        ("spec", study_href(row.name, row.id, "spec"), "Settings"),
    )


def _facts(row: StudyRow, states: dict[str, int]) -> tuple[tuple[str, Value], ...]:
    order = [*STATE_ORDER, *sorted(set(states) - set(STATE_ORDER))]
    counted = ", ".join(f"{states[state]} {state}" for state in order if states.get(state))
    found = (
        ("objective", f"{row.direction} {row.objective}"),
        ("trials", counted or "none yet"),
        ("budget", row.budget or ""),
        ("busy", duration_words(row.busy_s) if row.busy_s else ""),
        ("created", cell(row.created_at, kind="moment")),
    )
    return tuple((name, value) for name, value in found if value)


def _steps(row: StudyRow, user: User) -> tuple[tuple[str, str], ...]:
    """What this user may do to the study now: the API's word for it, and the button's."""
    if not user.may("submit"):
        return ()
    if row.state == "paused":
        return (("resume", "Resume"), ("stop", "Stop for good"))
    if row.state == "stopped":
        return (("resume?stopped=true", "Take up again"),)
    return (("pause", "Pause"), ("stop", "Stop for good")) if row.state == "running" else ()


def _chapters(shown: Shown | None, row: StudyRow) -> list[dict[str, Any]]:
    """The report's chapters with links to trials, and tables as pages have them."""
    if shown is None:
        return []
    answer = shown.answered.answer
    return [
        {
            "key": chapter.key,
            "title": chapter.title,
            "lead": chapter.lead,
            "parts": [_part(section, answer, row) for section in chapter.sections],
            "figures": [shown.figures[name] for name in chapter.figures if name in shown.figures],
            "more": _more(chapter.key, answer, row),
            "is_folded": chapter.key in FOLDED,
        }
        for chapter in shown.document.chapters
    ]


def _part(section: Section, answer: Answer, row: StudyRow) -> dict[str, Any]:
    table = from_section(section, fits=True) if section.header else None
    if table is not None and section.title == "Leaderboard":
        table = _linked_leaders(table, answer, row)
    return {"section": section, "table": table}


def _linked_leaders(table: Table, answer: Answer, row: StudyRow) -> Table:
    """The leaderboard whose codes lead to the trials behind them."""
    place = next(at for at, column in enumerate(table.columns) if column.name == "layers")
    rows = []
    for cells, leader in zip(table.rows, answer.leaders, strict=True):
        href = study_href(row.name, row.id, "trials", arch_id=leader.arch_id)
        linked = cell(leader.code, kind="stack", title=leader.notation, href=href)
        rows.append((*cells[:place], linked, *cells[place + 1 :]))
    return Table(table.caption, table.columns, tuple(rows))


def _more(key: str, answer: Answer, row: StudyRow) -> tuple[str, str] | None:
    """Where a chapter's long list stands: its address and words."""
    if key == "leaderboard" and answer.leaders:
        n = plural(answer.reach.n_trained, "architecture")
        return study_href(row.name, row.id, "leaderboard"), f"All {n}"
    if key == "failures" and answer.spent.failures:
        return study_href(row.name, row.id, "trials", state="failed"), "All failed trials"
    return None


def _waiting(reading: Reading, row: StudyRow) -> str:
    """What stands where the answer will be."""
    if reading.problem:
        return reading.problem
    if not row.n_trials:
        return (
            "No trial has started yet. A worker starts them ('search worker'); the answer appears "
            "here as they end."
        )
    return "The answer is being made from the trials so far; it appears here by itself."

"""The long lists of a study: its trials, its architectures, its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from search.cli.numbers import decimals
from search.rows import PHASES, TRIAL_STATES
from search.store.views import PARETO, TRIALS_FLAT
from search.wording import ABSENT, role_words, scaled, time_text, two_digits
from service.deps import Reader, StoreDep
from service.listing import page_of
from service.pages.study import frame
from service.pages.study_text import study_text
from service.pages.tables import PAGE_SIZE, Column, List, Table, Value, cell, study_href
from service.pages.templating import render
from service.schemas import PageNumber, StudyPath
from service.studies import find

router = APIRouter(include_in_schema=False)
LONGEST_REMARK = 96
"""Characters of a remark in a list; the trial's own page has all of it."""
Sort = Annotated[str, Query(max_length=40, pattern=r"^(-?[a-z_]+)?$")]
Short = Annotated[str, Query(max_length=200)]


@router.get("/studies/{study}/trials")
def trials(
    study: StudyPath,
    store: StoreDep,
    user: Reader,
    state: Short = "",
    phase: Short = "",
    code: Short = "",
    arch_id: Short = "",
    sort: Sort = "",
    page: PageNumber = 1,
) -> HTMLResponse:
    """The trials of a study, in every state."""
    row = find(store, study)
    filters = {"state": state, "phase": phase, "code": code.strip(), "arch_id": arch_id}
    found, total = page_of(
        store,
        TRIALS_FLAT,
        equal={"study": row.name},
        among={name: [value] if value else None for name, value in filters.items()},
        sort=sort or "-number",
        key="trial",
        page=page,
        page_size=PAGE_SIZE,
    )
    base = study_href(row.name, row.id, "trials")
    listed = List(base, filters, sort, page, total)
    return render(
        "trials.html",
        user,
        "studies",
        **frame(store, row, user, "trials"),
        list=listed,
        table=Table("Trials", _trial_columns(listed, row.objective), _trial_rows(found, base)),
        filters=filters,
        states=TRIAL_STATES,
        phases=PHASES,
    )


def _trial_columns(listed: List, objective: str) -> tuple[Column, ...]:
    return (
        listed.column("trial", "number", right=True, first="-"),
        Column("layers"),
        listed.column("phase", "phase"),
        listed.column("state", "state"),
        listed.column(f"{objective} on selection", "selection", right=True),
        listed.column("on test", "test", right=True),
        listed.column("seed", "seed", right=True),
        listed.column("params", "params", right=True),
        listed.column("FLOPs", "flops", right=True),
        listed.column("latency", "latency_s", right=True),
        listed.column("took", "seconds", right=True),
        listed.column("ended", "finished_at", first="-"),
        Column("note", wide=True),
    )


def _trial_rows(found: list[dict[str, Any]], base: str) -> tuple[tuple[Value, ...], ...]:
    return tuple(
        (
            cell(row["number"], href=f"{base}/{row['number']}"),
            cell(row["code"], kind="stack", title=row["notation"] or ""),
            row["phase"],
            cell(row["state"], kind="state"),
            decimals(row["selection"]),
            decimals(row["test"]),
            ABSENT if row["seed"] is None else row["seed"],
            scaled(row["params"]),
            scaled(row["flops"]),
            time_text(row["latency_s"]),
            ABSENT if row["reused_from"] is not None else time_text(row["seconds"]),
            cell(row["finished_at"], kind="moment"),
            _remark(row),
        )
        for row in found
    )


def _remark(row: Mapping[str, Any]) -> str:
    """Why a trial failed, what it stands for, or where its result came from."""
    if row["state"] == "completed":
        reused = " (reused)" if row["reused_from"] is not None else ""
        return f"{role_words(row['role'] or '')}{reused}".strip()
    words = row["error"] or row["reason"] or ""
    return words if len(words) <= LONGEST_REMARK else f"{words[:LONGEST_REMARK].rstrip()} ..."


@router.get("/studies/{study}/leaderboard")
def leaderboard(
    study: StudyPath,
    store: StoreDep,
    user: Reader,
    only: Annotated[str, Query(pattern="^(front|baselines)?$")] = "",
    code: Short = "",
    sort: Sort = "",
    page: PageNumber = 1,
) -> HTMLResponse:
    """Every architecture with a result, best first by what it was chosen on."""
    row = find(store, study)
    marks = {"front": {"is_pareto": True}, "baselines": {"is_baseline": True}}
    filters = {"only": only, "code": code.strip()}
    found, total = page_of(
        store,
        PARETO,
        equal={"study": row.name, **marks.get(only, {})},
        among={"code": [filters["code"]] if filters["code"] else None},
        sort=sort or "place",
        key="arch_id",
        page=page,
        page_size=PAGE_SIZE,
    )
    path = study_href(row.name, row.id, "leaderboard")
    listed = List(path, filters, sort, page, total)
    rows = tuple(_leader_row(entry, row.name, row.id) for entry in found)
    return render(
        "leaderboard.html",
        user,
        "studies",
        **frame(store, row, user, "leaderboard"),
        list=listed,
        table=Table("Leaderboard", _leader_columns(listed, row.objective), rows),
        only=only,
        code=filters["code"],
    )


def _leader_columns(listed: List, objective: str) -> tuple[Column, ...]:
    return (
        listed.column("#", "place", right=True),
        listed.column("layers", "code"),
        listed.column(f"{objective} on selection", "mean", right=True),
        Column("SD (runs)", right=True),
        listed.column("on test", "test_mean", right=True),
        Column("SD (runs)", right=True),
        listed.column("params", "params", right=True),
        listed.column("FLOPs", "flops", right=True),
        listed.column("latency", "latency_s", right=True),
        listed.column("probe", "probe", right=True),
        Column("what"),
        Column("mixers", wide=True),
    )


def _leader_row(entry: Mapping[str, Any], study: str, study_id: int) -> tuple[Value, ...]:
    what = [
        word
        for word, holds in (("baseline", entry["is_baseline"]), ("front", entry["is_pareto"]))
        if holds
    ]
    return (
        entry["place"],
        cell(
            entry["code"],
            kind="stack",
            title=entry["notation"],
            href=study_href(study, study_id, "trials", arch_id=entry["arch_id"]),
        ),
        decimals(entry["mean"]),
        f"{two_digits(entry['sd'])} ({entry['n']})",
        decimals(entry["test_mean"]),
        f"{two_digits(entry['test_sd'])} ({entry['test_n']})" if entry["test_n"] else ABSENT,
        scaled(entry["params"]),
        scaled(entry["flops"]),
        time_text(entry["latency_s"]),
        ABSENT if entry["probe"] is None else f"{entry['probe']:.3g}",
        ", ".join(what),
        entry["notation"],
    )


@router.get("/studies/{study}/spec")
def settings(study: StudyPath, store: StoreDep, user: Reader) -> HTMLResponse:
    """The study's file, and where its mixers come from."""
    row = find(store, study)
    owners = tuple(
        (cell(kind, href=f"/mixers/{kind}"), distribution, version)
        for kind, (distribution, version) in sorted(row.plugins.items())
    )
    return render(
        "spec.html",
        user,
        "studies",
        **frame(store, row, user, "spec"),
        text=study_text(row.spec),
        mixers=Table(
            "Mixers of the space",
            (Column("mixer"), Column("package"), Column("version")),
            owners,
            fits=True,
        ),
    )

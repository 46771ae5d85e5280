"""What a study found: leaderboard, effects, front, answer, report, comparison, its trials."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import PlainTextResponse, Response

from search.errors import InputError, NothingThereError
from search.rows import Phase, TrialRow, TrialState
from search.store.repo import Store
from search.store.views import LEADERBOARD, TRIALS_FLAT, find_view
from service.answers import answer_document, comparison_document
from service.deps import AnswersDep, Reader, StoreDep
from service.listing import page_of
from service.problems import ProblemError, errors, one_line
from service.schemas import (
    Document,
    NumberPath,
    Page,
    PageNumber,
    PageSize,
    Rows,
    StudyPath,
    Text,
    TrialSummary,
)
from service.studies import find

router = APIRouter(prefix="/studies/{study}", tags=["results"])
COLUMNS = "|".join(TRIALS_FLAT.columns)
Sort = Annotated[
    str | None,
    Query(
        max_length=200,
        pattern=rf"^-?({COLUMNS})(,-?({COLUMNS}))*$",
        description="Columns in order of weight; `-` before one puts the greatest first.",
        examples=["-selection,number"],
    ),
]
Forms = Literal["text", "markdown", "html", "json"]
EXPORT_TYPES = {"csv": "text/csv", "jsonl": "application/x-ndjson"}
REPORT_TYPES = ("text/plain", "text/markdown", "text/html", "application/json")


def file_of(*types: str) -> dict[str, Any]:
    """OpenAPI's entry of an answer that is a file of one of some types."""
    content = {
        kind: {"schema": {"type": "object" if kind == "application/json" else "string"}}
        for kind in types
    }
    return {"description": "The file.", "content": content}


@router.get("/trials", summary="List trials", tags=["trials"], responses=errors())
def list_trials(
    study: StudyPath,
    store: StoreDep,
    user: Reader,
    state: Annotated[list[TrialState] | None, Query(description="Only in these states.")] = None,
    phase: Annotated[list[Phase] | None, Query(description="Only of these phases.")] = None,
    arch_id: Annotated[list[Text] | None, Query(description="Only of these.")] = None,
    code: Annotated[list[Text] | None, Query(description="Only of these codes.")] = None,
    sort: Sort = "number",
    page: PageNumber = 1,
    page_size: PageSize = 50,
) -> Page[TrialSummary]:
    """Trials of a study, in every state; those without a value of a sorted column come last."""
    rows, total = page_of(
        store,
        TRIALS_FLAT,
        equal={"study": find(store, study).name},
        among={"state": state, "phase": phase, "arch_id": arch_id, "code": code},
        sort=sort,
        key="trial",
        page=page,
        page_size=page_size,
    )
    items = [TrialSummary.model_validate(row) for row in rows]
    return Page(items=items, total=total, page=page, page_size=page_size)


@router.get("/rows", summary="All trials at once", tags=["trials"], responses=errors())
def rows(
    study: StudyPath, store: StoreDep, user: Reader, curves: bool = True, documents: bool = False
) -> list[TrialRow]:
    """Every trial as the answers need it, for clients that work them out themselves."""
    return store.rows(find(store, study).name, curves=curves, documents=documents)


@router.get(
    "/trials/{number}", summary="Show a trial by number", tags=["trials"], responses=errors()
)
def show_trial(study: StudyPath, number: NumberPath, store: StoreDep, user: Reader) -> Document:
    """Everything known of it, as `search show STUDY NUMBER --json`."""
    name = find(store, study).name
    rows, _ = page_of(
        store,
        TRIALS_FLAT,
        equal={"study": name, "number": number},
        among={},
        sort=None,
        key="trial",
        page=1,
        page_size=1,
    )
    if not rows:
        raise NothingThereError(f"study {name!r} has no trial {number}")
    return Document.model_validate(store.trial(rows[0]["trial"]))


@router.get("/leaderboard", summary="Leaderboard", responses=errors())
def leaderboard(
    study: StudyPath,
    store: StoreDep,
    user: Reader,
    page: PageNumber = 1,
    page_size: PageSize = 50,
) -> Page[dict[str, Any]]:
    """Architectures, best first by the mean on the selection split, on which they were chosen.

    The columns are those of the view `leaderboard`.
    """
    rows, total = page_of(
        store,
        LEADERBOARD,
        equal={"study": find(store, study).name},
        among={},
        sort="place",
        key="arch_id",
        page=page,
        page_size=page_size,
    )
    return Page(items=rows, total=total, page=page, page_size=page_size)


@router.get("/layer-effects", summary="Raw effects of layers", responses=errors())
def layer_effects(study: StudyPath, store: StoreDep, user: Reader) -> Rows:
    """The view `layer_effects`; effects with intervals are the answer's."""
    return view_of(store, "layer_effects", study)


@router.get("/pareto", summary="Pareto front", responses=errors())
def pareto(study: StudyPath, store: StoreDep, user: Reader) -> Rows:
    """Architectures that no other beats in quality, FLOPs and parameters."""
    view = find_view("pareto")
    rows, _ = page_of(
        store,
        view,
        equal={"study": find(store, study).name, "is_pareto": True},
        among={},
        sort="place",
        key="arch_id",
        page=1,
        page_size=10_000,
    )
    return Rows(columns=view.columns, rows=rows)


@router.get("/verdicts", summary="Verdicts of the newest stored answer", responses=errors())
def verdicts(study: StudyPath, store: StoreDep, user: Reader) -> Rows:
    """The view `verdicts`, which a report writes; `answer` works them out anew."""
    return view_of(store, "verdicts", study)


@router.get("/answer", summary="The study's answer", responses=errors())
def answer(study: StudyPath, store: StoreDep, answers: AnswersDep, user: Reader) -> Document:
    """Verdicts, leaders, noise, effects and costs, as `search report --json`.

    Of all that trained, `pareto.points` holds the front and the baselines alone; the others stand
    in `report?format=json`.
    """
    return Document.model_validate(answer_document(answers.of(find(store, study)).answer))


@router.get(
    "/best",
    summary="The best architecture",
    responses=errors(),
)
def best(study: StudyPath, store: StoreDep, user: Reader) -> Document:
    """The first row of the leaderboard; 404 where no trial has ended with a result."""
    row = find(store, study)
    leaders = store.leaderboard(row.name, 1)
    if not leaders:
        failed = f"; {row.n_trials} trials have none" if row.n_trials else ""
        raise NothingThereError(f"study {row.name!r} has no finished trial yet{failed}")
    return Document.model_validate(leaders[0])


@router.get(
    "/report",
    summary="The study's report",
    response_class=PlainTextResponse,
    responses=errors() | {200: file_of(*REPORT_TYPES)},
)
def report(
    study: StudyPath,
    store: StoreDep,
    answers: AnswersDep,
    user: Reader,
    format: Forms = "markdown",
) -> Response:
    """The report as text, Markdown, JSON, or one HTML page with all figures, to be saved."""
    from search.cli.report import set_answer

    made = answers.of(find(store, study))
    text = set_answer(made.answer, made.about, made.rows, format)
    kinds = {"text": "text/plain", "markdown": "text/markdown", "html": "text/html"}
    endings = {"text": "txt", "markdown": "md"}
    kind = kinds.get(format, "application/json")
    return Response(
        text,
        media_type=kind,
        headers=attachment(f"{made.study.name}.{endings.get(format, format)}"),
    )


@router.get(
    "/export",
    summary="All trials as a file",
    response_class=PlainTextResponse,
    responses=errors() | {200: file_of(*EXPORT_TYPES.values())},
)
def export(
    study: StudyPath,
    store: StoreDep,
    user: Reader,
    format: Literal["csv", "jsonl"] = "csv",
    view: Literal["trials_flat", "leaderboard", "layer_effects", "pareto"] = "trials_flat",
) -> Response:
    """Rows of a view as CSV or JSON lines, as `search export`; 404 where it has none."""
    import io

    from search.export import read_view, write_text

    name = find(store, study).name
    out = io.StringIO(newline="")
    columns, rows = read_view(store, view, name)
    if not rows:
        raise NothingThereError(f"{view} has no row of study {name!r} yet")
    write_text(columns, rows, out, format)
    return Response(
        out.getvalue(),
        media_type=EXPORT_TYPES[format],
        headers=attachment(f"{name}-{view}.{format}"),
    )


@router.get("/compare/{other}", summary="Compare two studies", responses=errors(409))
def compare(
    study: StudyPath, other: StudyPath, store: StoreDep, answers: AnswersDep, user: Reader
) -> Document:
    """Two studies side by side; 409 with the fields where task, splits or recipe differ.

    `shared` holds the first 200 of the `n_shared` architectures that both trained.
    """
    from search.answers.side_by_side import side_by_side
    from search.cli.answering import require_finished
    from search.cli.compare import allowed_differences

    first, second = find(store, study), find(store, other)
    try:
        differing = allowed_differences(first, second)
    except InputError as error:
        raise ProblemError(409, one_line(error)) from None
    made = answers.of(first), answers.of(second)
    for one in made:
        require_finished(one.answer, one.study)
    sides = side_by_side(
        (first.name, second.name),
        (made[0].answer, made[1].answer),
        (made[0].rows, made[1].rows),
        differing,
    )
    return Document.model_validate(comparison_document(sides))


def view_of(store: Store, name: str, study: str) -> Rows:
    """All rows of a view about a study."""
    return Rows(columns=find_view(name).columns, rows=store.view(name, find(store, study).name))


def attachment(name: str) -> dict[str, str]:
    """The header by which a browser saves a file; any name is safe in it."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)
    return {
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"
    }

"""Mixers that are installed: a list, and a card for each."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from mixers.registry import mixer_registry
from search.cli.mixers_show import fields_of
from search.figures.influence import NOTE, influence_figure
from search.figures.shown import PageFigure, page_figure
from search.wording import scaled
from service.deps import Reader
from service.pages.tables import Column, Table, Value, cell
from service.pages.templating import render
from service.pages.words import ticks
from service.problems import ProblemError
from service.routes.mixers import all_mixers, card, show
from service.schemas import KindPath

router = APIRouter(include_in_schema=False)
FIGURE_HEIGHT = 460
TRAITS = (
    ("reach", "reach"),
    ("cost", "cost"),
    ("linear", "linear"),
    ("position_aware", "order matters"),
)


@router.get("/mixers")
def mixers(user: Reader) -> HTMLResponse:
    """Every mixer with its claims, broken ones with the reason."""
    found = all_mixers()
    usable = [mixer for mixer in found.values() if mixer.broken is None]
    rows = tuple(
        (
            cell(mixer.kind, href=f"/mixers/{mixer.kind}"),
            cell(mixer.symbol, kind="stack"),
            *(words((mixer.traits or {}).get(name)) for name, _ in TRAITS),
            f"{mixer.distribution} {mixer.version}",
        )
        for mixer in usable
    )
    columns = (
        Column("mixer"),
        Column("letter"),
        *(Column(label) for _, label in TRAITS),
        Column("package"),
    )
    broken = tuple(
        (mixer.kind, f"{mixer.distribution} {mixer.version}", " ".join(mixer.broken.split()))
        for mixer in found.values()
        if mixer.broken is not None
    )
    heads = (Column("name"), Column("package"), Column("why", wide=True))
    return render(
        "mixers.html",
        user,
        "mixers",
        table=Table("Mixers", columns, rows, fits=True),
        broken=Table("Broken mixers", heads, broken, fits=True),
    )


@router.get("/mixers/{kind}")
def mixer(
    kind: KindPath, user: Reader, measure: Annotated[str, Query(pattern="^1?$")] = ""
) -> HTMLResponse:
    """A mixer: what it does, claims, settings; with `measure`, what was measured of it."""
    known = show(kind, user)
    fields = fields_of(mixer_registry.get(kind))
    columns = (Column("setting"), Column("type"), Column("default"), Column("meaning", wide=True))
    rows = tuple((f["name"], f["type"], f["default"], ticks(f["description"])) for f in fields)
    measured, problem = None, ""
    if measure:
        try:
            measured = card(kind, user).model_dump()
        except ProblemError as error:
            problem = error.detail
    return render(
        "mixer.html",
        user,
        "mixers",
        mixer=known,
        paragraphs=[" ".join(part.split()) for part in known.doc.split("\n\n")],
        traits=[
            (name.replace("_", " "), words(value)) for name, value in (known.traits or {}).items()
        ],
        settings=Table("Settings", columns, rows),
        measured=None if measured is None else _measured(measured),
        figure=None if measured is None else _influence(kind, measured),
        problem=problem,
    )


def words(value: Any) -> str:
    """A claim as people read it."""
    if value is None:
        return "-"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _measured(found: dict[str, Any]) -> dict[str, Any]:
    holds = {name: reason for name, reason in found["holds"].items() if reason is not None}
    rows: tuple[tuple[Value, ...], ...] = (
        ("parameters", scaled(found["parameters"]), ""),
        (
            "FLOPs of a forward pass",
            scaled(found["flops"]),
            f"{found['flops'] / found['attention_flops']:.2f} of attention's",
        ),
        *(
            (f"rounding error in {name}", f"{error:.1e}", "of the largest output, against float64")
            for name, error in found["errors"].items()
        ),
    )
    return {
        "where": f"d_model {found['d_model']}, {found['seq_len']} tokens, as initialised",
        "claims": f"{len(found['holds']) - len(holds)} of {len(found['holds'])} checks of its "
        "claims hold",
        "refuted": [f"{name}: {reason}" for name, reason in holds.items()],
        "table": Table(
            "Measured", (Column("what"), Column("value", right=True), Column("")), rows, fits=True
        ),
        "warnings": found["warnings"],
    }


def _influence(kind: str, found: dict[str, Any]) -> PageFigure:
    figure = influence_figure(kind, found["influence"], found["d_model"])
    figure.update_layout(height=FIGURE_HEIGHT)
    return page_figure("influence", figure, "Who moves whom", NOTE)

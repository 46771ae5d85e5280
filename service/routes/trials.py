"""Trials: the whole, its parts, and its files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query

from search.store.repo import Store
from service.artifacts import Part, artifact, artifacts_of, place_of
from service.deps import Reader, SettingsDep, StoreDep
from service.listing import thinned
from service.problems import errors
from service.routes.results import attachment
from service.schemas import ArtifactDocument, Document, IdPath, Points, Text

router = APIRouter(tags=["trials"])
Splits = Literal["train", "selection"]


@router.get("/trials/{trial}", summary="Show a trial", responses=errors())
def show(trial: IdPath, store: StoreDep, user: Reader) -> Document:
    """Everything known of it, its curves included."""
    return Document.model_validate(store.trial(trial))


@router.get("/trials/{trial}/points", summary="A curve of a trial", responses=errors())
def points(
    trial: IdPath,
    store: StoreDep,
    user: Reader,
    split: Splits = "selection",
    metric: Text = "loss",
    most: Annotated[int, Query(ge=4, le=5000, description="Most points.")] = 500,
) -> Points:
    """A metric over the steps, thinned out so that peaks stay; none where it was not recorded."""
    curve = store.trial(trial)["curves"].get(f"{split}.{metric}", [])
    found = [(int(step), float(value)) for step, value in curve]
    return Points(split=split, metric=metric, total=len(found), points=thinned(found, most))


@router.get("/trials/{trial}/blocks", summary="Layers of a trial", responses=errors())
def blocks(trial: IdPath, store: StoreDep, user: Reader) -> list[dict[str, Any]]:
    """Mixer, config and package of each layer, first layer first."""
    found: list[dict[str, Any]] = store.trial(trial)["blocks"]
    return found


@router.get("/trials/{trial}/probes", summary="Probe of a trial", responses=errors())
def probes(
    trial: IdPath, store: StoreDep, user: Reader
) -> dict[Literal["init", "final"], dict[str, float | None]]:
    """Readings before and after training; empty where the probe was not made."""
    found: dict[Literal["init", "final"], dict[str, float | None]] = store.trial(trial)["probes"]
    return found


@router.get("/trials/{trial}/costs", summary="Costs of a trial", responses=errors())
def costs(trial: IdPath, store: StoreDep, user: Reader) -> Document:
    """Parameters, FLOPs, times with their spread, memory; empty where not measured."""
    return part(store, trial, "costs")


@router.get("/trials/{trial}/proof", summary="Proof of a trial", responses=errors())
def proof(trial: IdPath, store: StoreDep, user: Reader) -> Document:
    """Which modules were really run; empty where the trial has none."""
    return part(store, trial, "proof")


@router.get("/trials/{trial}/attempts", summary="Attempts at a trial", responses=errors())
def attempts(trial: IdPath, store: StoreDep, user: Reader) -> list[dict[str, Any]]:
    """Every try with its worker's lease, outcome and cause, oldest first."""
    found: list[dict[str, Any]] = store.trial(trial)["attempts"]
    return found


@router.get("/trials/{trial}/artifacts", summary="Files of a trial", responses=errors())
def artifacts(trial: IdPath, store: StoreDep, user: Reader) -> list[ArtifactDocument]:
    """Files that belong to a trial; `/artifacts/{artifact}` has their content."""
    store.trial(trial)
    return [ArtifactDocument.model_validate(row) for row in artifacts_of(store, trial)]


@router.get(
    "/artifacts/{artifact_id}",
    summary="Content of a file",
    response_class=Part,
    responses=errors(416)
    | {
        200: {"description": "The file.", "content": {"application/octet-stream": {}}},
        206: {
            "description": "The part that `Range` asks for.",
            "content": {"application/octet-stream": {}},
        },
    },
)
def content(artifact_id: IdPath, store: StoreDep, settings: SettingsDep, user: Reader) -> Part:
    """The file, whole or in the parts that the header `Range` names; inside the data root alone."""
    path = place_of(artifact(store, artifact_id), store, settings)
    return Part(path, media_type="application/octet-stream", headers=attachment(path.name))


def part(store: Store, trial: int, name: str) -> Document:
    """A part of a trial's document."""
    return Document.model_validate(store.trial(trial)[name] or {})

"""Mixers that are installed: claims, settings, JSON Schema, measured card."""

from __future__ import annotations

import threading
import warnings
from functools import lru_cache
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.deps import Reader
from service.problems import ProblemError, errors, one_line
from service.schemas import Document, KindPath, spec_schema

router = APIRouter(tags=["mixers"])
MEASURING = threading.Lock()
CARD_SIZE = 64


class MixerDocument(BaseModel):
    """A mixer that is installed."""

    kind: str
    distribution: str = Field(description="Package that it came with.")
    version: str
    symbol: str | None = Field(description="Its character in codes.")
    traits: dict[str, Any] | None = Field(description="Claims of its default config.")
    broken: str | None = Field(description="Why it cannot be used.")


class MixerCard(MixerDocument):
    """A mixer with its settings."""

    json_schema: dict[str, Any] = Field(description="JSON Schema of its config.")
    doc: str = Field(description="What it does.")


def all_mixers() -> dict[str, MixerDocument]:
    """Every mixer by name."""
    from mixers import available

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the list itself says what is broken
        found = available()
    return {
        name: MixerDocument(
            kind=info.kind,
            distribution=info.distribution,
            version=info.version,
            symbol=info.symbol,
            traits=None if info.traits is None else info.traits.model_dump(mode="json"),
            broken=info.broken,
        )
        for name, info in found.items()
    }


@router.get("/mixers", summary="List mixers", responses=errors())
def list_mixers(user: Reader) -> list[MixerDocument]:
    """Every mixer that is installed on the service's machine, broken ones with the reason."""
    return list(all_mixers().values())


@router.get("/mixers/{kind}", summary="Show a mixer", responses=errors())
def show(kind: KindPath, user: Reader) -> MixerCard:
    """Claims, documentation and the JSON Schema of its settings."""
    import inspect

    from mixers.registry import mixer_registry

    known = found(kind)
    plugin = mixer_registry.load(kind)
    return MixerCard(
        **known.model_dump(),
        json_schema=plugin.config_type.model_json_schema(),
        doc=inspect.getdoc(plugin) or "",
    )


@router.get("/mixers/{kind}/card", summary="Measure a mixer", responses=errors())
def card(kind: KindPath, user: Reader) -> Document:
    """What holds of its claims, cost, rounding errors, sizes: measured once, which takes seconds.

    One mixer is measured at a time; another request meanwhile is 429.
    """
    found(kind)
    if not MEASURING.acquire(blocking=False):
        raise ProblemError(429, "another mixer is being measured", headers={"Retry-After": "5"})
    try:
        return Document.model_validate(measured(kind))
    finally:
        MEASURING.release()


@router.get("/schemas/{document}", summary="JSON Schema of a document", responses=errors())
def schema(document: Literal["study"], user: Reader) -> Document:
    """The JSON Schema of a study spec with the mixers that are installed now."""
    return Document.model_validate(spec_schema())


def found(kind: str) -> MixerDocument:
    """Return a mixer that works.

    Raises:
        ProblemError: 404, or 422 for a broken one.
    """
    from mixers.errors import BrokenPluginError
    from mixers.registry import mixer_registry

    try:
        mixer_registry.get(kind)
    except BrokenPluginError as error:
        raise ProblemError(422, one_line(error)) from None
    except ValueError as error:
        raise ProblemError(404, one_line(error)) from None
    return all_mixers()[kind]


@lru_cache(maxsize=64)
def measured(kind: str) -> dict[str, Any]:
    """Measure a mixer's default config."""
    from mixers.measure import measure
    from search.cli.mixers_card import card_document
    from search.cli.output import jsonable

    document: dict[str, Any] = jsonable(
        card_document(measure(kind, d_model=CARD_SIZE, seq_len=CARD_SIZE))
    )
    return document

"""What configs and specs have in common: strict frozen models, their canonical JSON, traits."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Strict
from pydantic.fields import FieldInfo

ItemT = TypeVar("ItemT")
Items = Annotated[tuple[ItemT, ...], Strict(False)]
"""A tuple that also accepts a list, as files and HTTP bodies have them; its items stay strict."""


class FrozenModel(BaseModel):
    """A validated, immutable, hashable document: unknown keys, NaN and wrong types are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Since:
    """Marks a field that came after the first schema version, as in `Annotated[int, Since(2)]`.

    `canonical_json` leaves such a field out while it has its default, so documents written before
    the field existed keep their ids.
    """

    def __init__(self, version: int) -> None:
        self.version = version


def canonical_json(model: BaseModel) -> str:
    """Return the one JSON text of a document: sorted keys, no blanks, normalised numbers.

    A whole-number float is written as an integer (`1.0` as `1`, `-0.0` as `0`), so a field may
    widen from int to float without changing ids. Fields marked `Since` are left out at their
    default.
    """
    return json.dumps(
        canonical_value(model),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def canonical_value(value: Any) -> Any:
    """Return `value` as plain JSON values in canonical form (see `canonical_json`)."""
    if isinstance(value, BaseModel):
        return {
            name: canonical_value(getattr(value, name))
            for name, field in type(value).model_fields.items()
            if not left_out(field, getattr(value, name))
        }
    if isinstance(value, dict):
        return {str(key): canonical_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [canonical_value(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    return value


def left_out(field: FieldInfo, value: Any) -> bool:
    """Whether `canonical_json` leaves the field out: it came later and has its default."""
    came_later = any(isinstance(mark, Since) for mark in field.metadata)
    return came_later and bool(value == field.get_default(call_default_factory=True))


class MixerConfig(FrozenModel):
    """Base of every mixer's config; a subclass sets `kind: Literal["..."]` and its own fields."""

    # A default that is no valid value would build a mixer that no stored spec gives back.
    model_config = ConfigDict(validate_default=True)

    kind: str

    def resolve(self, *, d_model: int, max_seq_len: int) -> Self:
        """Return this config with fields that depend on the sizes around it filled in.

        Specs store the resolved config, so two ways to write one layer have one id.
        """
        return self

    def conflicts(self, *, d_model: int, max_seq_len: int) -> Iterator[tuple[str, str]]:
        """Yield (field, what is wrong and what to do) for values that the sizes rule out."""
        yield from ()


class MixerTraits(FrozenModel):
    """What a mixer claims about itself; `mixers.testing.check_mixer` measures every one.

    Attributes:
        reach: Tokens that an output sees on each side of its own position, or "global": no bound
            (which of them, `TokenMixer.connections` says).
        reach_causal: Tokens that it sees before its own position when built causal; None = `reach`.
        linear: The update is linear in x up to a constant (a bias): f(x) - f(0) is linear.
        position_aware: The order of tokens matters; otherwise permuting the tokens permutes the
            output.
        causal: Can be built with `causal=True`, and then no output looks ahead.
        fixed_length: Bound to `max_seq_len` and to absolute positions; longer input is refused.
        surrogate_gradient: The backward pass is that of another function (a hard choice that lets a
            soft one's gradient through): the gradient is not the derivative of the output.
        cost: Growth of the definition's work with the number of tokens.
        source: Paper and equation.
    """

    reach: int | Literal["global"]
    reach_causal: int | Literal["global"] | None = None
    linear: bool
    position_aware: bool
    causal: bool
    fixed_length: bool
    surrogate_gradient: bool = False
    cost: Literal["n", "n log n", "n^2"]
    source: str

    def reach_as_built(self, *, causal: bool) -> int | Literal["global"]:
        """Return the reach of a mixer built with this `causal`."""
        return self.reach_causal if causal and self.reach_causal is not None else self.reach

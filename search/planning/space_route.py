"""How far the architectures that a study may train carry information, before any is trained.

All are counted, none is listed: those in which the same was seen so far are followed together, and
one in which everything was seen need not be followed any further.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search.spec.limited_space import LimitedSpace
from search.spec.space import Space
from search.spec.stack_sizes import Size
from search.store.routes import Seen, layer_seen, passed_on, route_document, sees_all

if TYPE_CHECKING:
    from mixers.config import MixerConfig
    from search.spec.study import StudySpec

    Layers = tuple[MixerConfig, ...]

MOST_STEPS = 2000
"""Layers to be put upon what was seen so far: seconds for long inputs."""
MOST_BEGINNINGS = 100_000
"""Beginnings of architectures, told apart by what they saw and by their size, after a layer."""


@dataclass(frozen=True)
class SpaceRoute:
    """What the architectures of a study let tokens see, in one pass through the layers.

    Attributes:
        n_tokens: Tokens looked at: all, but at most 512.
        causal: Whether tokens see only those before them.
        architectures: How many the study may train.
        full: In how many of them every token sees every other (causal: all before it).
        full_after: After how many layers that is so, at the earliest and at the latest; None where
            it never is.
        least: Notation of the architecture that leaves out the most pairs; None where none does.
        route: What a trial of `least` keeps (see `search.store.routes`).
        problem: Why nothing is known: what a mixer raised, or that there is too much to follow.
    """

    n_tokens: int
    causal: bool
    architectures: int
    full: int = 0
    full_after: tuple[int, int] | None = None
    least: str | None = None
    route: Mapping[str, Any] | None = None
    problem: str | None = None


@dataclass(frozen=True)
class Group:
    """Architectures whose tokens see the same: how many, after which layer all, and one of them."""

    architectures: int
    full_after: int | None
    n_met: int
    example: Layers


class TooMuchToFollowError(Exception):
    """The architectures differ too much in what they see."""


def space_route(study: StudySpec) -> SpaceRoute:
    """Follows tokens through every architecture of a study; builds and trains nothing."""
    from mixers.notation import format_architecture

    space = None if study.space.architectures else Space.of(study)
    walk = Walk(study)
    n_architectures = len(study.space.architectures) if space is None else space.size
    looked_at = (walk.n_tokens, walk.causal, n_architectures)
    try:
        groups = [*(listed_groups(study, walk) if space is None else groups_of(space, walk))]
    except TooMuchToFollowError:
        return SpaceRoute(*looked_at, problem="the architectures differ too much to be counted")
    except Exception as error:  # whatever a plugin's connections raise
        problem = f"a mixer could not say what it sees: {type(error).__name__}: {error}"
        return SpaceRoute(*looked_at, problem=problem)
    depths = [group.full_after for group in groups if group.full_after is not None]
    full = sum(group.architectures for group in groups if group.full_after is not None)
    full_after = (min(depths), max(depths)) if depths else None
    short = [group for group in groups if group.full_after is None]
    if not short:
        return SpaceRoute(*looked_at, full, full_after)
    least = min(short, key=lambda group: group.n_met).example
    notation = format_architecture(least, **study.mixer_sizes)
    return SpaceRoute(
        *looked_at, full, full_after, notation, route_document(study.encoder_spec(least))
    )


class Walk:
    """Puts layers upon layers, each upon the same only once.

    Args:
        study: Says how many tokens there are and whether they see both sides.
    """

    def __init__(self, study: StudySpec) -> None:
        from mixers.receptive import LONGEST

        self.causal = study.encoder.causal
        self.n_tokens = min(study.sizes.max_seq_len, LONGEST)
        self.start: Seen = tuple(1 << j for j in range(self.n_tokens))
        whole = (1 << self.n_tokens) - 1
        self.wanted = [(2 << j) - 1 if self.causal else whole for j in range(self.n_tokens)]
        self.kept: dict[tuple[Seen, MixerConfig], Seen] = {}

    def step(self, seen: Seen, config: MixerConfig) -> Seen:
        """Returns what outputs have seen after one more layer.

        Raises:
            TooMuchToFollowError: There were `MOST_STEPS` already.
        """
        if (found := self.kept.get((seen, config))) is not None:
            return found
        if len(self.kept) >= MOST_STEPS:
            raise TooMuchToFollowError
        from mixers.registry import mixer_registry

        mixer_type = mixer_registry.load(config.kind)
        layer = layer_seen(mixer_type, config.model_dump_json(), self.n_tokens, self.causal)
        return self.kept.setdefault((seen, config), passed_on(layer, seen))

    def group(self, architectures: int, seen: Seen, depth: int, example: Layers) -> Group:
        """Returns a group of architectures, followed for so many layers."""
        full_after = depth if sees_all(seen, self.wanted) else None
        return Group(architectures, full_after, sum(row.bit_count() for row in seen), example)


def listed_groups(study: StudySpec, walk: Walk) -> Iterator[Group]:
    """Yields the architectures of a list, each alone."""
    from mixers.notation import parse_architecture

    for notation in study.space.architectures:
        example = tuple(study.fitted(config)[0] for config in parse_architecture(notation))
        seen, depth = walk.start, 0
        for config in example:
            if sees_all(seen, walk.wanted):
                break
            seen, depth = walk.step(seen, config), depth + 1
        yield walk.group(1, seen, depth, example)


def groups_of(space: Space, walk: Walk) -> Iterator[Group]:
    """Yields the architectures of a space, together where they see the same and have one size.

    Raises:
        TooMuchToFollowError: There are too many groups.
    """
    limited = space if isinstance(space, LimitedSpace) else None
    none = Size(0, 0)
    start = (walk.start, limited.base if limited else none)
    ahead: dict[tuple[Seen, Size], tuple[int, Layers]] = {start: (1, ())}
    for depth in range(len(space.layers) + 1):
        behind, ahead = ahead, {}
        for (seen, total), (ways, example) in behind.items():
            rest = limited.counts[depth].get(total, 0) if limited else rest_of(space, depth)
            if not rest:
                continue
            if depth == len(space.layers) or sees_all(seen, walk.wanted):
                yield walk.group(ways * rest, seen, depth, example)
                continue
            for label, config in space.layers[depth].items():
                size = total.plus(limited.costs[depth][label]) if limited else none
                key = (walk.step(seen, config), size)
                known, first = ahead.get(key, (0, (*example, config)))
                ahead[key] = (known + ways, first)
        if len(ahead) > MOST_BEGINNINGS:
            raise TooMuchToFollowError


def rest_of(space: Space, depth: int) -> int:
    """Returns in how many ways an architecture goes on after so many layers, without limits."""
    return math.prod(len(layer) for layer in space.layers[depth:])

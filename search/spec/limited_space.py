"""The architectures of a space that keep the limits known before training: counted, not listed.

Parameters and FLOPs are sums over layers, so all that matters of the first layers of a stack is
their sum. Stacks of equal sums are counted together, which makes a count of 5^24 architectures a
matter of some ten thousand sums; from the counts follow the k-th architecture within the limits,
the place of an architecture, and uniform draws.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from mixers.config import canonical_json
from search.spec.limits import Limit, limits_of
from search.spec.matching import Matching
from search.spec.space import Labels, Space
from search.spec.stack_sizes import Size, StackSizes

if TYPE_CHECKING:
    from search.spec.study import StudySpec

MOST_SUMS = 400_000
"""Sums to keep; more would take minutes and gigabytes."""


class TooManySumsError(ValueError):
    """The space has too many different sizes to be counted."""


@dataclass(frozen=True)
class LimitedSpace(Space):
    """A space less the architectures over a limit.

    Attributes:
        costs: Size of each choice, layer by layer.
        counts: For each number of layers, sum of them -> ways to go on within the limits.
        base: Size of a stack without blocks.
    """

    costs: tuple[Mapping[str, Size], ...] = field(default=(), compare=False)
    counts: tuple[Mapping[Size, int], ...] = field(default=(), compare=False)
    base: Size = field(default=Size(0, 0), compare=False)

    @property
    def size(self) -> int:
        """Number of architectures within the limits."""
        return self.counts[0].get(self.base, 0)

    @property
    def is_limited(self) -> bool:
        """Whether limits keep some architectures of the choices out."""
        return self.size < super().size

    def __contains__(self, labels: object) -> bool:
        return super().__contains__(labels) and self._sum(labels) in self.counts[-1]  # type: ignore[arg-type]

    def at(self, index: int) -> Labels:
        """Returns the architecture of an index in ``range(size)``; the last layer moves fastest."""
        if not 0 <= index < self.size:
            raise IndexError(f"index {index} in a space of {self.size} architectures")
        labels, total = [], self.base
        for layer in range(len(self.layers)):
            names, following = list(self.costs[layer]), self.ways(layer, total)
            ends = list(accumulate(following))
            choice = bisect_right(ends, index)
            index -= ends[choice] - following[choice]
            labels.append(names[choice])
            total = total.plus(self.costs[layer][names[choice]])
        return tuple(labels)

    def index(self, labels: Labels) -> int:
        """Returns the index of an architecture of the space; the inverse of `at`."""
        index, total = 0, self.base
        for layer, label in enumerate(labels):
            before = list(self.costs[layer]).index(label)
            index += sum(self.ways(layer, total)[:before])
            total = total.plus(self.costs[layer][label])
        return index

    def ways(self, layer: int, total: Size) -> list[int]:
        """Returns how many architectures within the limits go on with each choice of a layer."""
        return _ahead(self.counts[layer + 1], total, self.costs[layer])

    def _sum(self, labels: Labels) -> Size:
        total = self.base
        for cost, label in zip(self.costs, labels, strict=True):
            total = total.plus(cost[label])
        return total


def within_limits(study: StudySpec, product: Space) -> Space:
    """Returns the part of a space that keeps the study's limits on parameters and FLOPs.

    Raises:
        TooManySumsError: It cannot be counted.
    """
    limits = tuple(limit for limit in limits_of(study) if limit.measure.is_known_before)
    if not limits:
        return product
    # The answers, the plan and the claims all ask for the same space again and again.
    key = canonical_json(study)
    if key not in KEPT:
        if len(KEPT) >= MOST_KEPT:
            KEPT.clear()
        KEPT[key] = _counted(study, product, limits)
    return KEPT[key]


MOST_KEPT = 16
KEPT: dict[str, LimitedSpace] = {}


def _counted(study: StudySpec, product: Space, limits: Sequence[Limit]) -> LimitedSpace:
    judge = Judge(study, limits)
    costs = tuple(
        {label: judge.relevant(judge.stacks.mixer(config)) for label, config in layer.items()}
        for layer in product.layers
    )
    base = judge.relevant(judge.stacks.base)
    reached = [{base}]
    for layer in costs:
        distinct = set(layer.values())
        reached.append({total.plus(cost) for total in reached[-1] for cost in distinct})
        if sum(map(len, reached)) > MOST_SUMS:
            raise TooManySumsError(
                f"{len(costs)} layers have too many different sizes to count the architectures "
                "within max_params or max_flops; use fewer layers or choices, or drop the limit"
            )
    counts: list[dict[Size, int]] = [{total: 1 for total in reached[-1] if judge.keeps(total)}]
    for layer, totals in zip(reversed(costs), reversed(reached[:-1]), strict=True):
        found = {total: sum(_ahead(counts[-1], total, layer)) for total in totals}
        counts.append({total: n for total, n in found.items() if n})
    return LimitedSpace(product.layers, costs=costs, counts=tuple(reversed(counts)), base=base)


def _ahead(after: Mapping[Size, int], total: Size, layer: Mapping[str, Size]) -> list[int]:
    return [after.get(total.plus(cost), 0) for cost in layer.values()]


class Judge:
    """Says from the sum of a full stack's mixers whether it keeps the limits.

    Args:
        study: The study.
        limits: Limits on parameters and FLOPs.
    """

    def __init__(self, study: StudySpec, limits: Sequence[Limit]) -> None:
        self.limits = limits
        self.n_layers = study.encoder.n_layers
        self.d_ff = study.encoder.d_ff
        self.matching = None if study.match == "none" else Matching(study)
        self.stacks = StackSizes.of(study)

    def relevant(self, size: Size) -> Size:
        """Drops what no limit asks for, so that more stacks have equal sums."""
        if self.matching is not None:
            return size
        asked = {limit.measure.name for limit in self.limits}
        return Size(*(n if name in asked else 0 for name, n in size._asdict().items()))

    def total(self, mixers: Size) -> Size | None:
        """Returns the size of the whole stack; None where it cannot be matched."""
        d_ff = self.d_ff
        if self.matching is not None:
            width = self.matching.width(mixers, self.n_layers)
            if width is None:
                return None
            d_ff = width
        return mixers.plus(self.stacks.feed_forward(d_ff), self.n_layers)

    def keeps(self, mixers: Size) -> bool:
        """Whether the stack is within every limit."""
        total = self.total(mixers)
        return total is not None and all(
            limit.excess(getattr(total, limit.measure.name)) <= 0 for limit in self.limits
        )


def space_problems(study: StudySpec) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields one line where no architecture keeps the limits, or too many sums are to count."""
    limits = [limit for limit in limits_of(study) if limit.measure.is_known_before]
    if not limits:
        return
    product = Space.product(study)
    try:
        if within_limits(study, product).size:
            return
    except TooManySumsError as error:
        yield ("limits",), str(error)
        return
    bounds = " and ".join(f"{limit.name} {limit.bound:,.0f}" for limit in limits)
    least = ", ".join(
        f"{smallest(study, product, limit):,} {limit.measure.unit}" for limit in limits
    )
    yield (
        ("limits",),
        f"no architecture of the space is within {bounds}: the smallest has {least}; raise the "
        "limit or add smaller mixers to the choices",
    )


def smallest(study: StudySpec, product: Space, limit: Limit) -> int:
    """Returns the smallest value of a bounded cost among the architectures of a space."""
    judge = Judge(study, [limit])
    totals = {judge.stacks.base}
    for layer in product.layers:
        sizes = {judge.stacks.mixer(config) for config in layer.values()}
        totals = {total.plus(size) for total in totals for size in sizes}
    found = [total for mixers in totals if (total := judge.total(mixers)) is not None]
    return min(int(getattr(total, limit.measure.name)) for total in found)

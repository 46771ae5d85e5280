"""Feed-forward widths that make architectures cost the same (`match: params` or `flops`).

Without it a mixer of fewer parameters is compared with one of more, and size is mistaken for
mixing. With it every architecture has one feed-forward width in all its blocks, at which its
parameters (or FLOPs) are as near to those of the all-reference stack of full depth as steps of
`WIDTH_STEP` allow; shorter baselines too. The reference stack keeps the study's own width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mixers.config import MixerConfig
from search.spec.stack_sizes import Size, StackSizes

if TYPE_CHECKING:
    from search.spec.study import StudySpec

WIDTH_STEP = 8


class Matching:
    """How wide the feed-forward layers of each stack of a study are.

    Args:
        study: A study that matches parameters or FLOPs.
    """

    def __init__(self, study: StudySpec) -> None:
        from search.spec.baselines import reference_mixer

        self.what = study.match
        self.own_width = study.encoder.d_ff
        self.stacks = StackSizes.of(study)
        depth = study.encoder.n_layers
        reference = self.stacks.mixers([reference_mixer(study)] * depth)
        self.target = self.total(reference, depth, self.own_width)

    def total(self, mixers: Size, n_layers: int, d_ff: int) -> Size:
        """Returns the size of a stack whose mixers (and embeddings) have this size."""
        return mixers.plus(self.stacks.feed_forward(d_ff), n_layers)

    def width(self, mixers: Size, n_layers: int) -> int | None:
        """Returns the width of a stack, or None where its mixers alone cost too much."""
        per_step = n_layers * WIDTH_STEP * self._cost(self.stacks.per_width)
        missing = self._cost(self.target) - self._cost(self.total(mixers, n_layers, self.own_width))
        below = missing // per_step
        steps = below + (2 * (missing - below * per_step) > per_step)
        d_ff = self.own_width + WIDTH_STEP * steps
        return d_ff if d_ff > 0 else None

    def _cost(self, size: Size) -> int:
        return size.params if self.what == "params" else size.flops


def d_ff_of(study: StudySpec, mixers: Sequence[MixerConfig]) -> int:
    """Returns the feed-forward width of a stack of the study.

    Raises:
        ValueError: No width gives the stack the cost that `match` asks for.
    """
    if study.match == "none":
        return study.encoder.d_ff
    matching = Matching(study)
    width = matching.width(matching.stacks.mixers(mixers), len(mixers))
    if width is None:
        from mixers.notation import format_architecture

        notation = format_architecture(tuple(mixers), **study.mixer_sizes)
        raise ValueError(
            f"{notation} has more {study.match} than the all-reference stack before any "
            "feed-forward layer; raise encoder.d_ff, or drop its dearest mixer from the choices"
        )
    return width


def match_problems(study: StudySpec) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields what makes matching impossible; the dearest stack decides for all."""
    from search.spec.space import Space

    if study.match == "none":
        return
    if study.encoder.d_ff == 0:
        yield ("match",), "there is no feed-forward layer to widen or narrow; set encoder.d_ff"
        return
    matching = Matching(study)
    dearest = [
        max(choices.values(), key=lambda c: matching._cost(matching.stacks.mixer(c)))
        for choices in Space.product(study).layers
    ]
    try:
        d_ff_of(study, dearest)
    except ValueError as error:
        yield ("match",), str(error)

"""Parameters and FLOPs of a study's stacks, counted once per mixer instead of once per stack.

Both are sums over blocks, so a space of any size is known from its few choices. The numbers are
those of the modules themselves (built on the meta device, nothing is allocated) and of the mixers'
FLOP formulas: the same that a trial records.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mixers.config import MixerConfig

if TYPE_CHECKING:
    from search.spec.study import EncoderTemplate, StudySpec
    from search.tasks.base import TaskSizes

PROBE_WIDTH = 8


class Size(NamedTuple):
    """Parameters and FLOPs of one forward pass of one sequence."""

    params: int
    flops: int

    def plus(self, other: Size, times: int = 1) -> Size:
        """Adds another size so many times."""
        return Size(self.params + times * other.params, self.flops + times * other.flops)


class StackSizes:
    """The parts that the size of every stack of a study is the sum of.

    Args:
        template: The encoder around the mixers.
        sizes: Sizes that the task's data decides.

    Attributes:
        base: What stands once in an encoder, such as embeddings.
    """

    def __init__(self, template: EncoderTemplate, sizes: TaskSizes) -> None:
        self.template = template
        self.sizes = sizes
        from mixers.builtin.identity import IdentityConfig

        some = IdentityConfig()
        one, two = self._count([some], 0), self._count([some] * 2, 0)
        self.base = one.plus(two, -1).plus(one)
        narrow = self._count([some], PROBE_WIDTH).plus(one, -1)
        wider = self._count([some], 2 * PROBE_WIDTH).plus(one, -1)
        grown = wider.plus(narrow, -1)
        self.per_width = Size(grown.params // PROBE_WIDTH, grown.flops // PROBE_WIDTH)
        self.feed_forward_base = narrow.plus(self.per_width, -PROBE_WIDTH)

    @classmethod
    def of(cls, study: StudySpec) -> StackSizes:
        """Returns the parts of a study."""
        return _stack_sizes(study.encoder, study.sizes)

    def mixer(self, config: MixerConfig) -> Size:
        """Returns the size of a block with this mixer and without a feed-forward layer."""
        return _block(self, config)

    def feed_forward(self, d_ff: int) -> Size:
        """Returns the size of one feed-forward layer with its norm."""
        return self.feed_forward_base.plus(self.per_width, d_ff) if d_ff else Size(0, 0)

    def mixers(self, configs: Sequence[MixerConfig]) -> Size:
        """Returns the size of a stack without its feed-forward layers."""
        total = self.base
        for config in configs:
            total = total.plus(self.mixer(config))
        return total

    def _count(self, mixers: Sequence[MixerConfig], d_ff: int) -> Size:
        from mixers.cost import count_flops, count_parameters

        spec = self.template.stack(mixers, self.sizes, d_ff)
        return Size(count_parameters(spec), count_flops(spec))


@lru_cache(maxsize=16)
def _stack_sizes(template: EncoderTemplate, sizes: TaskSizes) -> StackSizes:
    return StackSizes(template, sizes)


@lru_cache(maxsize=1024)
def _block(stacks: StackSizes, config: MixerConfig) -> Size:
    return stacks._count([config], 0).plus(stacks.base, -1)

"""A frozen copy of an encoder that hands out what stands at its probe points."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import torch
from torch import Tensor, nn

from search.probe.errors import ProbeError
from search.probe.jitter import Jitter

if TYPE_CHECKING:
    from mixers import Encoder, EncoderSpec, MixerTraits, TokenMixer
    from mixers.model import Block

Layers = Literal["last", "all"]


@dataclass(frozen=True)
class Rows:
    """Inputs of a network, one context a row.

    Args:
        tokens: ids, (rows, N).
        mask: (rows, N) bool, True = real token.
        push: (rows, N) and ``direction`` (rows, D): what is added to the first mixer's input, in
            units of that input's root mean square; None adds nothing.
    """

    tokens: Tensor
    mask: Tensor
    push: Tensor | None = None
    direction: Tensor | None = None

    def select(self, index: Tensor | slice) -> Rows:
        """The rows of an index."""
        push = None if self.push is None else self.push[index]
        direction = None if self.direction is None else self.direction[index]
        return Rows(self.tokens[index], self.mask[index], push, direction)

    def permute(self, columns: Tensor) -> Rows:
        """The same contexts with their tokens in another order."""
        push = None if self.push is None else self.push[:, columns]
        return Rows(self.tokens[:, columns], self.mask[:, columns], push, self.direction)


class FrozenNetwork:
    """A copy of an encoder in evaluation mode and a dtype of its own; the encoder stays untouched.

    Calling it gives, for each probe point, outputs (rows, N, D) in float64 on the CPU. The probe
    points are ``layer_<i>.mixer`` (the sum of the block's input and its mixer's update) and
    ``layer_<i>.block`` (the block's output); ``layers="last"`` keeps the last block's output only.

    Args:
        encoder: a module with ``blocks``, each with a ``mixer``; called with (ids, mask).
        dtype: the dtype to compute in.
        layers: which probe points to keep.
        batch_tokens: tokens computed at once, in whole rows.
    """

    def __init__(
        self, encoder: nn.Module, *, dtype: torch.dtype, layers: Layers, batch_tokens: int = 2048
    ) -> None:
        self._encoder = cast("Encoder", copy.deepcopy(getattr(encoder, "_orig_mod", encoder)))
        self.device = next((p.device for p in encoder.parameters()), torch.device("cpu"))
        if self.device.type == "mps":  # has no float64
            self.device = torch.device("cpu")
        self._encoder.to(device=self.device, dtype=dtype).eval().requires_grad_(False)
        blocks = getattr(self._encoder, "blocks", None)
        if not isinstance(blocks, nn.ModuleList) or len(blocks) == 0:
            raise ProbeError(f"probe: {type(encoder).__name__} has no blocks to read from")
        self._blocks = cast("list[Block]", list(blocks))
        self._spec: EncoderSpec = self._encoder.spec
        self.dtype = dtype
        self._batch_tokens = batch_tokens
        last = f"layer_{len(blocks) - 1}.block"
        points = [f"layer_{i}.{part}" for i in range(len(blocks)) for part in ("mixer", "block")]
        self.d_model = self._spec.d_model
        self.points = tuple(points) if layers == "all" else (last,)
        self.last_point = last

    @property
    def positional(self) -> bool:
        """Whether positions are added, a causal mask tells them, or any mixer is aware of them."""
        told = self._spec.positions != "none" or self._spec.causal
        return told or any(traits.position_aware for traits in self._traits())

    @property
    def local_reach(self) -> int:
        """Tokens that the layers of finite reach carry information over, all together."""
        return sum(mixer.reach for mixer in self._mixers() if isinstance(mixer.reach, int))

    def batch_size(self, rows: Rows) -> int:
        """Rows computed at once unless asked otherwise."""
        return max(1, self._batch_tokens // rows.tokens.shape[1])

    def _mixers(self) -> list[TokenMixer[Any]]:
        return [cast("TokenMixer[Any]", block.mixer) for block in self._blocks]

    def _traits(self) -> list[MixerTraits]:
        return [mixer.traits(mixer.config) for mixer in self._mixers()]

    def __call__(
        self, rows: Rows, *, batch_size: int | None = None, jitter: Jitter | None = None
    ) -> dict[str, Tensor]:
        """Outputs at the probe points.

        Raises:
            ProbeError: an output at a real position is NaN or infinite.
        """
        parts: dict[str, list[Tensor]] = {name: [] for name in self.points}
        size = batch_size or self.batch_size(rows)
        with torch.inference_mode(), torch.autocast(self.device.type, enabled=False):
            for start in range(0, rows.tokens.shape[0], size):
                seen = self._forward(rows.select(slice(start, start + size)), jitter)
                for name in self.points:
                    parts[name].append(seen[name].to(device="cpu", dtype=torch.float64))
        outputs = {name: torch.cat(part) for name, part in parts.items()}
        for name, h in outputs.items():
            if not bool(torch.isfinite(h[rows.mask]).all()):
                raise ProbeError(f"probe: the outputs at {name} are not finite; nothing to compare")
        return {name: h.masked_fill_(~rows.mask[..., None], 0.0) for name, h in outputs.items()}

    def _forward(self, rows: Rows, jitter: Jitter | None) -> dict[str, Tensor]:
        tokens = rows.tokens.to(self.device)
        mask = None if bool(rows.mask.all()) else rows.mask.to(self.device)
        seen: dict[str, Tensor] = {}
        with ExitStack() as stack:
            if rows.push is not None and rows.direction is not None:
                stack.enter_context(self._pushed(rows.mask, rows.push, rows.direction))
            if jitter is not None:
                stack.enter_context(jitter.on_every_output(self._encoder))
                first = self._blocks[0].register_forward_pre_hook(_perturb_input(jitter))
                stack.callback(first.remove)
            for i, block in enumerate(self._blocks):
                stack.enter_context(_watched(block, f"layer_{i}", self.points, seen))
            self._encoder(tokens, mask)
        return seen

    @contextmanager
    def _pushed(self, mask: Tensor, push: Tensor, direction: Tensor) -> Iterator[None]:
        """Adds push * direction to the first mixer's input, and to the stream beside it."""
        mixer = self._blocks[0].mixer
        real = mask.to(self.device)[..., None]
        step = (push[..., None] * direction[:, None]).to(device=self.device, dtype=self.dtype)
        added: list[Tensor] = []

        def before(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            x = args[0]
            count = real.sum(dim=(1, 2), keepdim=True).clamp(min=1) * x.shape[-1]
            power = (x * x).masked_fill(~real, 0.0).sum(dim=(1, 2), keepdim=True) / count
            added.append(power.sqrt() * step)
            return (x + added[-1], *args[1:])

        def after(_: nn.Module, __: Any, output: Tensor) -> Tensor:
            return output + added.pop()

        handles = (mixer.register_forward_pre_hook(before), mixer.register_forward_hook(after))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _perturb_input(jitter: Jitter) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...]]:
    return lambda _, args: (jitter(args[0]), *args[1:])


@contextmanager
def _watched(
    block: Block, prefix: str, points: tuple[str, ...], seen: dict[str, Tensor]
) -> Iterator[None]:
    """Notes the mixer's residual sum and the block's output, whichever are asked for."""
    handles = []
    if f"{prefix}.mixer" in points:
        stream: list[Tensor] = []
        handles.append(block.register_forward_pre_hook(lambda _, args: stream.append(args[0])))

        def add(_: nn.Module, __: Any, update: Tensor) -> None:
            seen[f"{prefix}.mixer"] = stream.pop() + update

        handles.append(block.mixer.register_forward_hook(add))
    if f"{prefix}.block" in points:

        def keep(_: nn.Module, __: Any, output: Tensor) -> None:
            seen[f"{prefix}.block"] = output

        handles.append(block.register_forward_hook(keep))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()

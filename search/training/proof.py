"""Proof that the mixers a spec names are the mixers that ran, measured on the trained network."""

from __future__ import annotations

import copy
import hashlib
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from mixers.config import canonical_json
from mixers.model import build_mixer
from mixers.registry import mixer_registry
from mixers.spec import EncoderSpec
from search.errors import RunFailedError
from search.messages import LayerProof, MixerProof

if TYPE_CHECKING:
    from mixers import TokenMixer
    from mixers.model import Block, Encoder

N_TOKENS = 16
"""Side of the influence pattern."""

SCALES = (0.3, 1.0, 1.0, 3.0, 10.0)
"""Sizes of the random inputs: which tokens a hardmax looks at depends on them."""

MOVED = 1e-10
"""What changed by more than this share of the largest value has moved; computed in float64."""

CLEARLY = 1e-6
"""A movement by this share of the block's output must show, whatever the feed-forward adds."""

SAME = 1e-9
"""Two modules agree if no output differs by more than this share of the largest."""


class ProofError(RunFailedError):
    """A layer did not run the mixer that its spec names."""


def mixer_proof(encoder: nn.Module, spec: EncoderSpec, *, seed: int = 0) -> MixerProof:
    """Proves layer by layer what ran; the encoder itself stays untouched.

    The influence pattern (16 x 16, or ``max_seq_len``; row = output, column = token) says which of
    the mixer's updates move when one token of the block's input is replaced while the encoder
    runs, over several random inputs and sizes. Per layer,

    - the module is of the registered class, which takes the spec's config and was built with it;
    - parameter names and shapes are those of a module built fresh from the spec, and with the
      trained parameters the fresh module computes the same updates (so it has the same pattern);
    - the pattern keeps within the claimed ``reach``, and if that is not 0 some token moves another
      token's update; ``identity`` moves nothing; in a causal encoder nothing moves with a later
      token;
    - the block's outputs move at other tokens exactly where the mixer's updates do.

    Args:
        encoder: the trained ``Encoder``.
        spec: what it should be.
        seed: of the random inputs.

    Raises:
        ProofError: a difference; the text names the layer and what differs.
    """
    frozen = cast("Encoder", copy.deepcopy(getattr(encoder, "_orig_mod", encoder)))
    frozen.double().eval().cpu()
    if len(frozen.blocks) != spec.n_layers:
        raise ProofError(f"proof: {len(frozen.blocks)} blocks ran, the spec has {spec.n_layers}")
    layers = tuple(prove_layer(frozen, spec, layer, seed) for layer in range(spec.n_layers))
    text = "\n".join(describe(spec, layer, proof) for layer, proof in enumerate(layers))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return MixerProof(sha256=digest, text=text, layers=layers)


def prove_layer(encoder: Encoder, spec: EncoderSpec, layer: int, seed: int) -> LayerProof:
    """Proves one layer of an encoder in float64 and evaluation mode; raises as `mixer_proof`."""
    config = spec.blocks[layer].mixer
    where = f"proof: layer {layer} should run {config.kind}"
    block = cast("Block", encoder.blocks[layer])
    mixer = cast("TokenMixer[Any]", block.mixer)
    entry = mixer_registry.get(config.kind)
    if type(mixer) is not entry.plugin or not isinstance(config, mixer.config_type):
        raise ProofError(f"{where} ({entry.origin}), but {class_name(mixer)} ran")
    if mixer.config != config:
        raise ProofError(
            f"{where} as {canonical_json(config)}, but it ran as {canonical_json(mixer.config)}"
        )
    with torch.random.fork_rng(devices=[]):
        fresh = build_mixer(
            config, d_model=spec.d_model, max_seq_len=spec.max_seq_len, causal=spec.causal
        ).double()
    shapes, expected = state_shapes(mixer), state_shapes(fresh)
    if shapes != expected:
        raise ProofError(f"{where} with parameters {expected}, but it has {shapes}")
    fresh.eval().load_state_dict(mixer.state_dict())
    influence = measure_influence(encoder, layer, fresh, where, seed)
    reach = mixer.reach
    rows, columns = influence.nonzero(as_tuple=True)
    furthest = int((rows - columns).abs().max()) if len(rows) else 0
    if reach != "global" and furthest > reach:
        raise ProofError(f"{where} with reach {reach}, but a token moved one {furthest} away")
    ahead = influence.triu(1).nonzero()
    if spec.causal and len(ahead):
        output, token = ahead[0].tolist()
        raise ProofError(f"{where}, causal, but token {token} moved token {output} before it")
    if reach != 0 and furthest == 0 and len(influence) > 1:
        raise ProofError(f"{where} with reach {reach}, but no token moved another one")
    return LayerProof(
        kind=config.kind,
        qualified_class=class_name(mixer),
        distribution=entry.distribution,
        version=entry.version,
        parameters={name: tuple(p.shape) for name, p in mixer.named_parameters()},
        influence=tuple("".join("01"[cell] for cell in row) for row in influence.int().tolist()),
    )


def measure_influence(
    encoder: Encoder, layer: int, fresh: nn.Module, where: str, seed: int
) -> Tensor:
    """The influence pattern of a layer, (N, N) bool, and the checks that need its values.

    Args:
        encoder: the network, float64.
        layer: whose mixer.
        fresh: a module that must compute the same updates.
        where: start of an error's text.
        seed: of the random inputs.
    """
    generator = torch.Generator().manual_seed(seed)
    n_tokens = min(N_TOKENS, encoder.spec.max_seq_len)
    shape = (2, len(SCALES), 1, n_tokens, encoder.spec.d_model)
    x, other = torch.randn(shape, generator=generator, dtype=torch.float64) * torch.tensor(
        SCALES, dtype=torch.float64
    ).view(-1, 1, 1, 1)
    rows = x.repeat(1, 1 + n_tokens, 1, 1)
    tokens = torch.arange(n_tokens)
    rows[:, 1 + tokens, tokens] = other[:, 0]
    inputs, update, output = run_layer(encoder, layer, rows.flatten(0, 1))
    if not bool(update.isfinite().all() and output.isfinite().all()):
        raise ProofError(f"{where}, but its outputs are not finite")
    with torch.inference_mode():
        again = fresh(inputs)
    if float((again - update).abs().max()) > SAME * float(update.abs().max()):
        raise ProofError(f"{where}, but a fresh one with its parameters computes otherwise")
    shift, size = movement(update.view_as(rows))
    effect, output_size = movement(output.view_as(rows))
    moved = shift > MOVED * size
    hidden = moved & (shift > CLEARLY * output_size) & (effect <= MOVED * output_size)
    foreign = ~moved & (effect > CLEARLY * output_size)
    others = ~torch.eye(n_tokens, dtype=torch.bool)
    if bool((others & (hidden | foreign)).any()):
        raise ProofError(f"{where}, but the block's outputs do not move where the mixer's do")
    return moved.any(0)


def run_layer(encoder: Encoder, layer: int, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The mixer's input and update and the block's output when x (B, N, D) enters a block.

    The encoder runs as a whole; what reaches the block is replaced on the way.
    """
    block = cast("Block", encoder.blocks[layer])
    seen: dict[str, Tensor] = {}
    with ExitStack() as stack, torch.inference_mode():
        for handle in (
            block.register_forward_pre_hook(lambda _, args: (x, *args[1:])),
            block.mixer.register_forward_hook(
                lambda _, args, update: seen.update(inputs=args[0], update=update)
            ),
            block.register_forward_hook(lambda _, __, output: seen.update(output=output)),
        ):
            stack.callback(handle.remove)
        encoder(torch.zeros_like(x[:1]))
    if len(seen) != 3:
        raise ProofError(f"proof: layer {layer} did not call its mixer")
    return seen["inputs"], seen["update"], seen["output"]


def movement(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Largest change of each output by each replaced token, and the size to compare it with.

    Args:
        outputs: (S, 1 + N, N, D), the unchanged input first.

    Returns:
        Changes (S, N, N), row = output, column = token; largest values (S, 1, 1).
    """
    change = (outputs[:, 1:] - outputs[:, :1]).abs().amax(-1).mT
    return change, outputs.abs().amax((1, 2, 3))[:, None, None]


def describe(spec: EncoderSpec, layer: int, proof: LayerProof) -> str:
    """A layer's proof as text, the part that is hashed."""
    lines = [
        f"layer {layer}: {canonical_json(spec.blocks[layer].mixer)}",
        f"{proof.qualified_class} from {proof.distribution} {proof.version}",
        *(f"{name} {list(shape)}" for name, shape in proof.parameters.items()),
        *proof.influence,
    ]
    return "\n".join(lines)


def class_name(module: nn.Module) -> str:
    """Qualified name of a module's class."""
    return f"{type(module).__module__}.{type(module).__qualname__}"


def state_shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    """Names and shapes of parameters and buffers."""
    return {name: tuple(value.shape) for name, value in module.state_dict().items()}

import hashlib
import re
from types import MethodType

import pytest
import torch
from torch import Tensor, nn

from mixers import Encoder, EncoderSpec, build
from mixers.builtin.attention import Attention
from mixers.builtin.average import AverageAttention
from mixers.registry import mixer_registry
from search.training.proof import ProofError, mixer_proof


def spec_of(architecture: str, **fields: object) -> EncoderSpec:
    sizes = {"vocab_size": 40, "d_model": 16, "max_seq_len": 20, "d_ff": 24} | fields
    return EncoderSpec.of(architecture, **sizes)


def scrambled(spec: EncoderSpec) -> Encoder:
    """An encoder with weights as far from its initial ones as training would bring them."""
    torch.manual_seed(0)
    encoder = Encoder(spec)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return encoder


def test__mixer_proof__causal_encoder__filters_reach_back_by_their_whole_length():
    spec = spec_of("sepconv(kernel_size=5), lightconv(kernel_size=4), attention", causal=True)

    proof = mixer_proof(scrambled(spec), spec)

    places = torch.arange(16)
    back = places[:, None] - places[None]
    for layer, before in zip(proof.layers, (4, 3, 16), strict=True):
        window = (back >= 0) & (back <= before)
        assert layer.influence == tuple("".join("01"[int(cell)] for cell in row) for row in window)


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
def test__mixer_proof__new_mixers__are_proven(norm):
    spec = spec_of("dynamicconv, fourier, sparse_attention(width=3)", norm=norm)
    proof = mixer_proof(scrambled(spec), spec)
    assert [layer.kind for layer in proof.layers] == ["dynamicconv", "fourier", "sparse_attention"]


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
def test__mixer_proof__faithful_encoder__states_class_parameters_and_reach(norm):
    spec = spec_of(
        "attention(rotary=true), sepconv(kernel_size=4), identity, bproj, average, hardmax_shift",
        norm=norm,
    )
    encoder = scrambled(spec).train()

    proof = mixer_proof(encoder, spec)

    kinds = ["attention", "sepconv", "identity", "bproj", "average", "hardmax_shift"]
    assert [layer.kind for layer in proof.layers] == kinds
    assert proof.layers[0].qualified_class == "mixers.builtin.attention.Attention"
    assert proof.layers[1].parameters["filters"] == (8, 4)
    assert {layer.distribution for layer in proof.layers} == {"mixsearch"}
    places = torch.arange(16)
    offset = places[None] - places[:, None]
    windows = [
        torch.ones(16, 16, dtype=torch.bool),
        (offset >= -1) & (offset <= 2),  # an even kernel looks one further ahead
        torch.zeros(16, 16, dtype=torch.bool),
    ]
    for layer, window in zip(proof.layers, windows, strict=False):
        assert layer.influence == tuple("".join("01"[int(cell)] for cell in row) for row in window)
    assert all("1" in row for layer in proof.layers[3:] for row in layer.influence)
    assert hashlib.sha256(proof.text.encode()).hexdigest() == proof.sha256
    assert encoder.training
    assert next(encoder.parameters()).dtype == torch.float32


def test__mixer_proof__same_network_twice__one_hash_and_no_global_draws():
    spec = spec_of("hardmax_shift, sepconv")
    encoder = scrambled(spec)
    state = torch.get_rng_state()

    first, second = mixer_proof(encoder, spec), mixer_proof(encoder, spec)

    assert first == second
    assert torch.equal(torch.get_rng_state(), state)
    other = spec_of("hardmax_shift, sepconv(kernel_size=3)")
    assert first.sha256 != mixer_proof(scrambled(other), other).sha256


def test__mixer_proof__short_sequences__pattern_ends_at_max_seq_len():
    spec = spec_of("bproj", max_seq_len=5)

    proof = mixer_proof(scrambled(spec), spec)

    assert proof.layers[0].influence == ("11111",) * 5


def test__mixer_proof__window_far_from_the_usual_scores__is_found_at_another_size():
    """Small inputs never reach this window; the pattern is what any of the sizes moves."""
    spec = spec_of("hardmax_shift(n_heads=1)", norm="none")
    encoder = scrambled(spec)
    mixer = encoder.blocks[0].mixer
    with torch.no_grad():
        mixer.score.copy_(torch.full((1, 16), 0.25))
        mixer.lower.fill_(5.0)
        mixer.upper.fill_(20.0)

    proof = mixer_proof(encoder, spec)

    assert sum(row.count("1") for row in proof.layers[0].influence) > 16


@pytest.mark.parametrize("kind", ["identity", "average", "sepconv", "bproj", "hardmax_shift"])
def test__mixer_proof__mixer_replaced_by_another_kind__names_layer_and_both(kind):
    spec = spec_of("attention*3")
    encoder = scrambled(spec)
    encoder.blocks[1].mixer = build(kind, d_model=16, max_seq_len=20)

    with pytest.raises(ProofError, match=r"layer 1 should run attention") as caught:
        mixer_proof(encoder, spec)

    assert type(encoder.blocks[1].mixer).__name__ in str(caught.value)
    assert "\n" not in str(caught.value)


def test__mixer_proof__registry_hands_out_another_class__fails_although_both_sides_use_it(
    monkeypatch,
):
    """The encoder is built, and the fresh module would be built, from the planted class."""
    spec = spec_of("attention, attention")
    entry = mixer_registry.get("attention")
    planted = type(entry)(**{**vars(entry), "plugin": AverageAttention})
    monkeypatch.setattr(
        mixer_registry, "found", tuple(planted if e is entry else e for e in mixer_registry.found)
    )
    encoder = scrambled(spec)
    assert isinstance(encoder.blocks[0].mixer, AverageAttention)

    with pytest.raises(ProofError, match=r"layer 0 should run attention"):
        mixer_proof(encoder, spec)


def test__mixer_proof__lookup_swapped_while_building__fails(monkeypatch):
    spec = spec_of("average, bproj")
    with monkeypatch.context() as patch:
        patch.setattr(
            "mixers.model.build_mixer",
            lambda config, **sizes: build("identity", d_model=16, max_seq_len=20),
        )
        encoder = scrambled(spec)

    with pytest.raises(ProofError, match=r"layer 0 should run average .*Identity ran"):
        mixer_proof(encoder, spec)


def test__mixer_proof__same_class_other_config__both_configs_are_named():
    spec = spec_of("attention(rotary=true)")
    encoder = scrambled(spec_of("attention"))

    with pytest.raises(ProofError, match=r'"rotary":true.*ran as .*"rotary":false'):
        mixer_proof(encoder, spec)


def test__mixer_proof__parameters_replaced__shapes_are_named():
    spec = spec_of("sepconv(kernel_size=3)")
    encoder = scrambled(spec)
    encoder.blocks[0].mixer.filters = nn.Parameter(torch.randn(8, 9))

    with pytest.raises(ProofError, match=re.escape("'filters': (8, 9)")):
        mixer_proof(encoder, spec)


def test__mixer_proof__forward_patched_on_the_instance__fresh_module_differs():
    spec = spec_of("attention, attention")
    encoder = scrambled(spec)
    mixer = encoder.blocks[1].mixer
    mixer.forward = MethodType(lambda self, x, mask=None: 1.001 * Attention.forward(self, x), mixer)

    with pytest.raises(ProofError, match=r"layer 1 .*computes otherwise"):
        mixer_proof(encoder, spec)


def test__mixer_proof__forward_patched_on_the_class__reach_does_not_hold(monkeypatch):
    """Even a fresh module computes this; only the measured pattern shows it."""
    spec = spec_of("sepconv(kernel_size=3), attention")
    encoder = scrambled(spec)
    monkeypatch.setattr(Attention, "forward", lambda self, x, mask=None: self.out(x))
    with pytest.raises(ProofError, match=r"layer 1 .*reach global, but no token moved another"):
        mixer_proof(encoder, spec)
    monkeypatch.undo()

    convolution = type(encoder.blocks[0].mixer)
    monkeypatch.setattr(
        convolution, "forward", lambda self, x, mask=None: self.out(x.roll(4, dims=1))
    )
    with pytest.raises(ProofError, match=r"layer 0 .*reach 1, but a token moved one 12 away"):
        mixer_proof(encoder, spec)


class Detour(nn.Module):
    """A block that calls its mixer and throws the result away."""

    def __init__(self, block: nn.Module, other: nn.Module | None, calls: bool = True) -> None:
        super().__init__()
        self.mixer = block.mixer
        self.other = other
        self.calls = calls

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.calls:
            self.mixer(x, mask)
        return x if self.other is None else x + self.other(x, mask)


@pytest.mark.parametrize("other", [None, "average"])
def test__mixer_proof__block_ignores_its_mixer__output_does_not_move_with_it(other):
    spec = spec_of("sepconv(kernel_size=3), attention")
    encoder = scrambled(spec)
    mixer = None if other is None else build(other, d_model=16, max_seq_len=20)
    encoder.blocks[0] = Detour(encoder.blocks[0], mixer)

    with pytest.raises(ProofError, match=r"layer 0 .*do not move where the mixer's do"):
        mixer_proof(encoder, spec)


def test__mixer_proof__block_never_calls_its_mixer__says_so():
    spec = spec_of("attention")
    encoder = scrambled(spec)
    encoder.blocks[0] = Detour(encoder.blocks[0], None, calls=False)

    with pytest.raises(ProofError, match="did not call its mixer"):
        mixer_proof(encoder, spec)


def test__mixer_proof__other_number_of_layers__refused():
    with pytest.raises(ProofError, match="2 blocks ran, the spec has 3"):
        mixer_proof(scrambled(spec_of("average*2")), spec_of("average*3"))

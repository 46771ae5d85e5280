import itertools

import numpy as np
import pytest
import torch
from probed import VOCABULARY, encoder_of, random_contexts
from torch import Tensor, nn

from mixers import Encoder
from search.probe import ProbeError, probe, probe_spec
from search.probe.contextual import contextual_readings, keys_and_classes
from search.probe.jitter import Jitter
from search.probe.network import FrozenNetwork, Rows
from search.probe.noise import noise_floor
from search.probe.strata import draw

SMALL = {"d_model": 16, "max_seq_len": 12}


def small(encoder: Encoder, **options: object) -> dict[str, float | None]:
    contexts = options.pop("contexts", random_contexts(24, 12))
    return probe(encoder, contexts, VOCABULARY, **({"seed": 0} | options)).readings


def test__probe__the_one_number__equals_a_loop_over_pairs_and_positions():
    encoder = encoder_of("attention, sepconv(kernel_size=3)", d_ff=32, **SMALL)
    contexts = random_contexts(24, 12)

    readings = small(encoder)

    exact = encoder.double()
    outputs, edits = [exact(contexts).detach().numpy()], {}
    for stratum in ("one_edit", "half_edits", "transposition"):
        pairs = draw(stratum, contexts, contexts >= 0, VOCABULARY, n_variants=4, seed=0, d_model=16)
        edits[stratum] = exact(pairs.tokens.flatten(0, 1)).detach().numpy()
        outputs.append(edits[stratum])
        if stratum == "one_edit":
            one_edit = pairs
    items = np.concatenate(outputs).reshape(-1, 16)
    sigma = np.sqrt(2 * ((items - items.mean(0)) ** 2).sum(1).mean())
    gaps = [
        np.linalg.norm(outputs[0][b, j] - edits["one_edit"][4 * b + v, j]) / sigma
        for b, v, j in itertools.product(range(24), range(4), range(12))
        if not one_edit.edited[b, v, j]
    ]
    assert readings["probe"] == pytest.approx(np.median(gaps), rel=1e-9)
    assert readings["one_edit.gap_min"] == pytest.approx(min(gaps), rel=1e-9)
    assert readings["one_edit.gap_p01"] == pytest.approx(np.quantile(gaps, 0.01), rel=1e-9)


class Turned(nn.Module):
    """A block whose outputs are rotated and scaled."""

    def __init__(self, block: nn.Module, scale: float) -> None:
        super().__init__()
        self.block, self.mixer, self.scale = block, block.mixer, scale
        rotation = torch.linalg.qr(torch.randn(16, 16, dtype=torch.float64)).Q
        self.register_buffer("rotation", rotation)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.scale * (self.block(x, mask) @ self.rotation)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test__probe__outputs_rotated_and_scaled__same_readings(scale):
    encoder = encoder_of("attention, hardmax_shift", d_ff=32, **SMALL)
    plain = small(encoder)

    encoder.blocks[1] = Turned(encoder.blocks[1], scale)

    assert small(encoder) == pytest.approx(plain, rel=1e-8)


@pytest.mark.parametrize("size", ["small", "full"])
def test__probe__more_padding__changes_nothing_and_is_no_item(size):
    encoder = encoder_of("attention, sepconv(kernel_size=5), average", d_ff=32, **SMALL)
    contexts, longer = random_contexts(24, 9), random_contexts(24, 12, seed=5)
    longer[:, :7] = contexts[:, :7]

    readings = [
        small(
            encoder,
            contexts=tokens,
            mask=(torch.arange(tokens.shape[1]) < 7).expand(tokens.shape),
            size=size,
        )
        for tokens in (contexts, longer)
    ]

    assert readings[0] == pytest.approx(readings[1], rel=1e-8)
    shares = [name for name in readings[0] if "distance" in name]
    assert all(int(name.rpartition("_")[2]) < 7 for name in shares)
    alone = small(encoder, contexts=contexts[:, :7], size=size)
    assert readings[0] == pytest.approx(alone, rel=1e-8)


def test__noise_floor__padding__adds_nothing_to_the_largest_threshold_of_a_base():
    encoder = encoder_of("attention", d_ff=32, **SMALL)
    network = FrozenNetwork(encoder, dtype=torch.float64, layers="all")
    contexts = random_contexts(4, 12)
    rows = Rows(contexts, (torch.arange(12) < 7).expand(4, 12))

    outputs = network(rows)
    tau = noise_floor(network, rows, outputs, permute_tokens=False, seed=0)

    for point in network.points:
        assert not outputs[point][~rows.mask].any()
        assert not tau[point][~rows.mask].any()
        assert (tau[point][rows.mask] > 0).all()


def test__probe__training_network_with_dropout__reads_the_same_and_is_left_as_it_was():
    encoder = encoder_of("attention, bproj", d_ff=32, dropout=0.5, **SMALL)
    reference = small(encoder.eval())
    encoder.train()
    encoder.blocks[0].eval()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    state = torch.get_rng_state()

    readings = small(encoder)

    assert readings == reference
    assert encoder.training
    assert encoder.blocks[1].training
    assert not encoder.blocks[0].training
    assert {p.dtype for p in encoder.parameters()} == {torch.float32}
    assert all(p.requires_grad for p in encoder.parameters())
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(module._forward_hooks for module in encoder.modules())


def test__probe__small__measures_the_noise_floor_on_the_bases_alone():
    encoder = encoder_of("average", **SMALL)
    n_rows = []
    encoder.register_forward_hook(lambda _, args, __: n_rows.append(len(args[0])))

    small(encoder)

    assert sum(n_rows) == (1 + 3) * 24 + 3 * 4 * 24


def test__probe__inside_autocast__computes_in_its_own_dtype():
    encoder = encoder_of("attention", d_ff=32, **SMALL)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = small(encoder, dtype=torch.float32)

    assert inside == small(encoder, dtype=torch.float32)


def test__probe__seed__decides_the_edits_alone():
    encoder = encoder_of("sepconv", **SMALL)

    assert small(encoder, seed=1) == small(encoder, seed=1)
    assert small(encoder, seed=1)["probe"] != small(encoder, seed=2)["probe"]


def test__probe__all_outputs_equal__reads_zero():
    encoder = encoder_of("attention", positions="none", **SMALL)
    with torch.no_grad():
        encoder.token_embedding.weight[:] = torch.randn(16)

    readings = small(encoder)

    for name in ("p_sep", "d_ctx", "gap_min", "gap_median"):
        assert readings[f"one_edit.{name}"] == 0


def test__probe__one_token_per_context__nothing_to_compare():
    readings = small(encoder_of("attention", **SMALL), contexts=random_contexts(24, 1))

    assert readings.pop("positional") == 1
    assert set(readings.values()) == {None}


def test__probe__weights_not_finite__refused_with_the_place():
    encoder = encoder_of("attention, average", d_ff=32, **SMALL)
    with torch.no_grad():
        encoder.blocks[1].feed_forward.narrow.bias[3] = torch.nan

    with pytest.raises(ProbeError, match=r"outputs at layer_1\.block are not finite"):
        small(encoder)


@pytest.mark.parametrize("shape", [(12,), (0, 12), (2, 3, 4)])
def test__probe__contexts_of_another_shape__refused(shape):
    with pytest.raises(ProbeError, match="contexts must be"):
        small(encoder_of("average", **SMALL), contexts=torch.zeros(shape, dtype=torch.int64))


def test__probe__no_positions__transpositions_must_be_equal():
    encoder = encoder_of("attention, average, hardmax_shift", d_ff=32, positions="none", **SMALL)
    readings = small(encoder)

    assert readings["positional"] == 0
    assert readings["transposition.p_sep"] is None
    assert readings["transposition.d_ctx"] is None
    assert readings["transposition.equality_error"] < 1e-12
    assert readings["one_edit.p_sep"] > 0.9


class Ordered(nn.Module):
    """A block that looks at the order of tokens, whatever its mixer claims."""

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block, self.mixer = block, block.mixer

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.block(x + 0.01 * x.cumsum(1), mask)


def test__probe__order_matters_against_the_traits__is_reported_as_equality_error():
    encoder = encoder_of("average", positions="none", **SMALL)
    encoder.blocks[0] = Ordered(encoder.blocks[0])

    assert small(encoder)["transposition.equality_error"] > 1e-4


def test__probe__mixer_aware_of_positions__makes_the_network_positional():
    assert small(encoder_of("sepconv", positions="none", **SMALL))["positional"] == 1
    assert small(encoder_of("attention(rotary=true)", positions="none", **SMALL))["positional"] == 1
    # A causal mask tells places too: each token of a prefix mean sees a prefix of its own.
    assert small(encoder_of("average", positions="none", causal=True, **SMALL))["positional"] == 1


def test__probe__all_layers__first_and_last_points_tell_what_came_when():
    encoder = encoder_of("identity, average", d_ff=32, **SMALL)

    readings = small(encoder, layers="all")

    assert readings["layer_0.mixer.one_edit.p_sep"] == 0
    assert readings["layer_0.block.one_edit.p_sep"] == 0
    assert readings["layer_1.mixer.one_edit.p_sep"] == 1
    assert readings["one_edit.p_sep"] == 1
    assert "layer_1.block.one_edit.p_sep" not in readings


@pytest.mark.parametrize("norm", ["pre", "post", "none"])
def test__frozen_network__probe_points__are_the_residual_sum_and_the_blocks_output(norm):
    encoder = encoder_of("average", d_ff=32, norm=norm, **SMALL).double()
    contexts = random_contexts(5, 12)
    network = FrozenNetwork(encoder, dtype=torch.float64, layers="all", batch_tokens=24)

    outputs = network(Rows(contexts, contexts >= 0))

    block = encoder.blocks[0]
    x = encoder.embed(contexts)
    update = block.mixer(block.mixer_norm(x) if norm == "pre" else x)
    torch.testing.assert_close(outputs["layer_0.mixer"], (x + update).detach())
    torch.testing.assert_close(outputs["layer_0.block"], block(x).detach())


EMBEDDINGS = torch.tensor([1.0, 1.1, 1.2, 1.3], dtype=torch.float64)


def four_cubed() -> tuple[FrozenNetwork, Rows]:
    """Average attention over all 4^3 contexts of the embeddings 1, 1.1, 1.2, 1.3."""
    encoder = encoder_of("average", vocab_size=4, d_model=1, max_seq_len=3, positions="none")
    with torch.no_grad():
        encoder.double().token_embedding.weight[:, 0] = EMBEDDINGS
        encoder.blocks[0].mixer.out.weight.fill_(1.0)
    contexts = torch.tensor(list(itertools.product(range(4), repeat=3)))
    network = FrozenNetwork(encoder, dtype=torch.float64, layers="last")
    return network, Rows(contexts, contexts >= 0)


@pytest.mark.parametrize(
    ("positional", "expected"), [(True, (7 - 1) / (16 - 1)), (False, (7 - 1) / (10 - 1))]
)
def test__contextual_readings__average_over_all_contexts__counts_sums_not_rounding(
    positional, expected
):
    """A token sees 7 different sums of the other two: positional 0.40; rounding makes more."""
    network, rows = four_cubed()
    h = network(rows)[network.last_point]
    tau = noise_floor(network, rows, {network.last_point: h}, permute_tokens=False, seed=0)

    readings = contextual_readings([(rows, h, tau[network.last_point])], positional=positional)
    bitwise = contextual_readings(
        [(rows, h, torch.zeros_like(tau[network.last_point]))], positional=positional
    )

    assert readings["contextual.d_ctx"] == pytest.approx(expected, rel=1e-12)
    assert readings["contextual.split_classes"] == 0
    rounding_shows = "contextual.d_ctx" if positional else "contextual.split_classes"
    assert bitwise[rounding_shows] > readings[rounding_shows] + 0.01


def test__contextual_readings__one_context__has_no_reading_within_keys():
    network, rows = four_cubed()
    one = rows.select(slice(6, 7))
    h = network(one)[network.last_point]

    readings = contextual_readings([(one, h, torch.zeros(1, 3).double())], positional=True)

    assert readings["contextual.d_ctx"] is None
    assert readings["contextual.s_ctx"] is None
    assert readings["contextual.d_all"] == 1


def test__keys_and_classes__duplicates_and_padding__equivariant_duplicates_are_one_class():
    tokens = torch.tensor([[5, 5, 6, 9], [6, 5, 5, 1], [5, 6, 6, 1]])
    mask = torch.tensor([[True, True, True, False]] * 3)

    keys, classes = keys_and_classes(tokens, mask, positional=False)

    by_item = dict(zip([(r, j) for r in range(3) for j in range(3)], classes, strict=True))
    assert by_item[0, 0] == by_item[0, 1] == by_item[1, 1] == by_item[1, 2]
    assert by_item[0, 2] == by_item[1, 0]
    assert len(set(classes)) == 4
    assert len(set(keys)) == 2
    keys, classes = keys_and_classes(tokens, mask, positional=True)
    assert (len(set(keys)), len(set(classes))) == (6, 9)


def test__noise_floor__average__covers_the_rounding_of_another_order_of_summation():
    encoder = encoder_of("average", positions="none", **SMALL).double()
    with torch.no_grad():  # sums of few single-precision numbers would be exact in double
        encoder.token_embedding.weight.normal_()
    network = FrozenNetwork(encoder, dtype=torch.float64, layers="last")
    contexts = random_contexts(24, 12)
    order = torch.randperm(12)
    rows = Rows(contexts, contexts >= 0)

    h = network(rows)[network.last_point]
    swapped = network(rows.permute(order))[network.last_point]
    tau = noise_floor(network, rows, {network.last_point: h}, permute_tokens=True, seed=0)[
        network.last_point
    ]

    error = torch.linalg.vector_norm(h[:, order] - swapped, dim=-1)
    assert error.max() > 0
    assert (error <= tau[:, order]).all()
    assert (tau < 1e-13 * torch.linalg.vector_norm(h, dim=-1)).all()


def test__noise_floor__single_precision__is_wider_by_the_ratio_of_the_spacings():
    encoder = encoder_of("attention*2", d_ff=32, **SMALL)
    contexts = random_contexts(6, 12)
    rows = Rows(contexts, contexts >= 0)
    widths = []
    for dtype in (torch.float64, torch.float32):
        network = FrozenNetwork(encoder, dtype=dtype, layers="last")
        h = network(rows)
        tau = noise_floor(network, rows, h, permute_tokens=False, seed=0)
        widths.append(float(tau[network.last_point].median()))

    # Two to the 29; rounding is no exact multiple of the spacing.
    assert 2**28 < widths[1] / widths[0] < 2**30


def test__jitter__every_sub_module__is_moved_by_at_most_eps_and_hooks_go():
    encoder = encoder_of("attention", d_ff=32, **SMALL).double().eval()
    jitter = Jitter(1e-3, seed=0)
    contexts = random_contexts(4, 12)
    plain: dict[str, Tensor] = {}
    for name, module in encoder.named_modules():
        module.register_forward_hook(
            lambda _, __, out, name=name: plain.__setitem__(name, out.detach())
        )
    seen: dict[str, Tensor] = {}
    encoder(contexts)
    reference = dict(plain)
    with jitter.on_every_output(encoder):
        for name, module in encoder.named_modules():
            module.register_forward_hook(
                lambda _, __, out, name=name: seen.__setitem__(name, out.detach())
            )
        encoder(contexts)
        inside = {name: (plain[name], seen[name]) for name in seen}

    for name, (before, after) in inside.items():
        if name:
            assert (after - before).abs().max() > 0
            assert ((after - before).abs() <= 1.001e-3 * before.abs()).all()
    encoder(contexts)
    assert all(torch.equal(plain[name], reference[name]) for name in reference)


def test__probe_spec__architecture__reads_both_precisions_and_repeats():
    spec = encoder_of("attention, sepconv(kernel_size=3)", d_ff=32, **SMALL).spec
    state = torch.get_rng_state()

    reading = probe_spec(spec, seed=3, size="small")

    assert torch.equal(torch.get_rng_state(), state)
    assert reading == probe_spec(spec, seed=3, size="small")
    assert reading.when == "init"
    double, single = (reading.readings[f"{name}one_edit.p_sep"] for name in ("", "float32."))
    assert 0 < single <= double <= 1
    assert "float64" in reading.text
    assert "float32" in reading.text
    other = probe_spec(spec, seed=4, size="small")
    assert other.readings["probe"] != reading.readings["probe"]

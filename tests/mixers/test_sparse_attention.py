"""Sparse attention: its sets, the blocks of the sliding window, the draw, what is refused."""

import paper_reference as paper
import pytest
import torch

import mixers
from mixers.builtin.sparse_attention import SparseAttention, SparseConfig
from mixers.errors import MixerError, SpecError
from mixers.spec import EncoderSpec
from mixers.windowed import BLOCK

PARTS = {"first": [1], "second": [2], "union": [1, 2], "multihead": [1, 2], None: [1]}
CONFIGS = [
    {"width": 3},
    {"pattern": "strided", "width": 3},
    {"pattern": "strided", "width": 4, "combination": "multihead"},
    {"pattern": "strided", "width": 3, "combination": "first"},
    {"pattern": "strided", "width": 1, "combination": "second"},
    {"pattern": "fixed", "width": 4},
    {"pattern": "fixed", "width": 5, "combination": "first"},
    {"pattern": "fixed", "width": 4, "combination": "second"},
    {"pattern": "star"},
    {"pattern": "star", "width": 2},
]


def build(config, *, causal=False, max_seq_len=16):
    torch.manual_seed(0)
    config = {"kind": "sparse_attention", "n_heads": 2} | config
    mixer = mixers.build(config, d_model=16, max_seq_len=max_seq_len, causal=causal)
    return mixer.double().eval()


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 11, 20])
def test__connections__every_pattern__are_the_sets_of_the_paper(config, n):
    mixer = build(config)
    settings = mixer.config
    for causal in (False, True):
        seen = mixer.connections(settings, seq_len=n, causal=causal)
        for k in range(n):
            wanted = set().union(
                *(
                    paper.sparsity_set(settings.pattern, part, k + 1, n, settings.width)
                    for part in PARTS[settings.combination]
                )
            )
            wanted = {i - 1 for i in wanted if i <= k + 1 or not causal}
            assert set(seen[k].nonzero()[:, 0].tolist()) == wanted


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("n", [1, 7, 40])
def test__flops__every_pattern__count_its_pairs_up_to_the_ends(config, n):
    mixer = build(config)
    pairs = sum(
        int(SparseAttention.connections(part, seq_len=n).sum())
        for part in separate_parts(mixer.config)
    )
    if mixer.config.combination == "multihead":
        pairs //= 2
    counted = SparseAttention.flops(mixer.config, d_model=16, seq_len=n) - 8 * n * 16**2
    # Windows count in full at both ends, and what two parts share counts twice.
    size = mixer.config.width
    assert min(pairs, n * n) <= counted / (4 * 16) <= pairs + size * (size + 1) + 3 * n


def separate_parts(config):
    if config.combination not in ("union", "multihead"):
        return [config]
    return [config.model_copy(update={"combination": part}) for part in ("first", "second")]


@pytest.mark.parametrize("width", [1, 5, 64])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("beyond", [1, BLOCK, BLOCK + 7])
def test__sliding_window__in_blocks__equals_dense_attention_under_a_mask(width, causal, beyond):
    n = BLOCK + 2 * width + beyond
    mixer = build({"width": width}, causal=causal, max_seq_len=n)
    x = torch.randn(2, n, 16, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(2, n) < 0.8
    mask[:, n // 2] = True
    inputs = [x, *mixer.parameters()]
    for real in (None, mask):
        query, key, value = mixer.heads(mixers.zero_padding(x, real))
        dense = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mixer.allowed(x, real)
        )
        wanted = mixer.out(dense.transpose(1, 2).reshape_as(x))
        got = mixer(x, real)
        weight = torch.randn_like(x) * (mask if real is not None else 1 | mask)[..., None]
        torch.testing.assert_close(got[mask], wanted[mask], atol=1e-12, rtol=0)
        for left, right in zip(
            torch.autograd.grad((got * weight).sum(), inputs),
            torch.autograd.grad((wanted * weight).sum(), inputs),
            strict=True,
        ):
            torch.testing.assert_close(left, right, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize(("n", "width"), [(1, 3), (4, 8), (12, 3), (50, 5)])
def test__random__each_token__sees_itself_and_as_many_others_as_were_asked_for(n, width):
    config = SparseConfig(pattern="random", width=width, seed=7)
    seen = SparseAttention.connections(config, seq_len=n)
    assert seen.diagonal().all()
    assert (seen.sum(1) == min(width + 1, n)).all()
    behind = SparseAttention.connections(config, seq_len=n, causal=True)
    assert torch.equal(behind.sum(1), torch.arange(n).clamp(max=width) + 1)


def test__random__seed__decides_and_pairs_are_drawn_evenly():
    def drawn(seed):
        config = SparseConfig(pattern="random", width=4, seed=seed)
        return SparseAttention.connections(config, seq_len=30)

    assert torch.equal(drawn(1), drawn(1))
    assert not torch.equal(drawn(1), drawn(2))
    counts = sum(drawn(seed).double() for seed in range(400))
    others = counts[~torch.eye(30, dtype=torch.bool)]
    # 400 draws of 4 among 29: mean 55.2, standard deviation 6.9; 870 pairs stay within 5 of them.
    assert others.mean().item() == pytest.approx(400 * 4 / 29)
    assert (others - 400 * 4 / 29).abs().max() < 5 * 6.9


def test__multihead__groups_of_heads__see_different_parts():
    mixer = build({"pattern": "fixed", "width": 4, "combination": "multihead"})
    seen = mixer.allowed(torch.zeros(1, 8, 16), None)[0]
    assert seen.shape == (2, 8, 8)
    assert seen[0, 0].tolist() == [True] * 4 + [False] * 4
    assert seen[1, 0].nonzero()[:, 0].tolist() == [0, 3, 7]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"combination": "union"}, "combination: pattern sliding_window has one part only"),
        ({"pattern": "star", "seed": 1}, "seed: pattern star draws nothing"),
        (
            {"pattern": "fixed", "combination": "multihead", "n_heads": 1},
            "combination: multihead needs n_heads of at least 2",
        ),
        ({"n_heads": 3}, "n_heads: 3 must divide d_model 16"),
    ],
    ids=str,
)
def test__config__field_that_the_pattern_does_not_read__is_refused(config, message):
    with pytest.raises(SpecError, match=message):
        build(config)


def test__config__left_open_or_written_out__is_one_architecture():
    sizes = {"d_ff": 0, "vocab_size": 9, "d_model": 64, "max_seq_len": 64}
    short = EncoderSpec.of("sparse_attention(pattern=random)", **sizes)
    full = EncoderSpec.of("sparse_attention(pattern=random, width=8, seed=0, n_heads=2)", **sizes)
    assert short.arch_id == full.arch_id
    assert full.notation == "sparse_attention(pattern=random)"


def test__fourier__causal__is_refused_by_name():
    with pytest.raises(MixerError, match="mixer 'fourier' cannot be causal"):
        mixers.build("fourier", d_model=16, max_seq_len=8, causal=True)

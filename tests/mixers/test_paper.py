"""Outputs of every built-in mixer against the paper's formulas, in the paper's orientation."""

import numpy as np
import paper_reference as paper
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mixers

TOLERANCE = 1e-11  # float64 sums of at most a few thousand products of order 1

CONFIGS = [
    {"kind": "attention", "n_heads": 2},
    {"kind": "attention", "n_heads": 4, "rotary": True},
    {"kind": "hardmax_shift", "n_heads": 5},
    {"kind": "hardmax_shift", "n_heads": 5, "rule": "sign"},
    {"kind": "bproj"},
    {"kind": "sepconv", "kernel_size": 5, "n_filters": 4},
    {"kind": "sepconv", "kernel_size": 4, "n_filters": 8},
    {"kind": "sepconv", "kernel_size": 31, "n_filters": 1},
    {"kind": "average"},
    {"kind": "identity"},
    {"kind": "lightconv", "kernel_size": 5, "n_heads": 4},
    {"kind": "lightconv", "kernel_size": 4, "n_heads": 16},
    {"kind": "dynamicconv", "kernel_size": 5, "n_heads": 4},
    {"kind": "dynamicconv", "kernel_size": 4, "n_heads": 1},
    {"kind": "fourier"},
    {"kind": "fourier", "orthonormal": False},
    {"kind": "sparse_attention", "width": 2, "n_heads": 2},
    {"kind": "sparse_attention", "width": 1, "n_heads": 4, "rotary": True},
    {"kind": "sparse_attention", "pattern": "strided", "width": 3, "n_heads": 2},
    {
        "kind": "sparse_attention", "pattern": "strided", "width": 3, "n_heads": 4,
        "combination": "multihead",
    },
    {"kind": "sparse_attention", "pattern": "strided", "width": 2, "combination": "second"},
    {"kind": "sparse_attention", "pattern": "fixed", "width": 3, "n_heads": 2},
    {"kind": "sparse_attention", "pattern": "fixed", "width": 3, "combination": "first"},
    {
        "kind": "sparse_attention", "pattern": "fixed", "width": 4, "n_heads": 2,
        "combination": "multihead",
    },
    {"kind": "sparse_attention", "pattern": "star", "n_heads": 2},
]  # fmt: skip
D = 16


def head_sets(config, keep):
    """What each head's tokens see, from the paper's sets; places count from the first real one."""
    n, first = len(keep), int(np.argmax(keep))
    parts = {"first": [1], "second": [2], "multihead": [1, 2], "union": [1, 2], None: [1]}
    sets = {
        part: [
            {
                i - 1 + first
                for i in paper.sparsity_set(config.pattern, part, place, n - first, config.width)
            }
            for place in range(1 - first, n + 1 - first)
        ]
        for part in parts[config.combination]
    }
    if config.combination == "multihead":
        half = config.n_heads // 2
        return [sets[1]] * half + [sets[2]] * half
    return [[set().union(*(s[k] for s in sets.values())) for k in range(n)]] * config.n_heads


def build(config, max_seq_len, causal=False, seed=0):
    torch.manual_seed(seed)
    mixer = mixers.build(config, d_model=D, max_seq_len=max_seq_len, causal=causal).double()
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return mixer.eval()


def by_the_paper(mixer, X, keep, causal=False):
    """Return the update of one sequence, X (d, n), from the mixer's weights as arrays."""
    w = {name: value.detach().numpy() for name, value in mixer.state_dict().items()}
    match mixer.config.kind:
        case "attention":
            W_Q, W_K, W_V = np.split(w["qkv.weight"], 3)
            b_Q, b_K, b_V = np.split(w["qkv.bias"], 3)
            return paper.attention(
                X, W_Q, b_Q, W_K, b_K, W_V, b_V, w["out.weight"], w["out.bias"],
                mixer.config.n_heads, keep, rotary=mixer.config.rotary, causal=causal,
            )  # fmt: skip
        case "hardmax_shift":
            return paper.hardmax_shift(
                X, w["score"], w["direction"], w["lower"], w.get("upper"), keep
            )
        case "bproj":
            W_P = np.triu(w["positions"]) if causal else w["positions"]
            return paper.bproj(X * keep, w["out.weight"], w["out.bias"], W_P)
        case "sepconv":
            return paper.sepconv(
                X, w["gate.weight"], w["gate.bias"], w["filters"], w["out.weight"], w["out.bias"],
                keep, causal=causal,
            )  # fmt: skip
        case "average":
            return paper.average(X, w["out.weight"], w["out.bias"], keep, causal=causal)
        case "identity":
            return paper.identity(X)
        case "lightconv":
            return paper.lightconv(
                X, w["gate.weight"], w["gate.bias"], w["filters"], w["out.weight"], w["out.bias"],
                keep, causal=causal,
            )  # fmt: skip
        case "dynamicconv":
            return paper.dynamicconv(
                X, w["gate.weight"], w["gate.bias"], w["filters.weight"], w["out.weight"],
                w["out.bias"], mixer.config.n_heads, keep, causal=causal,
            )  # fmt: skip
        case "fourier":
            return paper.fourier(X, keep, orthonormal=mixer.config.orthonormal)
        case "sparse_attention":
            W_Q, W_K, W_V = np.split(w["qkv.weight"], 3)
            b_Q, b_K, b_V = np.split(w["qkv.bias"], 3)
            return paper.sparse_attention(
                X, W_Q, b_Q, W_K, b_K, W_V, b_V, w["out.weight"], w["out.bias"],
                head_sets(mixer.config, keep), keep, rotary=mixer.config.rotary, causal=causal,
            )  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@given(data=st.data(), n=st.integers(1, 12), seed=st.integers(0, 2**16))
@settings(max_examples=25, deadline=None)
def test__mixer__any_length_and_mask__equals_the_paper(config, data, n, seed):
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    keep[data.draw(st.integers(0, n - 1))] = True
    X = np.random.default_rng(seed).normal(size=(D, n))
    mixer = build(config, max_seq_len=12, seed=seed)
    got = mixer(torch.from_numpy(X.T.copy())[None], torch.from_numpy(keep)[None])[0]
    wanted = by_the_paper(mixer, X, keep)
    np.testing.assert_allclose(got.detach().numpy().T[:, keep], wanted[:, keep], atol=TOLERANCE)


CAUSAL = [config for config in CONFIGS if config["kind"] not in ("hardmax_shift", "fourier")]


@pytest.mark.parametrize("config", CAUSAL, ids=str)
def test__mixer__causal__equals_the_paper_with_a_triangular_matrix(config):
    X = np.random.default_rng(1).normal(size=(D, 9))
    keep = np.arange(9) < 7
    mixer = build(config, max_seq_len=9, causal=True)
    got = mixer(torch.from_numpy(X.T.copy())[None], torch.from_numpy(keep)[None])[0]
    wanted = by_the_paper(mixer, X, keep, causal=True)
    np.testing.assert_allclose(got.detach().numpy().T[:, keep], wanted[:, keep], atol=TOLERANCE)


@pytest.mark.parametrize("rule", ["shift", "sign"])
def test__hardmax_shift__causal__equals_the_paper_on_every_prefix(rule):
    X = np.random.default_rng(2).normal(size=(D, 8))
    mixer = build({"kind": "hardmax_shift", "rule": rule}, max_seq_len=8, causal=True)
    got = mixer(torch.from_numpy(X.T.copy())[None])[0].detach().numpy().T
    for j in range(8):
        prefix = by_the_paper(mixer, X[:, : j + 1], np.ones(j + 1, dtype=bool))
        np.testing.assert_allclose(got[:, j], prefix[:, j], atol=TOLERANCE)


@pytest.mark.parametrize("n", [1, 64, 127, 128, 129, 192, 250])
@pytest.mark.parametrize("kernel_size", [1, 2, 31, 128])
@pytest.mark.parametrize("causal", [False, True])
def test__sepconv__whole_and_in_blocks__equals_direct_convolution(n, kernel_size, causal):
    config = {"kind": "sepconv", "kernel_size": kernel_size, "n_filters": 2}
    mixer = build(config, max_seq_len=n, causal=causal)
    x = torch.randn(2, n, D, dtype=torch.float64, requires_grad=True)
    parameters = [x, *mixer.parameters()]
    weight = torch.randn_like(x)
    got, wanted = mixer(x), mixer.reference(x)
    torch.testing.assert_close(got, wanted, atol=TOLERANCE, rtol=0)
    for left, right in zip(
        torch.autograd.grad((got * weight).sum(), parameters),
        torch.autograd.grad((wanted * weight).sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(left, right, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("kind", ["lightconv", "dynamicconv"])
@pytest.mark.parametrize("causal", [False, True])
def test__normalised_convolution__band_products__equal_the_direct_form_in_gradients_too(
    kind, n, causal
):
    mixer = build({"kind": kind, "kernel_size": 10, "n_heads": 2}, max_seq_len=n, causal=causal)
    x = torch.randn(2, n, D, dtype=torch.float64, requires_grad=True)
    mask = torch.arange(n) < torch.tensor([[n], [n - n // 3]])
    weight = torch.randn_like(x) * mask[..., None]
    inputs = [x, *mixer.parameters()]
    got, wanted = mixer(x, mask), mixer.reference(x, mask)
    torch.testing.assert_close(got[mask], wanted[mask], atol=TOLERANCE, rtol=0)
    for left, right in zip(
        torch.autograd.grad((got * weight).sum(), inputs),
        torch.autograd.grad((wanted * weight).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(left, right, atol=1e-9, rtol=1e-9)


SMOOTH = [config for config in CONFIGS if config["kind"] not in ("hardmax_shift", "identity")]


@pytest.mark.parametrize(
    ("config", "causal"),
    [(c, causal) for c in SMOOTH for causal in (False, True) if c in CAUSAL or not causal],
    ids=str,
)
def test__mixer__gradient__equals_finite_differences(config, causal):
    mixer = build(config, max_seq_len=5, causal=causal)
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    x = torch.randn(2, 5, D, dtype=torch.float64, requires_grad=True)
    names, values = list(dict(mixer.named_parameters())), list(mixer.parameters())

    def run(x, *values):
        out = torch.func.functional_call(mixer, dict(zip(names, values, strict=True)), (x, mask))
        return out[mask]

    assert torch.autograd.gradcheck(run, (x, *values), fast_mode=True)

import json

import pytest
import torch
from simulated import ATTENTION, Simulation, row

from mixers.builtin.sepconv import SeparableConvolution
from mixers.receptive import route
from mixers.spec import EncoderSpec
from search.report.cautions import cautions
from search.store.routes import route_document, route_words, unseen_words


def spec_of(architecture, **fields):
    sizes = {"d_ff": 0, "vocab_size": 9, "d_model": 16, "max_seq_len": 24} | fields
    return EncoderSpec.of(architecture, **sizes)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("width", [1, 4])
def test__route_document__windows__counts_pairs_by_their_distance(width, causal):
    found = route_document(spec_of(f"sparse_attention(width={width})*3", causal=causal))
    away = torch.arange(24)[:, None] - torch.arange(24)
    pairs = away >= 0 if causal else torch.ones(24, 24, dtype=torch.bool)
    met = [int((pairs & (away.abs() <= width * layers)).sum()) for layers in range(4)]
    assert found["seen_after"] == met
    assert (found["n_pairs"], found["n_unseen"]) == (int(pairs.sum()), int(pairs.sum()) - met[3])
    assert found["nearest_unseen"] == 3 * width + 1
    assert (found["full_after"], found["causal"], found["n_layers"]) == (None, causal, 3)
    json.dumps(found, allow_nan=False)


STACKS = (
    "identity*3",
    "attention, sepconv",
    "sepconv(kernel_size=4)*3, identity",
    "sparse_attention(width=1)*2, sepconv(kernel_size=5), sparse_attention(width=3)",
    "sparse_attention(pattern=strided, width=4, combination=union)*2",
    "sparse_attention(pattern=star, width=2), identity",
)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n_tokens", [1, 9])
@pytest.mark.parametrize("architecture", STACKS)
def test__route_document__any_stack__as_the_matrices_have_it(architecture, n_tokens, causal):
    spec = spec_of(architecture, causal=causal, max_seq_len=n_tokens)
    expected = route(spec, repeated=False)
    unseen = expected.unseen()
    assert route_document(spec) == {
        "n_tokens": n_tokens,
        "n_layers": spec.n_layers,
        "causal": causal,
        "self_loop": expected.conditions["self_loop"],
        "chain": expected.conditions["chain"],
        "full_after": expected.full_after,
        "n_pairs": expected.n_pairs,
        "seen_after": [expected.seen_after(depth) for depth in range(spec.n_layers + 1)],
        "n_unseen": len(unseen),
        "nearest_unseen": min((abs(j - i) for j, i in unseen), default=None),
    }


def test__words__routes__say_what_is_seen_or_why_that_is_unknown(monkeypatch):
    far = route_document(spec_of("sepconv(kernel_size=7)*2"))
    # Two layers of 3 tokens on each side: pairs 7 or more apart, 17 * 18 of 576.
    words = "53% of the pairs of tokens never see each other, the nearest of them 7 apart"
    assert unseen_words(far) == route_words(far) == words
    near = route_document(spec_of("sepconv(kernel_size=7), attention"))
    assert unseen_words(near) == "" == route_words(None)
    assert route_words(near) == "every token sees every other after 2 layers"
    last = route_document(spec_of("average", causal=True))
    assert route_words(last) == "every token sees all before it after 1 layer"

    def broken(*_, **__):
        raise RuntimeError("no idea")

    monkeypatch.setattr(SeparableConvolution, "connections", broken)
    unknown = route_document(spec_of("sepconv(kernel_size=3)"))
    assert unknown == {"problem": "RuntimeError: no idea"}
    assert "no idea" in route_words(unknown)
    assert unseen_words(unknown) == ""


@pytest.mark.parametrize(("n_layers", "warned"), [(1, True), (4, False)])
def test__cautions__pick_whose_tokens_never_meet__says_so(n_layers, warned):
    route = route_document(spec_of(f"sparse_attention(width=6)*{n_layers}"))
    layers = ("sepconv",) * 4
    rows = [row(i, layers, 2.0, phase="baseline", route=route, seed=i) for i in range(2)]
    rows.append(row(2, (ATTENTION,) * 4, 3.0, phase="baseline", role="reference"))
    simulation = Simulation(lambda _: 0.0, lambda _: 0.0)
    simulation.rows = rows
    answer = simulation.answer()
    assert answer.to_dict()["route"] == route
    assert any("in SSSS 53%" in text for text in cautions(answer)) == warned

"""How information travels: against closed forms, brute force, and networks that are run."""

from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import mixers
from mixers.chains import find_chain, is_chain, searched
from mixers.errors import MixerError
from mixers.layouts import modernbert, sequential
from mixers.spec import EncoderSpec


def spec_of(architecture, **fields):
    sizes = {"d_ff": 0, "vocab_size": 9, "d_model": 16, "max_seq_len": 24} | fields
    return EncoderSpec.of(architecture, **sizes)


@pytest.mark.parametrize("width", [1, 3, 30])
@pytest.mark.parametrize("causal", [False, True])
def test__route__windows__take_distance_over_width_layers(width, causal):
    spec = spec_of(f"sparse_attention(width={width})*2", causal=causal)
    route = mixers.route(spec)
    for output, row in enumerate(route.layers_until):
        for token, until in enumerate(row):
            away = output - token
            wanted = None if causal and away < 0 else -(-abs(away) // width)
            assert until == wanted
    assert route.full_after == -(-23 // width)
    assert route.conditions == {"self_loop": True, "chain": True, "all_reach_all": True}
    far = {(o, t) for o in range(24) for t in range(24) if abs(o - t) > 2 * width}
    far = {(o, t) for o, t in far if t < o or not causal}
    assert set(route.unseen(within=2)) == far
    assert route.unseen() == []
    once = mixers.route(spec, repeated=False)
    assert set(once.unseen()) == far
    assert once.full_after == (None if far else route.full_after)


def test__route__causal_filters__reach_back_by_their_whole_length():
    # A filter of 5 taps sees 2 tokens on each side, or 4 before.
    both = mixers.route(spec_of("sepconv(kernel_size=5)"))
    back = mixers.route(spec_of("sepconv(kernel_size=5)", causal=True))
    assert both.full_after == 12
    assert back.full_after == 6
    assert back.layers_until[10][6] == 1


MIXED = [
    "sparse_attention(width=2), sepconv(kernel_size=4), identity",
    "sparse_attention(pattern=fixed, width=5, combination=second), lightconv(kernel_size=3)",
    "sparse_attention(pattern=random, width=2), sparse_attention(pattern=random, width=2, seed=1)",
    sequential("strided", 2, width=7),
    "identity, sparse_attention(pattern=star)",
    "average",
]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("architecture", MIXED)
def test__route__any_stack__is_what_moves_when_the_network_is_run(architecture, causal):
    spec = spec_of(architecture, causal=causal, norm="none", positions="none")
    route = mixers.route(spec)
    torch.manual_seed(0)
    encoder = mixers.Encoder(spec).double().eval()
    x = torch.randn(1, 24, 16, dtype=torch.float64)
    moved = mixers.testing.influence(encoder, x)
    within = [
        [until is not None and until <= spec.n_layers for until in row]
        for row in route.layers_until
    ]
    assert moved.tolist() == within
    assert route.seen_after(spec.n_layers) == int(moved.sum())


TWO_PARTS = {
    "union": "sparse_attention(pattern={pattern}, width={w})",
    "multihead": "sparse_attention(pattern={pattern}, width={w}, combination=multihead, n_heads=2)",
    "sequential": "sparse_attention(pattern={pattern}, width={w}, combination=first), "
    "sparse_attention(pattern={pattern}, width={w}, combination=second)",
}


@pytest.mark.parametrize("combination", TWO_PARTS)
@pytest.mark.parametrize(("pattern", "width"), [("strided", 4), ("fixed", 4), ("strided", 5)])
def test__route__patterns_of_two_parts__fulfil_the_conditions_in_two_layers(
    pattern, width, combination
):
    # A step along the stride and one within the window, or to the end of a block and within it,
    # lead from any token to any other, where the length is a multiple of the block.
    notation = TWO_PARTS[combination].format(pattern=pattern, w=width)
    route = mixers.route(spec_of(notation))
    assert route.conditions == {"self_loop": True, "chain": True, "all_reach_all": True}
    assert route.full_after == 2
    assert route.chain.order == tuple(range(24))
    causal = mixers.route(spec_of(notation, causal=True))
    assert causal.conditions["self_loop"]
    assert causal.chain.order == tuple(range(24))


@pytest.mark.parametrize("combination", TWO_PARTS)
def test__route__last_block_cut_short__nobody_outside_ever_sees_it(combination):
    # Its last token, by which the others would see it, is missing.
    notation = TWO_PARTS[combination].format(pattern="fixed", w=5)
    route = mixers.route(spec_of(notation))
    assert set(route.unseen()) == {(j, i) for j in range(20) for i in range(20, 24)}
    assert route.conditions == {"self_loop": True, "chain": True, "all_reach_all": False}


@pytest.mark.parametrize("part", ["first", "second"])
def test__route__one_part_alone__fulfils_no_more_than_the_self_loop(part):
    stack = f"sparse_attention(pattern=strided, width=24, combination={part})*2"
    assert mixers.route(spec_of(stack)).conditions["all_reach_all"] is (part == "first")
    blocks = f"sparse_attention(pattern=fixed, width=4, combination={part})*2"
    found = mixers.route(spec_of(blocks))
    assert found.conditions["self_loop"]
    assert found.conditions["all_reach_all"] is False
    assert found.conditions["chain"] is not True


def test__route__random__layers_of_one_seed_may_stay_apart_and_other_seeds_meet():
    same = mixers.route(spec_of("sparse_attention(pattern=random, width=1, seed=3)*6"))
    other = mixers.route(
        spec_of(", ".join(f"sparse_attention(pattern=random, width=1, seed={s})" for s in range(6)))
    )
    assert same.conditions["self_loop"]
    assert len(other.unseen()) < len(same.unseen())


def test__route__global_layer__full_after_it_and_modernbert_at_once():
    assert mixers.route(spec_of("sepconv(kernel_size=1)*2, attention")).full_after == 3
    assert mixers.route(spec_of(modernbert(4, width=2))).full_after == 1


def test__route__star__takes_two_layers_by_the_hub():
    route = mixers.route(spec_of("sparse_attention(pattern=star)"))
    assert route.full_after == 2
    assert route.layers_until[5][20] == 2
    assert route.layers_until[0][20] == route.layers_until[20][0] == 1


def test__route__no_mixing__nothing_meets_and_no_chain_exists():
    route = mixers.route(spec_of("identity*3"))
    assert route.full_after is None
    assert len(route.unseen()) == 24 * 23
    assert route.conditions == {"self_loop": True, "chain": False, "all_reach_all": False}
    assert route.chain.apart == (0, 1)


def test__route__length__is_the_encoders_but_can_be_asked_for():
    assert mixers.route(spec_of("sepconv")).n_tokens == 24
    assert mixers.route(spec_of("average", max_seq_len=9999)).n_tokens == 512
    assert mixers.route(spec_of("sepconv"), n_tokens=7).n_tokens == 7
    with pytest.raises(MixerError, match="layer 1: bproj is bound to max_seq_len 24, got 25"):
        mixers.route(spec_of("sepconv, bproj"), n_tokens=25)
    with pytest.raises(MixerError, match="n_tokens must be from 1 to 8192, not 0"):
        mixers.route(spec_of("sepconv"), n_tokens=0)


def test__route__mixer_that_does_not_see_itself__fails_the_first_condition(monkeypatch):
    from mixers.builtin.average import AverageAttention

    def others(cls, config, *, seq_len, causal=False):
        return ~torch.eye(seq_len, dtype=torch.bool)

    monkeypatch.setattr(AverageAttention, "connections", classmethod(others))
    route = mixers.route(spec_of("attention, average"))
    assert route.blind_layers == (1,)
    assert route.conditions["self_loop"] is False


graphs = st.integers(1, 6).flatmap(
    lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=n, max_size=n)
)


@given(graphs)
def test__find_chain__any_small_graph__agrees_with_every_permutation(rows):
    seen = torch.tensor(rows, dtype=torch.bool).view(len(rows), len(rows))
    orders = [order for order in permutations(range(len(rows))) if is_chain(seen, order)]
    chain = find_chain(seen)
    assert (chain.state == "found") == bool(orders)
    if chain.state == "found":
        assert chain.order in orders


def test__find_chain__hidden_order__is_found():
    order = torch.randperm(40, generator=torch.Generator().manual_seed(1)).tolist()
    seen = torch.zeros(40, 40, dtype=torch.bool)
    seen[order[1:], order[:-1]] = True
    assert find_chain(seen).order == tuple(order)


def test__find_chain__search_that_ends__claims_nothing():
    # Ten tokens around a hub: all reach all through it, but no path can pass it twice.
    seen = torch.zeros(30, 30, dtype=torch.bool)
    seen[0] = seen[:, 0] = True
    chain = find_chain(seen)
    assert (chain.state, chain.order, chain.apart) == ("not found", (), None)
    assert searched(seen, torch.ones_like(seen)) == ()


def test__route__more_tokens_than_fit_into_memory__are_refused():
    with pytest.raises(MixerError, match="n_tokens must be from 1 to 8192, not 100000"):
        mixers.route(spec_of("sepconv"), n_tokens=100_000)

"""The certificate: holds where the theorem does, and names what a changed weight breaks."""

from math import comb, factorial, prod

import pytest
import torch

from mixers.theory import expected
from mixers.theory.cases import cases, select
from mixers.theory.certificate import certify
from mixers.theory.network import build
from mixers.theory.sizes import Sizes
from mixers.theory.targets import Scrambled
from mixers.theory.tightness import tightness, tightness_table


@pytest.mark.parametrize("theorem", [2, 3])
@pytest.mark.parametrize(("d", "n", "K"), [(1, 2, 2), (1, 2, 4), (1, 3, 3), (2, 2, 2), (2, 2, 3)])
def test__certify__small_sizes__every_claim_holds_on_all_inputs(d, n, K, theorem):
    sizes = Sizes(d, n, K, theorem)
    certificate = certify(sizes, sample=2000)
    assert certificate.selection.sampled is None
    assert certificate.failures == ()
    assert certificate.subject.startswith("exact" if K == 3 else "the network")


def test__certify__too_many_inputs__samples_every_category_and_says_so():
    sizes = Sizes(2, 4, 8)
    certificate = certify(sizes, sample=600, seed=3)
    assert certificate.failures == ()
    assert certificate.selection.words == "a sample of 600 out of 4.3e+07, seed 3"
    assert any("60 bits" in note for note in certificate.notes)
    assert any("value mapping was not run" in note for note in certificate.notes)
    assert not any(claim.name.startswith("g(X)") for claim in certificate.claims)


def test__certify__network_too_deep_for_all_inputs__is_compared_on_a_part(monkeypatch):
    monkeypatch.setattr("mixers.theory.certificate.MOST_BLOCK_RUNS", 2000)
    certificate = certify(Sizes(2, 2, 2), sample=500)
    assert certificate.failures == ()
    (claim,) = [claim for claim in certificate.claims if "in float64 = exact" in claim.name]
    # 2000 runs of 26 blocks each
    assert claim.measured == "equal on 76 of 76"


def test__certify__same_seed__same_certificate():
    sizes = Sizes(1, 3, 4)
    runs = [certify(sizes, sample=120, exhaustive_up_to=10, seed=5) for _ in range(2)]
    assert runs[0] == runs[1]


MUTATIONS = [
    ("quantizer", 1, "feed_forward.wide.bias", 0.25, "Lemma 5: X in S_L"),
    ("shifts", 1, "mixer.direction", 1.0, "closed form of the ids, Category 1"),
    ("shifts", 0, "mixer.upper", 0.5, "closed form of the ids, Category 1"),
    ("shifts", 0, "mixer.lower", -600.0, "B.5.3: the sweep moves no negative id"),
    ("global", 0, "mixer.direction", -63.0, "property 6.3"),
    ("global", 0, "mixer.direction", -64.0, "smallest gap"),
    ("value", 0, "feed_forward.narrow.weight", 1e9, "g(X) = 0"),
    ("value", 3, "feed_forward.narrow.weight", 0.5, "g(X) = f(X)"),
    ("value", 5, "feed_forward.wide.bias", 8.0, "g(X) = f(X)"),
]


@pytest.mark.parametrize(("part", "place", "name", "change", "claim"), MUTATIONS)
def test__certify__one_weight_changed__the_claim_fails(part, place, name, change, claim):
    sizes = Sizes(2, 2, 2)
    network = build(sizes, Scrambled(sizes))
    weight = network.encoder.blocks[network.parts[part][place]].get_parameter(name)
    with torch.no_grad():
        weight.view(-1)[0] += change
    failed = [each.name for each in certify(sizes, network=network, sample=500).failures]
    assert any(each.startswith(claim) for each in failed), failed


def test__certify__permutation_broken__claim_1_fails():
    sizes = Sizes(1, 2, 2)
    network = build(sizes, Scrambled(sizes))
    network.encoder.blocks[-1].register_forward_hook(
        lambda _, __, out: out + torch.arange(2.0, dtype=out.dtype)[:, None]
    )
    failed = [each.name for each in certify(sizes, network=network, sample=100).failures]
    assert "Claim 1: permuted tokens, permuted result" in failed


def test__expected__lemma_10__upper_bound_is_attained_for_two_tokens():
    sizes = Sizes(1, 2, 4)
    (claim,) = [c for c in certify(sizes, sample=100).claims if c.name.startswith("Lemma 10: b")]
    assert (claim.expected, claim.measured) == ("12 < l~_n <= 39", "13 to 39")


@pytest.mark.parametrize(("d", "n", "K"), [(1, 2, 3), (2, 2, 2), (1, 3, 3)])
def test__cases__exhaustive__categories_have_their_sizes(d, n, K):
    sizes = Sizes(d, n, K)
    found = list(cases(sizes, select(sizes, sample=1, seed=0, exhaustive_up_to=10**6)))
    assert len({case.tokens for case in found}) == len(found) == (K + 1) ** (d * n)
    wanted = expected.category_sizes(d, n, K, 2)
    assert {c: sum(case.category == c for case in found) for c in wanted} == wanted
    assert wanted[1] == prod(K**d - i for i in range(n))


def test__tightness__large_b__residual_network_is_n_factorial_times_larger():
    row = tightness(Sizes(2, 3, 64))
    assert row.residual_layers == 4096**3
    assert row.layers == 2 * 65 + 4096 + 1 + 1 + 2 + 3 * comb(4096, 3)
    # Per layer 2 d n + 1 = 13 against 2 d + 1 = 5 parameters, n = 3 layers for each orbit.
    assert row.ratio == pytest.approx(factorial(3) * 13 / (3 * 5), rel=2e-3)
    assert row.gain == 6
    assert row.numbers == 6 * comb(4096, 3)


def test__tightness__ratio_beyond_floats__is_whole():
    row = tightness(Sizes(1, 200, 256))
    assert row.ratio == row.residual_parameters // row.parameters > 10**308


def test__tightness_table__asked_sizes_first_then_larger_ones_that_exist():
    rows = tightness_table(Sizes(1, 3, 4))
    assert [(r.sizes.d, r.sizes.n, r.sizes.K) for r in rows] == [
        (1, 3, 4), (2, 3, 4), (1, 4, 4), (1, 3, 8), (1, 3, 32),
    ]  # fmt: skip

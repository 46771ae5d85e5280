"""What the probe must read for layers whose answer is known (d_model 64, 32 tokens, full size).

Readings of 0 and 1 are exact. A convolution's readings are exact at the sampled edits.
"""

from functools import cache

import pytest
import torch
from probed import VOCABULARY, encoder_of, random_contexts

from search.messages import ProbeReading
from search.probe import probe
from search.probe.strata import Pairs, draw

N = 32
COLUMNS = ("one_edit", "four_edits", "transposition", "mean_preserving")


@cache
def full(architecture: str, d_ff: int) -> ProbeReading:
    encoder = encoder_of(architecture, d_ff=d_ff)
    return probe(encoder, random_contexts(), VOCABULARY, seed=0, size="full", layers="last")


@pytest.mark.parametrize(
    ("architecture", "d_ff", "expected"),
    [
        ("identity", 0, (0, 0, 0, 0)),
        ("average", 0, (1, 1, 0, 0)),
        ("average*2", 0, (1, 1, 0, 0)),
        ("average*2", 128, (1, 1, 1, 1)),
        ("bproj", 0, (1, 1, 1, 1)),
        ("attention", 0, (1, 1, 1, 1)),
    ],
)
def test__probe__global_controls__read_exactly_zero_or_one(architecture, d_ff, expected):
    readings = full(architecture, d_ff).readings

    assert tuple(readings[f"{stratum}.p_sep"] for stratum in COLUMNS) == expected
    for stratum, told in zip(COLUMNS, expected, strict=True):
        # Two edits of one base may give one mean: what is merged then are equal averages.
        assert readings[f"{stratum}.d_ctx"] == pytest.approx(told, abs=0.01 * told)
        assert (readings[f"{stratum}.gap_min"] > 0) == bool(told)
    assert readings["contextual.split_classes"] == 0


def test__probe__identity__tells_tokens_but_no_context():
    readings = full("identity", 0).readings

    assert readings["probe"] == 0
    assert (readings["contextual.d_ctx"], readings["contextual.s_ctx"]) == (0, 0)
    assert 0 < readings["contextual.d_all"] < 0.1


def test__probe__attention__tells_everything_but_weakly():
    """Margins at initialisation differ by orders of magnitude: p_sep cannot rank these."""
    attention, bproj = full("attention", 0).readings, full("bproj", 0).readings

    assert attention["contextual.d_ctx"] == bproj["contextual.d_ctx"] == 1
    assert attention["probe"] < 0.2 * bproj["probe"]
    assert attention["transposition.gap_median"] < 1e-2 * attention["probe"]
    assert attention["one_edit.borderline"] == bproj["one_edit.borderline"] == 0


def window_share(pairs: Pairs, reach: int) -> float:
    """Share of (pair, unedited position) within reach of an edit, by counting."""
    seen = told = 0
    for edited in pairs.edited.flatten(0, 1).tolist():
        places = [p for p, is_edit in enumerate(edited) if is_edit]
        for j in range(N):
            if j not in places:
                seen += 1
                told += min(abs(j - p) for p in places) <= reach
    return told / seen


@pytest.mark.parametrize(("kernel_size", "n_layers"), [(3, 1), (3, 4), (31, 1)])
def test__probe__convolution__reads_the_share_within_its_reach_and_nothing_beyond(
    kernel_size, n_layers
):
    reach = n_layers * (kernel_size - 1) // 2
    contexts = random_contexts()

    readings = full(f"sepconv(kernel_size={kernel_size})*{n_layers}", 0).readings

    for stratum in COLUMNS:
        pairs = draw(
            stratum,
            contexts,
            torch.ones_like(contexts, dtype=torch.bool),
            VOCABULARY,
            n_variants=8,
            seed=0,
            d_model=64,
        )
        assert readings[f"{stratum}.p_sep"] == pytest.approx(window_share(pairs, reach), rel=1e-12)
        for distance in range(1, N):
            share = readings.get(f"{stratum}.p_sep.distance_{distance}")
            assert share in (None, float(distance <= reach))
    assert (readings["far.reach"], readings["far.p_sep"]) == (reach, 0)
    # The edits' positions are drawn: 384 of them bring the share near its mean over all positions.
    closed_form = (2 * reach * N - reach * (reach + 1)) / (N * (N - 1))
    assert readings["one_edit.p_sep"] == pytest.approx(closed_form, rel=0.03)


@pytest.mark.parametrize("reach", range(N))
def test__window_share__every_single_edit__equals_the_closed_form(reach):
    edited = torch.eye(N, dtype=torch.bool)[None]

    share = window_share(Pairs("one_edit", edited.long(), edited), reach)

    assert share == pytest.approx((2 * reach * N - reach * (reach + 1)) / (N * (N - 1)))


def test__probe__norm_before_the_mixer__only_its_own_input_keeps_the_mean():
    """A norm changes the mean that a transposition keeps; the mixer's own input shows the truth."""
    encoder = encoder_of("average", norm="pre", embedding_norm=True)

    readings = probe(
        encoder, random_contexts(), VOCABULARY, seed=0, size="full", layers="last"
    ).readings

    assert readings["transposition.p_sep"] == 1
    assert readings["mean_preserving.p_sep"] == 0

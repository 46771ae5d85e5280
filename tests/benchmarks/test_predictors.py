"""Statistics of the benchmark of predictors, and zero-cost predictors, against other routes."""

import numpy as np
import pytest
import torch
from probed import encoder_of
from scipy import stats
from torch import nn

from benchmarks.predictor_analysis import (
    agreement,
    analyse,
    ceiling,
    kendall,
    spearman,
    stratified,
    tabulate,
)
from benchmarks.zero_cost import gradients, naswot, synflow


def test__kendall_and_spearman__ties__equal_scipy():
    random = np.random.default_rng(0)
    x, y = random.integers(0, 6, (2, 40, 12)).astype(float)

    for row in range(40):
        assert kendall(x, y)[row] == pytest.approx(stats.kendalltau(x[row], y[row]).statistic)
        assert spearman(x, y)[row] == pytest.approx(stats.spearmanr(x[row], y[row]).statistic)
    assert np.isnan(kendall(np.ones((1, 5)), np.arange(5.0)[None])[0])


def test__stratified__a_count_in_disguise__says_nothing_within_equal_counts():
    """A predictor that orders strata but not their members, and one that does the reverse."""
    random = np.random.default_rng(1)
    counts = np.repeat(np.arange(4.0), 6)[:, None]
    inner = np.tile(np.arange(6.0), 4)
    result = 10 * counts[:, 0] + inner
    disguised = 10 * counts[:, 0] + random.permuted(np.tile(np.arange(6.0), (4, 1)), axis=1).ravel()

    assert spearman(disguised[None], result[None])[0] > 0.9
    assert stratified(disguised, result, counts, seed=0)[1] > 0.05
    tau, p = stratified(-inner, result, counts, seed=0)
    assert (tau, p) == (-1.0, pytest.approx(1 / 5001))
    assert stratified(inner[:5], result[:5], np.arange(5.0)[:, None], seed=0) == (None, None)


def rows(n_seeds):
    """Sixteen stacks of two mixers whose loss is the number of attention layers, and a seed's."""
    found = []
    for index in range(16):
        kinds = ["attention" if index >> layer & 1 else "sepconv" for layer in range(4)]
        for seed in range(n_seeds):
            loss = kinds.count("attention") + index / 100 + seed
            row = dict.fromkeys(("probe_first", "naswot"), "")
            row |= {"notation": ", ".join(kinds), "seed": str(seed), "test": str(loss)}
            row |= {"selection": "9", "probe_init": str(index % 3), "probe_final": str(loss)}
            row |= dict.fromkeys(("selection_first", "params", "flops", "reach", "n_layers"), "4")
            row |= dict.fromkeys(("grad_norm", "snip", "synflow", "jacob_cov"), str(index))
            found.append(row)
    return found


def test__analyse__planted_losses__the_perfect_predictor_is_found_and_the_rest_left_out():
    table = tabulate("planted", rows(2))

    found = {one.name: one for one in analyse(table)}

    assert table.target == "test"
    assert found["probe_final"].rho.value == pytest.approx(1.0)
    assert found["probe_final"].within == pytest.approx(1.0)
    assert found["attention layers"].within is None
    assert found["probe_final"].against_probe.low > 0
    assert {"params", "probe_first", "naswot"}.isdisjoint(found)


def test__ceiling__some_architectures_with_a_second_seed__is_taken_over_those():
    assert ceiling(tabulate("one seed", rows(1))) is None
    some = [row for row in rows(2) if row["seed"] == "0" or row["notation"].startswith("attention")]
    worse = {"attention, sepconv, sepconv, sepconv": "9"}  # the best of the eight, now the worst
    some = [
        row | {"test": worse.get(row["notation"], row["test"])} if row["seed"] == "1" else row
        for row in some
    ]

    found = ceiling(tabulate("some", some))

    first, second = np.arange(8), np.array([8, 1, 2, 3, 4, 5, 6, 7])
    assert found.n_architectures == 8
    assert found.rho.value == pytest.approx(stats.spearmanr(first, second).statistic)


def test__agreement__tables_share_some__is_over_those():
    whole = tabulate("whole", rows(1))
    turned = [row | {"test": str(-float(row["test"]))} for row in rows(1)[4:]]

    found = agreement(whole, tabulate("turned", turned))

    assert (found.studies, found.n_architectures) == (("whole", "turned"), 12)
    assert (found.tau.value, found.rho.value) == (pytest.approx(-1.0), pytest.approx(-1.0))
    assert found.rho.high < -0.99


class Sum:
    """A task whose loss is linear in the weights of the head."""

    def loss(self, model, batch):
        return model.head(batch["x"]).sum()


def test__gradients__linear_loss__are_the_inputs():
    model = nn.Module()
    model.head = nn.Linear(3, 1)
    x = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)

    found = gradients(Sum(), model, {"x": x})

    assert [grad.tolist() for _, grad in found] == [[[1.0, 2.0, 3.0]], [1.0]]
    assert model.head.weight.grad is None


def test__synflow__weights_change_sign__same_flow():
    encoder = encoder_of("attention, average", d_ff=32, d_model=16, max_seq_len=8)
    plain = synflow(encoder, 8)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.neg_()

    assert synflow(encoder, 8) == pytest.approx(plain, rel=1e-12)
    assert np.isfinite(plain)


def test__naswot__two_equal_sequences__are_one():
    encoder = encoder_of("attention", d_ff=32, d_model=16, max_seq_len=8)
    ids = torch.randint(100, (6, 8), generator=torch.Generator().manual_seed(0))
    alike = ids.clone()
    alike[1] = alike[0]

    assert -20 < naswot(encoder, ids) < 0
    assert naswot(encoder, alike) < -20

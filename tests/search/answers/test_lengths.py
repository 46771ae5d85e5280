"""Leads at several training lengths: growing, steady, closing; order and verdicts kept or lost."""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from simulated import ATTENTION, question, row

from search.answers.answer import make_answer
from search.answers.lengths import Derived, lengths_of
from search.report.cautions import cautions
from search.report.lengths import headline, section

A, S, B, M = ATTENTION, "sepconv", "bproj", "average"
PICK, REFERENCE, SHORT = (S, S, A, A), (A,) * 4, (S, S)
ROLES = {"pick": PICK, "reference": REFERENCE, "shorter": SHORT}
OTHERS = [(S,) * 4, (A, S, S, S), (B,) * 4, (M,) * 4, (B, B, M, M), (M, S, B, A)]
SEEDS = 4


def scale(steps, losses, *, d_model=64, purpose=None, sd=0.001, seeds=SEEDS):
    """A derived study of these true losses."""
    noise = np.random.default_rng(steps + d_model + 5).normal(0, sd, (seeds, len(losses)))
    rows = [
        dataclasses.replace(
            row(0, stack, loss + noise[seed, n], phase="confirm", seed=seed + 1),
            number=seed * len(losses) + n,
            seed_index=seed + 1,
            documents={},
        )
        for seed in range(seeds)
        for n, (stack, loss) in enumerate(losses.items())
    ]
    asked = question(
        steps=steps, size=f"4 layers, d_model {d_model}", is_listed=True, space_size=len(losses)
    )
    name = purpose or f"steps-x{steps // 600}"
    return Derived(name, asked, d_model, rows, labels_at=lambda labels: labels)


def losses(lead, level=3.0, others=True, flip=1.0):
    found = {REFERENCE: level, PICK: level - lead, SHORT: level + 0.2}
    if others:
        found |= {stack: level + flip * 0.1 * (n + 3) for n, stack in enumerate(OTHERS)}
    return found


def base_question():
    return question(steps=600, size="4 layers, d_model 64")


def lengths(*scales, verdicts=()):
    return lengths_of(ROLES, verdicts, scales, base_question())


@pytest.mark.parametrize(
    ("last", "word"), [(0.02, "closing"), (0.15, "growing"), (0.073, "steady"), (0.035, "closing")]
)
def test__lengths_of__lead_over_three_lengths__is_named_by_its_change(last, word):
    found = lengths(
        scale(2400, losses(last)), scale(600, losses(0.07)), scale(1200, losses(0.05, others=False))
    )
    assert [measured.steps for measured in found.measured] == [600, 1200, 2400]
    assert found.word == word
    assert found.left == pytest.approx(last / 0.07, abs=0.05)
    assert found.last == "steps-x4"
    assert found.measured[0].lead.estimate == pytest.approx(0.07, abs=0.005)


def test__lengths_of__change__has_the_interval_of_four_independent_means():
    scales = scale(600, losses(0.07)), scale(2400, losses(0.04))
    found = lengths(*scales).change
    variances, estimate = [], 0.0
    for sign, one in zip((-1, 1), scales, strict=True):
        for turn, stack in ((1, REFERENCE), (-1, PICK)):
            values = [r.test["loss"] for r in one.rows if r.mixers == stack]
            estimate += sign * turn * np.mean(values)
            variances.append(np.var(values, ddof=1) / SEEDS)
    df = sum(variances) ** 2 / sum(v**2 / (SEEDS - 1) for v in variances)
    half = stats.t.ppf(0.975, df) * np.sqrt(sum(variances))
    assert found.estimate == pytest.approx(estimate)
    assert (found.low, found.high) == pytest.approx((estimate - half, estimate + half))


def test__lengths_of__halved_lead__says_by_which_factor():
    found = lengths(scale(600, losses(0.08)), scale(2400, losses(0.03)))
    assert headline(found) == "closing (halved by x4)"
    found = lengths(scale(600, losses(0.08)), scale(2400, losses(0.05)))
    assert headline(found) == "closing"


def test__lengths_of__order__correlates_the_architectures_of_both_scales():
    same = lengths(scale(600, losses(0.07)), scale(2400, losses(0.07, level=2.5)))
    [order] = same.orders
    assert (order.n, order.is_enough) == (9, True)
    assert order.correlation.estimate == pytest.approx(1.0)
    turned = lengths(scale(600, losses(0.07)), scale(2400, losses(0.07, flip=-1.0)))
    [order] = turned.orders
    first, last = losses(0.07), losses(0.07, flip=-1.0)
    truth = stats.spearmanr(list(first.values()), list(last.values())).statistic
    assert order.correlation.estimate == pytest.approx(truth, abs=0.1)
    few = lengths(scale(600, losses(0.07, others=False)), scale(2400, losses(0.07, others=False)))
    assert few.orders[0].correlation is None


def base_answer(*scales, lead=0.07):
    rows = []
    for stack in (PICK, REFERENCE, SHORT):
        loss = losses(lead)[stack]
        rows.append(row(len(rows), stack, loss))
        for k in range(SEEDS):
            one = row(len(rows), stack, loss + 0.001 * k, phase="confirm", seed=k + 1)
            rows.append(dataclasses.replace(one, seed_index=k + 1))
    return make_answer(
        rows, base_question(), ROLES, mixers=[A, S, B, M], baselines={}, derived=scales
    )


def test__answer__verdict_at_a_longer_training__is_kept_or_lost():
    kept = base_answer(scale(600, losses(0.07)), scale(2400, losses(0.05))).lengths.kept
    assert [(k.against, k.before, k.after, k.outcome) for k in kept] == [
        ("reference", "better", "better", "kept"),
        ("shorter", "keep depth", "keep depth", "kept"),
    ]
    answer = base_answer(scale(600, losses(0.07)), scale(2400, losses(-0.05)))
    outcomes = {k.against: (k.after, k.outcome) for k in answer.lengths.kept}
    assert outcomes["reference"] == ("keep attention", "lost")
    said = " ".join(section(answer, None).lines)
    assert "'better' against all-attention lost at steps x4: keep attention" in said
    assert any("lost at steps x4" in caution for caution in cautions(answer))
    # 'better' says all that 'may be cheap' says.
    risen = base_answer(scale(600, losses(0.0)), scale(2400, losses(0.05)), lead=0.0).lengths.kept
    outcomes = {k.against: (k.before, k.after, k.outcome) for k in risen}
    assert outcomes["reference"] == ("may be cheap", "better", "kept")
    open_ = base_answer(scale(600, losses(0.07)), scale(2400, losses(0.05), seeds=1)).lengths
    assert {k.outcome for k in open_.kept} == {"undecided"}
    assert open_.word == "undecided"


def test__answer__another_width__stands_beside_the_lengths():
    wide = scale(600, losses(0.03), d_model=128, purpose="d_model-128")
    answer = base_answer(scale(600, losses(0.07)), wide)
    found = answer.lengths
    assert (found.last, found.word, found.change) == (None, "undecided", None)
    assert [m.d_model for m in found.measured] == [64, 128]
    assert [order.purpose for order in found.orders] == ["d_model-128"]
    shown = section(answer, None)
    assert shown.rows[1][0] == "600 steps, d_model 128"
    assert answer.to_dict()["lengths"]["measured"][1]["lead"]["estimate"] == pytest.approx(
        0.03, abs=0.01
    )


def test__answer__nothing_derived_or_nothing_longer__says_nothing():
    assert base_answer().lengths is None
    assert not section(base_answer(), None)
    assert base_answer(scale(600, losses(0.07))).lengths is None


def test__answer__higher_is_better__lead_is_turned():
    scales = [scale(600, losses(-0.07)), scale(2400, losses(-0.02))]
    better_high = [
        dataclasses.replace(s, question=dataclasses.replace(s.question, direction="maximize"))
        for s in scales
    ]
    asked = dataclasses.replace(base_question(), direction="maximize")
    found = lengths_of(ROLES, (), better_high, asked)
    assert found.measured[0].lead.estimate == pytest.approx(0.07, abs=0.005)
    assert found.word == "closing"

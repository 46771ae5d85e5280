from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from simulated import ATTENTION, MIXERS, listed_baselines, question, row

from search.answers.answer import make_answer
from search.answers.arms import arms_of, finalists_of
from search.answers.family import Family
from search.answers.recipe import (
    DEPENDS,
    RecipeCheck,
    SweptRates,
    at_shared_recipe,
    check_recipe,
)
from search.answers.verdicts import contrasts_of
from search.report import leaderboard
from search.report.recipe import section, stack_name
from search.report.sections import Room
from search.spec.sweep import Sweep, SweptStack

ALL_A, ALL_S = (ATTENTION,) * 4, ("sepconv",) * 4
SHARED, LOW, HIGH = 0.012, 0.006, 0.024
SWEEP = Sweep(
    shared=SHARED,
    rates=(LOW, SHARED, HIGH),
    stacks=(SweptStack("reference", ALL_A), SweptStack("cheap", ALL_S)),
    objective="loss",
    sign=1.0,
)


def answer_of(swept, confirmed, n=4):
    """The answer of a study with these readings of the sweep and these means in confirmation.

    Both are by layers and rate.
    """
    rows = []

    def add(layers, rate, value, **fields):
        recipe = {} if rate == SHARED else {"learning_rate": rate}
        fields |= {"recipe": recipe, "state": "diverged" if value is None else "completed"}
        rows.append(row(len(rows), layers, value, seconds=30.0, **fields))

    for (layers, rate), value in swept.items():
        add(layers, rate, value, phase="baseline" if rate == SHARED else "recipe")
    for (layers, rate), mean in confirmed.items():
        for k in range(1, n + 1):
            value = mean + 0.002 * (-1) ** k
            add(layers, rate, value, phase="confirm", seed=k, seed_index=k)
    return make_answer(
        rows,
        question(sweep=SWEEP),
        {"pick": ALL_S, "reference": ALL_A},
        mixers=MIXERS,
        baselines=listed_baselines(),
    )


def swept(best_of_attention, best_of_sepconv):
    return {
        (layers, rate): 3.0 + (rate != best)
        for layers, best in ((ALL_A, best_of_attention), (ALL_S, best_of_sepconv))
        for rate in SWEEP.rates
    }


def verdict_of(answer):
    (contrast,) = answer.contrasts
    return contrast.verdict


def test__recipe__optima_agree__verdict_of_the_shared_rate_and_no_margin():
    answer = answer_of(swept(SHARED, SHARED), {(ALL_A, SHARED): 3.0, (ALL_S, SHARED): 2.8})
    assert verdict_of(answer).word == "better"
    assert (answer.recipe.apart, answer.recipe.margins) == ((), ())
    assert [stack.best for stack in answer.recipe.stacks] == [SHARED, SHARED]
    assert not any(stack.at_edge for stack in answer.recipe.stacks)
    assert answer.reference_at_own_rate is None
    (line,) = section(answer, Room(8, 4, 1)).lines
    assert "agree within a factor of two" in line


def test__recipe__same_sign_at_both__verdict_and_margin_of_the_own_rates():
    answer = answer_of(
        swept(LOW, SHARED),
        {
            (ALL_A, SHARED): 3.0,
            (ALL_S, SHARED): 2.8,
            (ALL_A, LOW): 2.9,
            (ALL_S, LOW): 2.95,
        },
    )
    (contrast,) = answer.contrasts
    assert contrast.verdict.word == "better"
    assert contrast.interval.estimate == pytest.approx(2.8 - 2.9)
    (margin,) = answer.recipe.margins
    assert (margin.candidate_rate, margin.other_rate) == (SHARED, LOW)
    assert margin.shared.estimate == pytest.approx(2.8 - 3.0)
    assert margin.own.estimate == pytest.approx(2.8 - 2.9)
    assert margin.same_sign
    # Each side is the better of two rates, so three contrasts count as six.
    assert margin.shared.level == pytest.approx(1 - 0.04 / 3)
    assert margin.own.level == contrast.interval.level == pytest.approx(1 - 0.04 / 6)
    assert answer.recipe.stacks[0].at_edge
    own = answer.reference_at_own_rate
    assert (own.rate, own.selection, own.n_selection, own.n_test) == (LOW, 3.0, 1, 4)
    assert own.test == pytest.approx(2.9)
    board = leaderboard.section(answer, None)
    # 3.0 on selection, as the first of the order has; all-attention at the shared rate has 4.0.
    assert [line[:3] for line in board.rows] == [
        ("-", "AAAA", "reference at 0.006"),
        ("1", "SSSS", "pick"),
        ("2", "AAAA", "reference"),
    ]
    assert "AAAA at its own learning rate" in board.lines[0]
    (_, line) = section(answer, None).lines
    assert "-0.100" in line
    assert "-0.200" in line


def test__recipe__sign_flips_at_the_own_rates__undecided_with_the_reason():
    answer = answer_of(
        swept(LOW, SHARED),
        {
            (ALL_A, SHARED): 3.0,
            (ALL_S, SHARED): 2.8,
            (ALL_A, LOW): 2.6,
            (ALL_S, LOW): 2.95,
        },
    )
    verdict = verdict_of(answer)
    assert (verdict.word, verdict.reason) == ("undecided", DEPENDS)
    assert verdict.text == f"undecided ({DEPENDS})"
    assert not answer.recipe.margins[0].same_sign
    (row_,) = answer.verdict_rows()
    assert row_.verdict == verdict.text


def test__recipe__both_within_the_tolerance__may_be_cheap_though_the_sign_flips():
    answer = answer_of(
        swept(LOW, SHARED),
        {
            (ALL_A, SHARED): 3.0,
            (ALL_S, SHARED): 3.002,
            (ALL_A, LOW): 2.9995,
            (ALL_S, LOW): 2.998,
        },
        n=8,
    )
    assert verdict_of(answer).word == "may be cheap"


def test__recipe__rows_of_another_rate__are_in_no_other_number():
    plain = {(ALL_A, SHARED): 3.0, (ALL_S, SHARED): 2.8}
    readings = swept(SHARED, SHARED)
    one = answer_of(readings, plain)
    other = answer_of({key: v - 2 * (key[1] != SHARED) for key, v in readings.items()}, plain)
    assert one.leaders == other.leaders
    assert one.noise == other.noise
    assert one.counts == other.counts
    assert other.recipe.apart == ()


def test__recipe__stack_with_a_missing_rate__is_named_and_not_judged():
    readings = swept(SHARED, SHARED)
    del readings[ALL_S, HIGH]
    answer = answer_of(readings, {(ALL_A, SHARED): 3.0, (ALL_S, SHARED): 2.8})
    assert answer.recipe.not_swept == ("cheap",)
    assert [stack.best for stack in answer.recipe.stacks] == [SHARED, None]
    found = section(answer, None)
    assert "left rates untried for: cheap" in found.lines[-1]
    assert found.rows[1][-2:] == ("-", "-")
    assert "whether the compared stacks agree is not known" in found.lines[0]


def test__recipe__a_stack_diverges_at_every_rate__was_tried_and_agrees_with_nothing():
    readings = swept(SHARED, SHARED)
    answer = answer_of(
        {key: None if key[0] == ALL_S else value for key, value in readings.items()},
        {(ALL_A, SHARED): 3.0, (ALL_S, SHARED): 2.8},
    )
    assert answer.recipe.not_swept == ()
    assert "not known" in section(answer, None).lines[0]


def test__recipe__two_stacks_of_one_code__are_told_apart():
    learned = SweptRates("reference_learned_positions", "AAAA", ((SHARED, 3.0),), None, False)
    other = SweptRates("reference", "AAAA", ((SHARED, 3.1),), None, False)
    check = RecipeCheck(SHARED, (SHARED,), (learned, other), (), (), False, ())
    assert stack_name(learned, check) == "AAAA (reference learned positions)"
    assert stack_name(other, replace(check, stacks=(other,))) == "AAAA"


def test__recipe__better_of_two_rates_by_luck__is_seldom_called_better():
    # Rates of equal worth: the noisier stack gains most by the choice, the worst case.
    generator = np.random.default_rng(5)
    false, n_studies = 0, 300
    for _ in range(n_studies):
        rows = []
        for (layers, rate), value in swept(LOW, SHARED).items():
            fields = {"recipe": {} if rate == SHARED else {"learning_rate": rate}}
            fields["phase"] = "baseline" if rate == SHARED else "recipe"
            rows.append(row(len(rows), layers, value, **fields))
        for k in range(1, 5):
            for layers, sd in ((ALL_A, 0.0025), (ALL_S, 0.01)):
                for recipe in ({}, {"learning_rate": LOW}):
                    loss = 3.0 + sd * generator.standard_normal()
                    fields = {"phase": "confirm", "seed": k, "seed_index": k, "recipe": recipe}
                    rows.append(row(len(rows), layers, loss, **fields))
        asked, roles = question(sweep=SWEEP), {"pick": ALL_S, "reference": ALL_A}
        found = finalists_of(arms_of(at_shared_recipe(rows), asked), roles, asked)
        family = Family(layer_contrasts=16)
        contrasts = contrasts_of(found, asked, family)
        ((contrast,), _) = check_recipe(rows, found, contrasts, asked, family)
        false += contrast.verdict.word == "better"
    # One of three contrasts may take a third of 5 %.
    assert stats.binomtest(false, n_studies, 0.05 / 3, alternative="greater").pvalue > 0.01

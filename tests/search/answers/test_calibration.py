"""Replays of whole studies whose truth is known: what the verdicts may and must say."""

import numpy as np
import pytest
from scipy import stats
from simulated import ATTENTION, Simulation, question

from benchmarks.calibration import calibrate, judged
from benchmarks.worlds import WORLDS, Sample
from search.answers.answer import answer_study
from search.spec.study import StudySpec

BUDGET = 36
STUDIES = 20
REQUIRED = 18


def answers(mean, *, sd, asked=None):
    return [
        Simulation(mean, lambda layers: sd, asked=asked, seed=seed).run(BUDGET)
        for seed in range(STUDIES)
    ]


def all_words(answer):
    return {contrast.verdict.word for contrast in answer.contrasts} | {
        effect.word for effect in answer.layers
    }


@pytest.mark.parametrize("tolerances", [0.1, 1.0])
def test__verdicts__null_space__neither_better_nor_keep_attention(tolerances):
    asked = question()
    found = answers(lambda layers: 3.0, sd=tolerances * asked.tolerance)
    silent = [answer for answer in found if not all_words(answer) & {"better", "keep attention"}]
    assert len(silent) >= REQUIRED
    assert sum(answer.hybrid_beats_all == "yes" for answer in found) <= STUDIES - REQUIRED


@pytest.mark.parametrize("tolerances", [0.1, 0.25, 0.5])
@pytest.mark.parametrize(
    ("planted", "word"), [(-5.0, "better"), (5.0, "keep attention")], ids=["helps", "hurts"]
)
def test__verdicts__planted_five_tolerances__the_right_word(planted, word, tolerances):
    asked = question()

    def mean(layers):
        is_cheap = any(mixer != ATTENTION for mixer in layers)
        return 3.0 + planted * asked.tolerance * is_cheap + 0.2 * (4 - len(layers))

    found = answers(mean, sd=tolerances * asked.tolerance)
    first = [answer.contrasts[0] for answer in found]
    assert all(contrast.against == "reference" for contrast in first)
    assert sum(contrast.verdict.word == word for contrast in first) >= REQUIRED


def test__verdicts__planted_for_a_metric_to_maximize__the_right_word():
    asked = question(direction="maximize", tolerance=0.02)

    def mean(layers):
        return 0.5 + 0.1 * any(mixer != ATTENTION for mixer in layers) - 0.2 * (4 - len(layers))

    found = answers(mean, sd=0.005, asked=asked)
    assert sum(answer.contrasts[0].verdict.word == "better" for answer in found) >= REQUIRED


def test__answer_study__real_spec__same_verdicts_as_from_its_facts():
    simulation = Simulation(lambda layers: 3.0 - 0.1 * (layers[0] != ATTENTION), lambda _: 0.005)
    answer = simulation.run(24)
    from_spec = answer_study(simulation.rows, StudySpec())
    assert from_spec.contrasts == answer.contrasts
    assert from_spec.question == answer.question
    assert "reference_learned_positions" in from_spec.reach.untested


REPLAYS = 60
CHANCE = 0.001  # of a red test where the criterion just holds


@pytest.mark.parametrize(
    ("world", "trials"),
    [("null", 36), ("border", 24), ("unequal null", 24), ("interaction", 24)],
)
def test__studies_of_known_truth__false_verdicts_and_cover__keep_what_is_promised(world, trials):
    found = calibrate(WORLDS[world], "random", trials, REPLAYS)
    assert found["false_studies"] <= stats.binom.ppf(1 - CHANCE, REPLAYS, 0.05)
    assert found["intervals"] >= REPLAYS
    least, most = stats.binom.ppf([CHANCE, 1 - CHANCE], found["intervals"], [0.93, 0.97])
    assert least <= found["covered"] <= most


def test__studies_of_known_truth__a_large_effect__is_found_with_two_dozen_trials():
    found = calibrate(WORLDS["count"], "random", 24, REPLAYS)
    assert found["first_right"] >= 0.9 * found["first"]
    assert found["first_best_word"] >= 0.9 * found["first"]


def test__calibrate__same_seeds__same_counts():
    first, second = (calibrate(WORLDS["kinds"], "tpe", 24, 3) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("against", "truth", "right", "wrong"),
    [
        ("reference", -0.01, {"better", "may be cheap"}, {"keep attention"}),
        ("reference", 0.0, {"may be cheap"}, {"better", "keep attention"}),
        ("reference", 0.02, {"may be cheap"}, {"better", "keep attention"}),
        ("reference", 0.021, {"keep attention"}, {"better", "may be cheap"}),
        ("shorter", 0.01, {"shorter is better", "may be shorter"}, {"keep depth"}),
        ("shorter", -0.021, {"keep depth"}, {"shorter is better", "may be shorter"}),
        ("rival", 0.0, {"no difference"}, {"better", "worse"}),
        ("rival", 0.03, {"worse"}, {"better", "no difference"}),
    ],
)
def test__judged__true_difference__which_words_are_right_of_it(against, truth, right, wrong):
    assert all(judged(against, word, truth, 0.02) is True for word in right)
    assert all(judged(against, word, truth, 0.02) is False for word in wrong)
    assert judged(against, "undecided", truth, 0.02) is None


def test__sample__two_readings_of_one_stack__share_documents_not_noise():
    sample = Sample(WORLDS["null"], 3)
    first, second = (sample.read(("sepconv",) * 4, seed) for seed in (1, 2))
    loss, documents = first["test"]
    assert loss == pytest.approx(sum(documents.sums) / sum(documents.n))
    assert documents.n == second["test"][1].n != first["selection"][1].n
    by_document = [np.divide(read["test"][1].sums, documents.n) for read in (first, second)]
    assert np.corrcoef(*by_document)[0, 1] > 0.9
    assert loss != second["test"][0]

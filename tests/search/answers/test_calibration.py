"""Replays of whole studies whose truth is known: what the verdicts may and must say."""

import pytest
from simulated import ATTENTION, Simulation, question

from search.answers.answer import answer_study
from search.study import StudySpec

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

"""Words of an answer: names of mixers stay as they are typed."""

import pytest
from own_study import own_study
from simulated import Simulation, question

from mixers.notation import parse_architecture
from search.report.paragraph import summary
from search.spec.baselines import baselines
from search.wording import role_words

CHOICES = ("attention(rotary=true)", "hardmax_shift", "sparse_attention(width=4)", "sepconv")


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("", ""),
        ("reference", "reference"),
        ("first_half_cheap", "first half cheap"),
        ("reference_learned_positions", "reference learned positions"),
        ("uniform:hardmax_shift", "uniform hardmax_shift"),
        ("uniform:acme_mixers.wide_shift(d_in=3)", "uniform acme_mixers.wide_shift(d_in=3)"),
    ],
)
def test__role_words__role__in_words_but_the_mixer_as_typed(role, words):
    assert role_words(role) == words


def test__role_words__every_baseline__ends_in_notation_that_can_be_typed():
    configs = [parse_architecture(text)[0].model_dump() for text in CHOICES]
    study = own_study(choices=[config["kind"] for config in configs])
    study = study.model_validate(study.model_dump() | {"space": {"choices": configs}})
    uniform = {b.role: b.mixers for b in baselines(study) if b.role.startswith("uniform:")}
    assert len(uniform) == 2
    for role, mixers in uniform.items():
        word, notation = role_words(role).split(" ", 1)
        assert word == "uniform"
        assert study.fitted(parse_architecture(notation)[0])[0] == mixers[0]


@pytest.mark.parametrize("winner", ["sparse_attention", "hardmax_shift"])
def test__summary__pure_pick__its_mixers_as_typed(winner):
    asked = question(reference="sparse_attention")
    simulation = Simulation(
        lambda layers: 3.0 - 0.1 * layers.count(winner),
        lambda _: 0.01,
        asked=asked,
        mixers=("sparse_attention", "hardmax_shift"),
    )
    said = summary(simulation.run(20))
    assert f": {winner} in all its 4 layers" in said
    assert ("no sparse_attention at all" in said) == (winner == "hardmax_shift")

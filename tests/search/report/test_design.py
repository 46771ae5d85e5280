import json
import re
from itertools import product

import numpy as np
import pytest
from simulated import ATTENTION, listed_baselines, question, row

from mixers.notation import parse_architecture
from search.answers.anova import FTest
from search.answers.answer import make_answer
from search.report import design
from search.report.about import About
from search.report.markdown import render_markdown
from search.report.paragraph import paragraph
from search.report.text import render
from search.strategies.screen_plan import NOTE, screening_of

A, S = ATTENTION, "sepconv"


def answer_of(mean, *, n_layers=4, n=None, sd=0.003, extra=(), fresh=()):
    """The answer of a study that ran its design, by the mean of each run."""
    generator = np.random.default_rng(0)
    screening = screening_of([(A, S)] * n_layers, A, S, {})
    rows = []
    for run in screening.design.runs[:n]:
        value = mean(run) + sd * generator.standard_normal()
        attrs = {NOTE: {**screening.note(), "run": 0, "runs": 0}}
        labels = screening.labels(run)
        rows.append(row(len(rows), labels, value, phase="screen", sampler_attrs=attrs))
    rows += [row(len(rows) + k, labels, value) for k, (labels, value) in enumerate(extra)]
    for index, (labels, value) in enumerate(fresh, start=1):
        rows.append(row(len(rows), labels, value, phase="confirm", seed=index, seed_index=index))
    best = min(rows, key=lambda r: r.selection["loss"]).mixers
    chosen = {"pick": best, "reference": (A,) * n_layers}
    asked = question(n_layers=n_layers)
    baselines = listed_baselines(n_layers)
    return make_answer(rows, asked, chosen, mixers=(A, S, "bproj"), baselines=baselines)


def count_alone(run):
    return 3.0 - 0.05 * min(2, sum(run))


def together(run):
    return 3.0 - 0.1 * (run[0] != run[1]) - 0.01 * run[2]


@pytest.mark.parametrize("n_layers", [2, 4, 12, 48])
def test__render__study_with_a_design__fits_a_terminal(n_layers):
    lines = render(answer_of(count_alone, n_layers=n_layers), About("s")).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100


def test__render__design__count_comes_first_then_position_then_layers():
    text = " ".join(render(answer_of(count_alone), About("s")).split())
    places = [
        text.index(part)
        for part in (
            "by number of layers with sepconv: 0: 3.0",
            "the number: F(4, 11) = ",
            "p < 0.001: matters",
            "their place, given the number: F(3, 8) = ",
            "averaged over a full factorial of 16 stacks",
            "layer 0: -0.0",
        )
    ]
    assert places == sorted(places)
    assert "a sampler chose" not in text


def test__render_markdown__layers_that_act_together__both_readings_are_printed():
    found = answer_of(together)
    text = render_markdown(found, About("s")).partition("### By layer")[2]
    for layer in found.design.layers:
        line = next(line for line in text.splitlines() if line.startswith(f"| {layer.layer} | "))
        for interval in (layer.average, layer.in_stack):
            assert f"{interval.estimate:+.3f} [{interval.low:+.3f}" in line
    assert found.design.stack in text


def test__render_markdown__another_mixer_was_tried_too__its_pairs_are_told_as_exploration():
    found = answer_of(count_alone, extra=[(("bproj", A, A, A), 2.9)])
    text = render_markdown(found, About("s"))
    assert re.search(r"### Other mixers(.|\n)*\| 0 \| bproj \| 1 \|", text)
    assert "a sampler chose these runs" in text
    assert "### Other mixers" not in render_markdown(answer_of(count_alone), About("s"))


def test__render__incomplete_design__says_so():
    found = answer_of(count_alone, n=9)
    text = " ".join(render(found, About("s")).split())
    assert "a full factorial, incomplete: 9 of 16 stacks" in text
    assert "undecided (the design is incomplete)" in text


@pytest.mark.parametrize("sd", [0.0, 0.003, 1.0])
def test__render__any_noise__has_no_interval_of_zero_width(sd):
    for text in (
        render(answer_of(count_alone, sd=sd), About("s")),
        render_markdown(answer_of(count_alone, sd=sd), About("s")),
    ):
        assert "+-0" not in text
        for low, high in re.findall(r"\[([-+][\d.]+), ([-+][\d.]+)\]", text):
            assert float(low) < float(high)


@pytest.mark.parametrize(
    ("mean", "sd", "said"),
    [
        (count_alone, 0.003, "Given their number, it does not matter which layers have sepconv"),
        (lambda run: 3.0 - 0.05 * run[0], 0.003, "it matters which layers have sepconv (F(3, 8)"),
        (count_alone, 0.5, "Whether it matters which layers have sepconv"),
    ],
)
def test__paragraph__design__says_whether_the_place_matters(mean, sd, said):
    assert said in paragraph(answer_of(mean, sd=sd))


def test__to_dict__design__is_plain():
    wide, narrow = (3.1, 2.9, 3.05, 2.95), (3.0, 3.001, 2.999, 3.002)
    repeats = [((mixer,) * 4, value) for mixer, two in ((A, wide), (S, narrow)) for value in two]
    answer = answer_of(count_alone, fresh=repeats)
    assert not answer.design.error.agrees
    document = json.loads(json.dumps(answer.to_dict(), allow_nan=False))["design"]
    assert document["kind"] == "full factorial"
    assert [count["n_cheap"] for count in document["counts"]] == [0, 1, 2, 3, 4]
    assert set(document["count_test"]) == {"f", "df1", "df2", "p_value"}
    own = document["error"]["own"]
    assert f"{A}*4" in own
    assert all(len(parse_architecture(notation)) == 4 for notation in own)


def test__render__listed_table_of_two_seeds__names_its_error():
    generator = np.random.default_rng(2)
    rows = [
        row(k, layers, 3.0 + 0.01 * generator.standard_normal(), phase="confirm", seed_index=seed)
        for k, (seed, layers) in enumerate(product((1, 2), product((A, S), repeat=4)))
    ]
    asked = question(is_listed=True, space_size=16)
    found = make_answer(rows, asked, {}, mixers=(A, S), baselines={})
    text = render_markdown(found, About("s"))
    assert "a full factorial of 16 stacks x 2 seeds" in text
    assert "error: seeds, 15 degrees of freedom" in text


def test__test_text__decided_on_few_degrees_of_freedom__says_so():
    assert design.test_text(FTest(288.0, 1, 1, 0.037)) == (
        "F(1, 1) = 288, p = 0.037 (fewer than 6 degrees of freedom): "
    )
    assert design.test_text(FTest(1.2, 1, 1, 0.47)) == "F(1, 1) = 1.2, p = 0.47: "
    assert design.test_text(FTest(288.0, 1, 6, 0.0001)) == "F(1, 6) = 288, p < 0.001: "

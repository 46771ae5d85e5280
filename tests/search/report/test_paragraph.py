import math
import re
from dataclasses import replace
from functools import cache

import pytest
from simulated import ATTENTION, Simulation, question, row

from search.answers.answer import make_answer
from search.answers.recipe import Margin, RecipeCheck, SweptRates
from search.report.paragraph import paragraph, summary
from search.rows import Latency
from search.spec.budget import duration_words
from search.spec.measures import COSTS, Measure
from search.strategies.screen_plan import NOTE, screening_of

A, S = ATTENTION, "sepconv"
OWN = {"unit": "", "task": "own objective f", "steps": None, "recipe": "", "size": "4 layers"}

SEVERAL = {"measures": (Measure("loss", "nats", "minimize", "metric"), COSTS["latency"])}


def cheap_wins(layers):
    return 2.75 + 0.3 * 0.5 ** layers.count(S) + 0.1 * (4 - len(layers))


def attention_wins(layers):
    return 2.75 - 0.08 * layers.count(A) + 0.1 * (4 - len(layers))


def all_alike(layers):
    return 2.5 + 0.1 * (4 - len(layers))


def hybrid_wins(layers):
    return 2.5 + 0.2 * (layers != (S, S, S, A)) + 0.1 * (4 - len(layers))


def shorter_wins(layers):
    return 2.5 - 0.1 * (4 - len(layers))


def score(layers):
    return 0.3 + 0.02 * layers.count(S) - 0.05 * (4 - len(layers))


WORLDS = {
    "no trial": (cheap_wins, 0.005, 0, {}),
    "one trial": (cheap_wins, 0.005, 1, {}),
    "too few": (cheap_wins, 0.005, 3, {}),
    "one repeat": (cheap_wins, 0.005, 6, {}),
    "cheap wins": (cheap_wins, 0.005, 60, {}),
    "noisy": (cheap_wins, 0.6, 24, {}),
    "identical repeats": (cheap_wins, 0.0, 24, {}),
    "attention wins": (attention_wins, 0.005, 60, {}),
    "all alike": (all_alike, 0.003, 80, {}),
    "hybrid": (hybrid_wins, 0.003, 80, {}),
    "shorter": (shorter_wins, 0.003, 60, {}),
    "score": (
        score,
        0.002,
        60,
        {"objective": "score", "direction": "maximize", "unit": "", "metrics": ()},
    ),
    "several objectives": (attention_wins, 0.005, 60, SEVERAL),
    "several, too few": (attention_wins, 0.005, 6, SEVERAL),
    "own": (cheap_wins, 0.005, 24, OWN),
    "two layers": (cheap_wins, 0.005, 24, {"n_layers": 2}),
}


@cache
def answer_in(world):
    mean, sd, budget, changes = WORLDS[world]
    simulation = Simulation(mean, lambda layers: sd, asked=question(**changes), seed=1)
    if world == "hybrid":
        simulation.train((S, S, S, A), phase="search")
    return simulation.run(budget) if budget else simulation.answer()


def numbers_of(value):
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers_of(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers_of(item)]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return [float(value)] if is_number and math.isfinite(value) else []


@pytest.mark.parametrize("say", [paragraph, summary])
@pytest.mark.parametrize("world", WORLDS)
def test__paragraph__every_number__is_one_of_the_answer_rounded(world, say):
    answer = answer_in(world)
    text = say(answer)
    for given in (answer.question.task, answer.question.size):
        text = text.replace(given, "")
    known = numbers_of(answer.to_dict())
    spans = {duration_words(number) for number in known if number >= 1}
    for said in re.findall(r"about ([^,)]+)[,)]", text):
        assert said in spans
        text = text.replace(f"about {said}", "")
    counts = {len(answer.reach.untested) - 2, len(answer.reach.failed) - 2}  # "a, b and n more"
    for printed in re.findall(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", text):
        digits = len(printed.partition(".")[2])
        half = 0.5 * 10.0**-digits * (1 + 1e-9)
        value = abs(float(printed))
        close = any(abs(value - abs(number)) <= half for number in known)
        assert close or value in counts, f"{printed} in: {text}"


@pytest.mark.parametrize("say", [paragraph, summary])
@pytest.mark.parametrize("world", WORLDS)
def test__paragraph__any_state__whole_sentences_without_gaps(world, say):
    text = say(answer_in(world))
    assert text[0].isupper()
    assert text.endswith(".")
    assert not re.search(r"None|nan|\(\)|  | [.,;:)]|\.\.|[(] |:[.]|; ;| 1 \w+s\b", text), text
    for sentence in re.split(r"(?<=[.]) (?=[A-Z])", text):
        assert re.match(r"[A-Z0-9]", sentence)
        assert sentence.count("(") == sentence.count(")")


@pytest.mark.parametrize(
    ("world", "says"),
    [
        ("no trial", "no trial has run yet, so there is no answer."),
        ("one trial", "the only stack with a result so far is"),
        ("one trial", "undecided: there is nothing to hold it against."),
        ("one repeat", r"undecided: SSSS minus AAAA is -0\.\d+ nats in loss on test, against"),
        ("cheap wins", r"the best stack found is SSSS: sepconv in all its 4 layers, no attention"),
        ("cheap wins", r"All 4 layers may do without attention, and the stack is better for it: "),
        ("cheap wins", r"The depth is needed: the shorter model SS is worse \(SSSS minus SS is -"),
        ("cheap wins", r"all-attention has 2\.00 times the parameters and 2\.00 times the FLOPs"),
        ("cheap wins", r"takes, as measured on cpu, 2\.00 times as long for a training step"),
        ("noisy", r"undecided: .* against a tolerance of 0\.02 \(\d+ more runs, about \d+ "),
        ("identical repeats", r"undecided: .*\(repeats are identical: does the objective use"),
        ("attention wins", "the best stack found is AAAA: attention in all its 4 layers."),
        ("attention wins", r"Keep attention: \w+, without it in \d of 4 layers, loses more than"),
        ("all alike", r"may do without attention, within the tolerance of 0\.02 nats: "),
        (
            "all alike",
            r"whether the first or the last layers do without attention \(SSAA minus",
        ),
        ("hybrid", r"the best stack found is SSSA: attention in 1 of its 4 layers\."),
        ("hybrid", r"3 of 4 layers may do without attention, and the stack is better for it: "),
        ("shorter", r"However, the shorter model \w+ is better \("),
        ("score", r"is \+0\.\d+ \[\+0\.\d+, \+0\.\d+\] in score on test"),
        ("several objectives", r"Weighing loss and latency, nothing else (may )?beats? AAAA"),
        ("own", r"For the objective f \(4 layers\), the best"),
        ("own", "all of this holds for this objective only."),
    ],
)
def test__paragraph__state__says_what_it_is(world, says):
    assert re.search(says, paragraph(answer_in(world)))


@pytest.mark.parametrize("world", WORLDS)
def test__summary__fits_three_lines(world):
    assert len(summary(answer_in(world))) <= 3 * 87


def test__paragraph__only_failures__names_the_first_and_that_others_wait():
    simulation = Simulation(cheap_wins, lambda layers: 0.0)
    failed = row(0, (A,) * 4, state="failed", error="ValueError: no such file.")
    simulation.rows = [failed]
    assert (
        "the one trial has not ended with a result, so there is no answer; the first failure was: "
        "ValueError: no such file." in paragraph(simulation.answer())
    )
    simulation.rows = [failed, row(1, (S,) * 4, state="running")]
    assert "none of 2 trials has ended with a result yet, so" in paragraph(simulation.answer())


def test__paragraph__attention_diverged__says_so_where_the_verdict_would_stand():
    simulation = Simulation(cheap_wins, lambda layers: 0.0)
    layers = simulation.baselines["reference"]
    simulation.rows = [
        row(0, layers, state="diverged", phase="baseline"),
        row(1, (S,) * 4, 3.0, phase="baseline"),
    ]
    said = paragraph(simulation.answer())
    assert "is undecided: no run of all-attention ended with a result." in said


def timed(simulation, seconds_of):
    """The rows with passes timed on one machine, a hundredth apart."""
    simulation.rows = [
        replace(
            trial,
            latency=Latency(
                median=(seconds := seconds_of(trial) * (1 + 0.01 * (trial.number % 3))),
                low=0.99 * seconds,
                high=1.01 * seconds,
                n=50,
                batch_size=32,
                seq_len=64,
                device="cpu",
                dtype="float32",
            ),
        )
        for trial in simulation.rows
    ]
    return simulation.answer()


@pytest.mark.parametrize(
    ("attention_s", "says"),
    [
        (
            2.0,
            r"in a forward pass is real: SSSS is (1\.9|2\.0)\d+ \[1\.9\d+, 2\.0\d+\] times as fast",
        ),
        (
            0.5,
            r"is not real: SSSS is 0\.\d+ \[.*\] times .* \(it is not faster than all-attention\)",
        ),
        (
            1.0,
            r"is real is undecided: SSSS is 1\.0\d* \[.* \(whether it is faster than all-attention",
        ),
    ],
)
def test__paragraph__timed_passes__says_whether_the_speed_up_is_real(attention_s, says):
    simulation = Simulation(cheap_wins, lambda layers: 0.005, seed=1)
    simulation.run(60)
    per_layer = {A: attention_s, S: 1.0}
    answer = timed(
        simulation, lambda trial: 1e-3 * sum(per_layer.get(mixer, 1.0) for mixer in trial.mixers)
    )
    text = paragraph(answer)
    assert re.search(says, text)
    assert "as long for a forward pass" not in text


def test__paragraph__cheap_stack_slower__says_beware():
    simulation = Simulation(cheap_wins, lambda layers: 0.005, seed=1)
    simulation.run(24)
    assert "not faster" not in paragraph(simulation.answer())
    simulation.rows = [
        replace(trial, latency_s=0.01 if A in trial.mixers else 0.02) for trial in simulation.rows
    ]
    assert "the cheaper stack was not faster than all-attention as measured" in paragraph(
        simulation.answer()
    )


def test__paragraph__listed_study__every_stack_under_its_verdict():
    asked = question(is_listed=True)
    stacks = {(A,) * 4: 3.0, (S, A, A, A): 2.9, (S,) * 4: 3.3, (S, S, A, A): 2.9}
    rows = [
        replace(
            row(8 * index + seed, stack, mean + 0.002 * (seed % 3), phase="confirm", seed=seed),
            selection={"loss": mean},
        )
        for index, (stack, mean) in enumerate(stacks.items())
        for seed in range(1, 7)
    ]
    chosen = {"pick": (S, A, A, A), "reference": (A,) * 4}
    text = paragraph(make_answer(rows, asked, chosen, mixers=(A, S), baselines={}))
    assert "of the listed stacks the best on the selection split is SAAA" in text
    assert "against all-attention, better: SAAA and SSAA; keep attention: SSSS." in text


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, ""),
        ({"same_sign": False}, "who is ahead of all-attention depends on the learning rate"),
        ({"at_edge": True}, "better learning rates may lie beyond those tried for SSSS"),
        ({"not_swept": ("uniform:bproj",)}, "not all learning rates were tried for uniform bproj"),
    ],
)
def test__paragraph__swept_recipe__warns_of_what_it_leaves_open(changes, says):
    answer = answer_in("cheap wins")
    interval = answer.contrasts[0].interval
    check = RecipeCheck(
        shared=0.01,
        rates=(0.005, 0.01, 0.02),
        stacks=(
            SweptRates(
                "cheap", "SSSS", ((0.005, 3.0), (0.01, 2.9)), 0.01, changes.get("at_edge", False)
            ),
        ),
        not_swept=changes.get("not_swept", ()),
        apart=(0.02,),
        is_known=True,
        margins=(
            Margin(
                "reference",
                "SSSS",
                "AAAA",
                0.01,
                0.02,
                interval,
                interval,
                changes.get("same_sign", True),
            ),
        ),
    )
    text = paragraph(replace(answer, recipe=check))
    assert "one training recipe" not in text
    warnings = text.split("Beware: ")[1]
    assert warnings.startswith(f"{says}; " if says else "all of this holds")


def screened(seed=0):
    simulation = Simulation(cheap_wins, lambda layers: 0.003, seed=seed)
    plan = screening_of([(A, S)] * 4, A, S, {})
    for index, run in enumerate(plan.design.runs):
        attrs = {NOTE: {**plan.note(), "run": index, "runs": 0}}
        simulation.train(plan.labels(run), phase="screen", sampler_attrs=attrs)
    return simulation.run(24)


def test__paragraph__design__says_what_its_test_says_of_the_place():
    answer = screened()
    test = answer.design.position_test
    text = paragraph(answer)
    assert f"F({test.df1}, {test.df2}) = {test.f:.3g}, p = {test.p_value:.2g}" in text
    assert "Given their number, " in text or "given their number, is undecided" in text


@pytest.mark.parametrize(
    ("world", "says"),
    [
        ("cheap wins", r"\w+, with attention in every layer, too, is better than the reference: "),
        ("all alike", r"with attention in every layer, too, is as good as the reference, within"),
        (
            "noisy",
            r"Whether \w+, with attention in every layer, too, does as well as the ref",
        ),
    ],
)
def test__paragraph__pick_is_another_attention__speaks_of_no_layer_without(world, says):
    answer = answer_in(world)
    leaders = tuple(replace(one, n_cheap=0) for one in answer.leaders)
    text = paragraph(replace(answer, leaders=leaders))
    assert re.search(says, text), text
    assert "may do without attention" not in text

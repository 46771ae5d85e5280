from dataclasses import replace

from simulated import Simulation, question

from search.answers.bounds import Bounds, bounds_of
from search.answers.speedup import Ratio, SpeedUp
from search.report import limits, speedup
from search.report.about import About
from search.report.sections import Room
from search.report.text import render
from search.spec.limits import Limit
from search.spec.measures import COSTS, Measure

ROOM = Room(5, 4, 3)
ANSWER = Simulation(lambda layers: 3.0, lambda layers: 0.01).run(9)
MEASURED = Ratio(1.3164, 1.2523, 1.3814, 5, 4)
FOUND = SpeedUp(
    real="no",
    because=("SS, with fewer layers, is at least as fast and not worse",),
    candidate="SSSA",
    measured=MEASURED,
    counted=1.41,
    shorter="SS",
    shorter_measured=Ratio(1.8, None, None, 1, 5, "too few runs"),
    conditions=("cpu", "float32", 32, 64),
)


def test__speed_up_section__page__word_ratios_and_conditions():
    section = speedup.section(replace(ANSWER, speed_up=FOUND), None)
    assert section.lines == (
        "real? no (SS, with fewer layers, is at least as fast and not worse): SSSA is 1.32 "
        "[1.25, 1.38] times as fast as all-attention; by FLOPs 1.41, a guide",
        "SS, with fewer layers, is 1.80 times as fast as SSSA",
        "forward pass, 9 runs: cpu, float32, batch 32 of 64 tokens",
    )


def test__speed_up_section__terminal_or_nothing_measured__one_line_or_none():
    assert speedup.section(replace(ANSWER, speed_up=FOUND), ROOM).lines == (
        "SSSA is 1.32 [1.25, 1.38] times as fast as all-attention; by FLOPs 1.41, a guide; "
        "real? no (SS, with fewer layers, is at least as fast and not worse)",
    )
    assert not speedup.section(replace(ANSWER, speed_up=None), None).lines
    close = replace(FOUND, measured=Ratio(1.003, 1.0012, 1.0049, 5, 5))
    text = speedup.section(replace(ANSWER, speed_up=close), None).lines[0]
    assert "1.003 [1.001, 1.005]" in text


def test__limits_section__bounds__in_their_units_with_what_keeps_them():
    bounds = Bounds(
        limits=(
            Limit("max_params", COSTS["params"], 200_000),
            Limit("max_latency", COSTS["latency"], 0.005),
            Limit("max_loss", Measure("loss", "nats", "minimize", "metric"), 2.9),
        ),
        n_within=3,
        n_over=2,
        reference_is_within=False,
    )
    lines = limits.section(replace(ANSWER, bounds=bounds), None).lines
    assert lines[0] == (
        "max_params 200 k, max_latency 5 ms, max_loss 2.9 nats: 3 of 5 trained stacks keep them"
    )
    assert lines[1].startswith("all-attention is over a limit")
    [brief] = limits.section(replace(ANSWER, bounds=bounds), ROOM).lines
    assert brief == f"{lines[0]}; all-attention is over a limit"
    none = replace(bounds, n_within=0, n_over=5)
    assert "no pick" in limits.section(replace(ANSWER, bounds=none), None).lines[1]
    assert not limits.section(ANSWER, None).lines


def test__bounds_of__simulated_study__counts_by_the_median_of_the_runs():
    limit = Limit("max_flops", COSTS["flops"], 5e7)
    made = Simulation(lambda layers: 3.0, lambda layers: 0.01)
    answer = made.run(24)
    asked = replace(answer.question, limits=(limit,))
    from search.answers.arms import arms_of

    arms = arms_of(made.rows, asked)
    small = [arm for arm in arms if arm.rows[0].flops <= 5e7]
    reference = next(arm for arm in arms if arm.arch_id == answer.reference)
    found = bounds_of(arms, reference, asked)
    assert (found.n_within, found.n_over) == (len(small), len(arms) - len(small))
    assert 0 < len(small) < len(arms)
    assert found.reference_is_within is False


def test__render__several_objectives_on_a_full_terminal__the_front_stays():
    measures = (Measure("loss", "nats", "minimize", "metric"), COSTS["flops"])
    made = Simulation(lambda layers: 3.0, lambda layers: 0.01, asked=question(measures=measures))
    answer = replace(made.run(60), speed_up=FOUND)
    text = render(answer, About("demo"))
    assert "\nFront        loss, FLOPs: " in text
    assert len(text.splitlines()) <= 40

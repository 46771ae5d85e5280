import math
import statistics

import pytest
from own_study import own_study
from scipy import stats

from search.errors import InputError
from search.planning.plan import make_plan, plan_study, repeat_sd, smallest_effect
from search.planning.plan_words import plan_lines
from search.planning.stack_costs import StackCost, extremes
from search.rows import TrialRow
from search.spec.budget import Budget
from search.spec.study_file import study_from

DEAR = StackCost("attention*4", 4000, step_s=0.2, trial_s=60.0, peak_memory_bytes=9)
CHEAP = StackCost("average*4", 1000, step_s=0.1, trial_s=20.0, peak_memory_bytes=5)


def study(**changes):
    document = {"training": {"steps": 10, "batch_size": 5, "validations": 1}, "tolerance": 0.02}
    return study_from(document | changes)


def plan(budget, rows=(), busy_s=0.0, **changes):
    spec, amount = study(**changes), Budget.parse(budget)
    return make_plan(spec, amount, DEAR, CHEAP, name="s", rows=rows, busy_s=busy_s)


def row(number, value, *, mixers=("a",), state="completed", flops=None, reused_from=None):
    return TrialRow(
        id=number,
        study="s",
        number=number,
        phase="search",
        state=state,
        mixers=mixers,
        selection={"loss": value},
        flops=flops,
        reused_from=reused_from,
    )


def test__plan__budget_of_trials__counts_phases_hours_and_what_is_left_out():
    found = plan(24)
    assert found.trials == (24, 24)
    assert found.seconds == (24 * 20.0, 24 * 60.0)
    assert dict(found.phases) == {"baseline": 8, "search": 8, "confirm": 8}
    assert found.left_out == ("uniform:hardmax_shift", "reference_learned_positions")
    assert found.speed_ratio_flops == 4
    assert found.speed_ratio_measured == 2
    assert found.memory_bytes == 9


def test__plan__rungs__count_the_steps_of_the_search_that_are_made():
    rungs = {"rungs": [2, 5], "reduction": 3}
    # 8 trials of the search: 8 to step 2, 2 to step 5, 1 to the end.
    whole = 16 + (8 * 2 + 2 * 3 + 1 * 5) / 10
    assert plan(24, **rungs).seconds == pytest.approx((whole * 20, whole * 60))
    assert plan("374s", **rungs).trials[1] == 24
    assert plan("373s", **rungs).trials[1] == 23
    [line] = [line for line in plan_lines(plan(24, **rungs), study(**rungs)) if "rungs" in line]
    assert line == (
        "rungs: of 8 trials of the search about 2 past step 2, about 1 past step 5; "
        "together they cost as much as 2.7 whole trainings"
    )


def test__plan__trials_that_are_there__are_taken_off():
    rows = [row(n, 1.0) for n in range(20)]
    found = plan(24, rows)
    assert (found.done, found.trials) == (20, (4, 4))
    assert sum(found.phases.values()) == 24
    assert plan(10, rows).trials == (0, 0)


def test__plan__time_and_flops__give_a_range_of_trials():
    found = plan("10m", busy_s=120.0)
    assert found.trials == (8, 24)
    assert found.seconds == (480.0, 480.0)
    per_trial = 3 * 10 * 5
    rows = [row(0, 1.0, flops=4000), row(1, 1.0, flops=4000, reused_from=7)]
    found = plan(f"{per_trial * 12000}flop", rows)
    assert found.trials == (2, 8)
    assert found.seconds == (120.0, 160.0)


def test__plan__no_repeats_yet__assumes_noise_of_the_tolerance_and_says_so():
    found = plan(24)
    assert (found.sigma, found.degrees) == (0.02, 0)
    assert found.repeats == 4
    half = stats.t.ppf(1 - 0.02 / 3, 6) + stats.t.ppf(0.8, 6)
    assert found.smallest_effect == pytest.approx(half * 0.02 * math.sqrt(2 / 4))
    assert found.repeats_for_tolerance == 24


def test__plan__repeats_stored__are_pooled():
    values = {("a",): [1.0, 1.2, 1.1], ("b",): [2.0, 2.1], ("c",): [5.0]}
    stored = [row(0, v, mixers=m) for m, vs in values.items() for v in vs]
    stored.append(row(9, 99.0, mixers=("a",), state="diverged"))
    pooled = math.sqrt(
        (2 * statistics.variance(values["a",]) + statistics.variance(values["b",])) / 3
    )
    assert repeat_sd(stored, "loss") == (pytest.approx(pooled), 3)
    assert repeat_sd(stored[3:], "loss") == (0.0, 0)
    found = plan(24, stored)
    assert (found.sigma, found.degrees) == (pytest.approx(pooled), 3)


def test__smallest_effect__too_few_repeats__is_none():
    assert smallest_effect(0.1, 1) is None
    assert smallest_effect(0.1, 0) is None
    assert plan(9).smallest_effect is None


def test__extremes__default_space__are_its_dearest_and_cheapest_stacks():
    from mixers.cost import count_flops
    from search.spec.space import Space

    spec = study()
    dear, cheap = (count_flops(spec.encoder_spec(mixers)) for mixers in extremes(spec))
    space = Space.of(spec)
    every = [count_flops(spec.encoder_spec(space.mixers(labels))) for labels in space]
    assert (dear, cheap) == (max(every), min(every))


def test__plan_study__own_function__cannot_be_planned():
    with pytest.raises(InputError, match="cannot be timed"):
        plan_study(own_study(), Budget.parse(3))


def test__plan_lines__a_plan__states_assumptions_and_what_can_be_proved():
    from search.planning.plan_words import plan_lines

    text = "\n".join(plan_lines(plan(24), study()))
    for part in (
        "buys 24 new trials in 8 min to 24 min: 8 baseline, 8 search, 8 confirm",
        "4.00 by FLOPs (a guide), 2.00 as measured",
        "route: every token sees every other in 624 of 625 architectures, after 1 to 4 layers; "
        "in sepconv*4 0.29% of the pairs of tokens never see each other, the nearest of them 61",
        "baselines left out: uniform hardmax_shift, reference learned positions",
        "noise of repeats 0.02 nats, assumed equal to the tolerance",
        "4 repeats a side can prove a difference of 0.062 nats or more",
        "tolerance (0.02 nats) needs 24 repeats a side",
        "nothing was started",
    ):
        assert part in text
    assert "every verdict will be undecided" in "\n".join(plan_lines(plan(5), study()))


def test__plan_lines__earlier_trials_and_a_small_space__say_so():
    from search.planning.plan_words import plan_lines

    later = "\n".join(plan_lines(plan(24, [row(n, 1.0) for n in range(20)]), study()))
    assert "buys 4 new trials in 80 s to 4 min: earlier ones included, 8 baseline" in later
    assert "the space holds" not in later
    vast = "\n".join(plan_lines(plan(3000), study()))
    assert "the space holds 625 architectures: the run ends when they are trained" in vast

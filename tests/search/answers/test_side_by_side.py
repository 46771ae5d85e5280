import json
from dataclasses import replace
from statistics import fmean

import pytest
from scipy import stats
from simulated import ATTENTION, Simulation, question, row

from search.answers.side_by_side import SAME_RUNS, side_by_side, split_differences

A, S = ATTENTION, "sepconv"


def study(seed, budget=36, **changes):
    made = Simulation(
        lambda layers: 3.0 - 0.05 * layers.count(S) + 0.1 * (4 - len(layers)),
        lambda layers: 0.01,
        asked=question(**changes),
        seed=seed,
    )
    return made.rows, made.run(budget)


def compared(first, second):
    return side_by_side(("a", "b"), (first[1], second[1]), (first[0], second[0]))


@pytest.mark.parametrize("common", [True, False])
def test__side_by_side__shared_test_runs__intervals_by_seed_or_welch_without_common_seeds(common):
    first, second = study(1), study(2)
    if not common:
        second = ([replace(r, seed=r.seed + 100) for r in second[0]], second[1])
    sides = compared(first, second)
    on_test = [arm for arm in sides.shared if arm.split == "test" and min(arm.n) > 1]
    assert any(arm.paired for arm in on_test) == common
    readable = len(sides.shared)
    for arm in on_test:
        ours, theirs = (
            {
                r.seed: r.test["loss"]
                for r in rows
                if r.arch_id == arm.arch_id and r.phase == "confirm"
            }
            for rows in (first[0], second[0])
        )
        left, right = [*ours.values()], [*theirs.values()]
        assert arm.n == (len(left), len(right))
        assert arm.means == pytest.approx((fmean(left), fmean(right)))
        seeds = sorted(ours.keys() & theirs.keys())
        if len(seeds) > 2:
            peer = stats.ttest_rel([theirs[s] for s in seeds], [ours[s] for s in seeds])
        else:
            peer, seeds = stats.ttest_ind(right, left, equal_var=False), []
        assert list(arm.paired) == seeds
        expected = peer.confidence_interval(1 - 0.05 / readable)
        assert (arm.interval.low, arm.interval.high) == pytest.approx(tuple(expected))


def test__side_by_side__runs_at_another_learning_rate__are_in_no_mean():
    rows, answer = study(1)
    number = max(one.number for one in rows) + 1
    pick = next(one.mixers for one in rows if one.arch_id == answer.pick)
    other_rate = row(
        number, pick, 9.0, phase="confirm", seed=99, seed_index=9, recipe={"learning_rate": 1.0}
    )
    assert compared(((*rows, other_rate), answer), study(2)).shared == (
        compared((rows, answer), study(2)).shared
    )


def test__side_by_side__the_same_runs_twice__no_interval_of_false_width():
    first = study(1)
    for arm in compared(first, first).shared:
        assert arm.interval.estimate == 0.0
        assert arm.interval.low is None
        assert arm.interval.reason == SAME_RUNS


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test__side_by_side__best_by_kind__the_best_on_selection_of_each_study(direction):
    first, second = study(1, 24, direction=direction), study(2, 6, direction=direction)
    sides = compared(first, second)
    pick = max if direction == "maximize" else min
    for best in sides.kinds:
        for (rows, _), code, value in zip((first, second), best.codes, best.values, strict=True):
            values = {
                row.code: row.selection["loss"]
                for row in rows
                if row.phase != "confirm" and _kind(row) == best.kind
            }
            assert (code, value) == (
                (pick(values, key=values.get), pick(values.values())) if values else (None, None)
            )
    assert [best.kind for best in sides.kinds][-2:] == ["hybrid", "shorter model"]


def _kind(row):
    kinds = {mixer.split("(")[0] for mixer in row.mixers}
    if row.n_layers < 4:
        return "shorter model"
    return f"all {kinds.pop()}" if len(kinds) == 1 else "hybrid"


def test__split_differences__task_recipe_and_objective_forbid_others_do_not():
    lines = ["task.seq_len: 64 -> 32", "training.steps: 1 -> 2", "strategy.name: 1 -> 2"]
    lines += ["recipe: a -> b", "objectives.0: a -> b", "encoder.d_model: 1 -> 2", "seed: 0 -> 1"]
    forbidding, allowed = split_differences(lines)
    assert forbidding == [lines[0], lines[1], lines[3], lines[4]]
    assert allowed == [lines[2], lines[5], lines[6]]


def test__to_dict__is_plain_for_strict_json():
    document = json.loads(json.dumps(compared(study(1), study(2)).to_dict(), allow_nan=False))
    assert document["studies"] == ["a", "b"]
    assert len(document["answers"]) == 2

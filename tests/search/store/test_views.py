"""The views against slow recomputations in plain Python, on both databases."""

import math
import statistics

import pytest
import store_factory
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from search.rows import FINAL_STATES
from search.store.repo import Store
from search.store.summary import mean_sd

STACKS = ("attention*2", "sepconv*2", "sepconv, attention", "attention, sepconv", "average*2")
COSTS = {
    "attention*2": (50, 90),
    "sepconv*2": (40, 70),
    "sepconv, attention": (45, 80),
    "attention, sepconv": (45, 80),
    "average*2": (30, 20),
}

trial = st.tuples(
    st.sampled_from(STACKS),
    st.sampled_from([1.0, 2.0, 2.5, 3.0]),
    st.sampled_from(["completed", "completed", "completed", "failed", "diverged", "stopped"]),
    st.booleans(),
)


def play(store, name, objective, trials):
    """Run made-up trials; returns what each should have left behind."""
    metrics = ["accuracy"] if objective == "loss" else ["loss"]
    spec = store_factory.study_spec(objectives=[objective], metrics=metrics)
    study_id = store.ensure_study(name, spec, store_factory.PLUGINS).id
    worker = store.register_worker()
    seeds = dict.fromkeys(STACKS, 0)
    left = []
    for notation, value, outcome, on_test in trials:
        seed = seeds[notation]
        seeds[notation] += 1
        phase = "baseline" if notation == "attention*2" and seed == 0 else "search"
        claim = store_factory.claim_and_commit(
            store,
            study_id,
            worker,
            notation,
            phase=phase,
            seed=seed,
            seed_index=seed,
            training_key=name,  # or a study would take over what another one trained
            study=spec,
        )
        if outcome == "failed":
            store.fail(claim, store_factory.failure())
            continue
        params, flops = COSTS[notation]
        splits = ("selection", "test") if on_test else ("selection",)
        evaluations = {s: {objective: value + (s == "test"), metrics[0]: 0.0} for s in splits}
        store.finish(
            claim,
            store_factory.result(
                outcome=outcome, params=params, flops=flops, evaluations=evaluations
            ),
        )
        if outcome == "completed":
            left.append((claim.trial_id, notation, value, value + 1 if on_test else None, phase))
    return left


def expected_board(left, sign):
    """The leaderboard, straight from its definition."""
    board = []
    for notation in {entry[1] for entry in left}:
        mine = [entry for entry in left if entry[1] == notation]
        values = [entry[2] for entry in mine]
        tests = [entry[3] for entry in mine if entry[3] is not None]
        best = min(mine, key=lambda entry: (sign * entry[2], entry[0]))
        board.append(
            {
                "notation": notation,
                "n": len(values),
                "mean": statistics.mean(values),
                "sd": statistics.stdev(values) if len(values) > 1 else None,
                "test_n": len(tests),
                "test_mean": statistics.mean(tests) if tests else None,
                "test_sd": statistics.stdev(tests) if len(tests) > 1 else None,
                "best_trial": best[0],
                "best": best[2],
                "is_baseline": any(entry[4] == "baseline" for entry in mine),
            }
        )
    points = {row["notation"]: (sign * row["mean"], *COSTS[row["notation"]]) for row in board}
    for row in board:
        mine = points[row["notation"]]
        row["is_pareto"] = not any(
            other != mine and all(a <= b for a, b in zip(other, mine, strict=True))
            for other in points.values()
        )
    return sorted(board, key=lambda row: sign * row["mean"])


@pytest.mark.parametrize("objective", ["loss", "accuracy"])
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(trials=st.lists(trial, max_size=10))
def test__leaderboard_and_pareto__any_trials__equal_their_definition(store, objective, trials):
    name = f"s{len(store.studies())}"
    left = play(store, name, objective, trials)
    sign = 1 if objective == "loss" else -1
    wanted = expected_board(left, sign)
    found = store.leaderboard(name)
    assert [row["place"] for row in found] == list(range(1, len(wanted) + 1))
    assert [sign * row["mean"] for row in found] == sorted(sign * row["mean"] for row in found)
    by_notation = {row["notation"]: row for row in found}
    assert by_notation.keys() == {row["notation"] for row in wanted}
    for row in wanted:
        mine = by_notation[row["notation"]]
        for column, value in row.items():
            if isinstance(value, float):
                assert mine[column] == pytest.approx(value, rel=1e-12), column
            else:
                assert mine[column] == value, column
    view = store.query(f"SELECT arch_id FROM leaderboard WHERE study = '{name}'")
    assert [row[0] for row in view.rows] == [row["arch_id"] for row in found]


def test__mean_sd__tiny_spread_on_a_large_offset__keeps_its_digits(store):
    offset, spread = 1e8, 1e-4
    values = [offset, offset + spread, offset + 2 * spread]
    one_pass = sum(v * v for v in values) / 3 - (sum(values) / 3) ** 2
    assert not math.isclose(math.sqrt(abs(one_pass) * 1.5), spread, rel_tol=0.1)
    assert mean_sd(values)[1] == pytest.approx(spread, rel=1e-3)
    trials = [("attention*2", value, "completed", False) for value in values]
    play(store, "demo", "loss", trials)
    assert store.leaderboard("demo")[0]["sd"] == pytest.approx(spread, rel=1e-3)


def test__layer_effects__raw_difference__is_that_of_architecture_means(store):
    losses = {
        "attention*2": [3.0, 3.2],
        "attention(rotary=true)*2": [2.9],
        "sepconv*2": [2.0, 2.2, 2.4],
        "sepconv, attention": [2.6],
        "sepconv": [1.0],
    }
    spec = store_factory.study_spec()
    study_id = store.ensure_study("demo", spec, store_factory.PLUGINS).id
    worker = store.register_worker()
    for notation, values in losses.items():
        for seed, value in enumerate(values):
            claim = store_factory.claim_and_commit(
                store, study_id, worker, notation, seed=seed, seed_index=seed
            )
            store.finish(claim, store_factory.result(value))
    found = store.query("SELECT * FROM layer_effects ORDER BY layer, kind").dicts()
    # The half-depth stack is left out; the better all-attention (2.9) is the reference.
    expected = [
        ("demo", 0, "attention", 2, (3.1 + 2.9) / 2),
        ("demo", 0, "sepconv", 2, (2.2 + 2.6) / 2),
        ("demo", 1, "attention", 3, (3.1 + 2.9 + 2.6) / 3),
        ("demo", 1, "sepconv", 1, 2.2),
    ]
    assert len(found) == len(expected)
    for row, (study, layer, kind, n, mean) in zip(found, expected, strict=True):
        assert (row["study"], row["layer"], row["kind"], row["n"]) == (study, layer, kind, n)
        assert row["mean"] == pytest.approx(mean)
        assert row["difference"] == pytest.approx(mean - 2.9)


def test__trials_flat__one_row_a_trial__equal_to_the_rows(store):
    study_id = store_factory.fill(store, seeds=2)
    worker = store.register_worker()
    store_factory.reserve(store, study_id, worker)
    failed = store_factory.claim_and_commit(store, study_id, worker, "average*2")
    store.fail(failed, store_factory.failure())
    rows = store.rows("demo")
    flat = store.query("SELECT * FROM trials_flat ORDER BY number").dicts()
    assert len(flat) == len(rows) == 10
    for row, line in zip(rows, flat, strict=True):
        assert line["trial"] == row.id
        assert line["selection"] == row.selection.get("loss")
        assert line["test"] == row.test.get("loss")
        assert line["notation"] == (row.notation or None)
        for name in ("number", "phase", "role", "state", "params", "flops", "step_s", "probe"):
            assert line[name] == getattr(row, name), name
        assert (line["finished_at"] is None) == (row.state not in FINAL_STATES)


def test__leaderboard__recipe_trials__are_not_in_it(store: Store):
    study_id = store_factory.fill(store, architectures=("attention*2", "sepconv*2"))
    before = store.leaderboard("demo")
    worker = store.register_worker()
    claim = store_factory.reserve(store, study_id, worker, "recipe")
    store.commit(
        claim,
        store_factory.encoder_spec("sepconv*2"),
        seed=0,
        seed_index=0,
        training_key="lr2",
        recipe={"learning_rate": 0.003},
    )
    store.finish(claim, store_factory.result(0.1))
    assert store.leaderboard("demo") == before
    assert [dict(row.recipe) for row in store.rows("demo")] == [{}, {}, {"learning_rate": 0.003}]

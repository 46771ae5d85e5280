"""A study that sweeps its learning rate, as a real process."""

import json
from pathlib import Path

from command import spawn
from tiny_run import own_folders, tiny

import search


def test__run__recipe_sweep__trains_the_rates_and_answers_at_the_shared_one(
    tmp_path: Path,
) -> None:
    options = tiny(
        tmp_path,
        recipe="sweep",
        recall=False,
        space__choices=["attention(rotary=true)", "average"],
        training__learning_rate=0.01,
        training__sweep_rates=[0.001, 0.1],
    )
    env = own_folders(tmp_path)
    done = spawn("run", "--budget", "15", *options, cwd=tmp_path, env=env)
    assert done.code == 0, done.err
    assert "learning rates 0.001, 0.01, 0.1 swept" in done.out
    assert len(done.out.splitlines()) <= 40
    with search.open(f"sqlite:///{tmp_path / 'search.db'}") as store:
        [study] = store.studies()
        rows = store.rows(study.id)
        keys = {store.trial(row.id)["training_key"] for row in rows}
        board = store.leaderboard(study.id)
    swept = [row for row in rows if row.recipe]
    assert {row.phase for row in swept} <= {"recipe", "confirm"}
    assert {row.recipe["learning_rate"] for row in swept} == {0.001, 0.1}
    assert len(keys) == 3
    # One seed, one stack, three rates: three results.
    first = [row.selection["loss"] for row in rows if row.seed_index == 0 and row.code == "AA"]
    assert len(set(first)) == len(first) >= 3
    shared = {row.arch_id for row in rows if not row.recipe and row.state == "completed"}
    assert {line["arch_id"] for line in board} == shared
    report = json.loads(spawn("report", "--json", cwd=tmp_path).out)["answer"]
    assert report["recipe"]["rates"] == [0.001, 0.01, 0.1]
    assert {stack["code"] for stack in report["recipe"]["stacks"]} >= {"AA", "MM"}

    again = spawn("run", "--budget", "15", *options, cwd=tmp_path, env=env)
    assert again.code == 0
    with search.open(f"sqlite:///{tmp_path / 'search.db'}") as store:
        assert len(store.rows(study.id)) == len(rows) == 15
    # Five baselines and five repeats leave room for five of the sweep's six runs.
    assert report["recipe"]["not_swept"] == ["reference_learned_positions"]

"""A study of loss and latency under a limit on parameters, as a real process."""

import json
from pathlib import Path

import pytest
from command import Outcome, spawn
from tiny_run import own_folders, tiny

import search

MOST_PARAMS = 5_500
SETTINGS = {"objectives": ["loss", "latency"], "limits__max_params": MOST_PARAMS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("objectives")


@pytest.fixture(scope="module")
def done(folder: Path) -> Outcome:
    options = tiny(folder, **SETTINGS)
    return spawn("run", "--budget", "12", *options, cwd=folder, env=own_folders(folder))


def test__run__loss_and_latency_under_a_limit__only_baselines_are_over_it(
    folder: Path, done: Outcome
) -> None:
    assert done.code == 0, done.err
    with search.open(f"sqlite:///{folder / 'search.db'}") as store:
        [study] = store.studies()
        rows = store.rows(study.id)
    assert len(rows) == 12
    over = {row.phase for row in rows if (row.params or 0) > MOST_PARAMS}
    searched = [row for row in rows if row.phase == "search"]
    assert searched
    assert "baseline" in over
    assert "search" not in over
    assert all(row.latency is not None and row.latency.device == "cpu" for row in rows)
    picks = [row for row in rows if row.role == "pick"]
    assert picks
    assert all((row.params or 0) <= MOST_PARAMS for row in picks)


def test__report__loss_and_latency_under_a_limit__front_speed_up_and_limit_are_told(
    folder: Path, done: Outcome
) -> None:
    assert len(done.out.splitlines()) <= 40
    assert "max_params 5.5 k" in done.out
    report = spawn("report", "--json", cwd=folder)
    answer = json.loads(report.out)["answer"]
    assert [measure["name"] for measure in answer["pareto"]["measures"]] == ["loss", "latency"]
    assert answer["speed_up"]["real"] in ("yes", "no", "undecided")
    assert answer["speed_up"]["conditions"][0] == "cpu"
    over = [point for point in answer["pareto"]["points"] if point["word"] == "over a limit"]
    assert over


def test__run__nothing_within_the_limit__one_line_before_anything_starts(folder: Path) -> None:
    options = tiny(folder, limits__max_params=10)
    refused = spawn("run", *options, "--store", "sqlite:///none.db", cwd=folder)
    assert refused.code == 2
    [line] = refused.err.splitlines()
    assert "no architecture of the space is within max_params 10" in line
    assert not (folder / "none.db").exists()

"""`search confirm`, and how derived studies appear in the other commands."""

import json

import pytest
from command import call
from fault_trials import RECIPE, faults_installed
from own_study import loss, own_study

import search
from search.engine.own_objective import ObjectiveRunner
from search.spec.study_file import study_from


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    with faults_installed(tmp_path_factory.mktemp("faults")) as folder:
        yield folder


@pytest.fixture
def url(tmp_path, faults, monkeypatch):
    """A store with one searched study; a function stands for the training."""
    monkeypatch.setenv("SEARCH_CACHE_DIR", str(faults / "cache"))
    runner = ObjectiveRunner(loss, "loss")
    monkeypatch.setattr("search.engine.runner.make_training_runners", lambda *_, **__: [runner])
    spec = study_from(
        {
            "task": {"kind": "faults.copy"},
            "encoder": {"d_model": 16, "n_layers": 2, "d_ff": 16},
            "space": {"choices": ["attention", "sepconv"]},
            "training": RECIPE,
            "strategy": {"name": "exhaustive"},
            "recall": False,
        }
    )
    place = f"sqlite:///{tmp_path / 'search.db'}"
    search.run(spec, 9, place, name="base")
    return place


def test__confirm__a_study__prints_lengths_and_a_second_call_starts_nothing(url, capsys):
    first = call(capsys, "confirm", "--store", url)
    assert first.code == 0, first.err
    assert "32 steps (x4)" in first.out
    assert "Spearman" in first.out
    assert "study base.steps-x4" in first.err
    again = call(capsys, "confirm", "base", "--store", url)
    assert (again.code, again.out) == (0, first.out)
    assert "study base" not in again.err


def test__confirm__dry_run__starts_nothing_and_counts(url, capsys):
    said = call(capsys, "confirm", "--store", url, "--steps", "x2", "--dry-run")
    assert said.code == 0
    assert "base.steps-x2" in said.out
    assert "taken over from base" in said.out
    plan = json.loads(call(capsys, "confirm", "--store", url, "--dry-run", "--json").out)
    assert [stage["steps"] for stage in plan["stages"]] == [8, 16, 32]
    with search.open(url) as store:
        assert len(store.studies()) == 1


def test__confirm__json__ends_with_the_lengths(url, capsys):
    lines = call(capsys, "confirm", "--store", url, "--steps", "x2", "--json").out.splitlines()
    events = [json.loads(line) for line in lines]
    assert events[-1]["event"] == "lengths"
    assert [m["steps"] for m in events[-1]["lengths"]["measured"]] == [8, 16]


def test__reading_commands__derived_studies__do_not_stand_in_the_way(url, capsys):
    call(capsys, "confirm", "--store", url, "--steps", "x2")
    with search.open(url, create=True) as store:
        store.ensure_study("another", own_study(), {})
    listed = call(capsys, "ls", "--store", url).out.splitlines()[1:]
    assert [line.split("  ")[0] or line.split()[0] for line in listed] == [
        "base",
        "base.steps-x1",
        "base.steps-x2",
        "another",
    ]
    error = call(capsys, "show", "--store", url).error_line
    assert error.endswith("holds 2 studies, name one of them: base, another")
    assert "from base, for steps-x2" in call(capsys, "show", "base.steps-x2", "--store", url).out
    assert "16 steps (x2)" in call(capsys, "report", "base", "--store", url).out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--steps", "x1"], 2, "longer than the study's 8 steps"),
        (["--steps", "soon"], 2, "write x4"),
        (["--d-model", "16"], 2, "own width"),
        (["--seeds", "0"], 2, "--seeds"),
        (["nobody"], 4, "there is no study 'nobody'"),
    ],
)
def test__confirm__wrong_wish__is_one_line_with_its_exit_code(url, capsys, arguments, code, said):
    failed = call(capsys, "confirm", "--store", url, *arguments)
    assert failed.code == code
    assert said in failed.err
    assert "Traceback" not in failed.err


def test__confirm__own_objective__is_refused_in_one_line(tmp_path, capsys):
    place = f"sqlite:///{tmp_path / 'own.db'}"
    search.run(own_study(), 6, place, objective=loss)
    failed = call(capsys, "confirm", "--store", place)
    assert failed.code == 2
    assert "function 'loss' of a script" in failed.error_line

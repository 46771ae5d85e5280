"""The recall check at the end of a run: done once per pick, never counted, easy to leave out."""

from functools import partial

import pytest
from command import call
from fault_trials import RECIPE
from own_study import Recorder, loss, own_study

import search
from search.engine.own_objective import ObjectiveRunner
from search.engine.stopping import StopFlag
from search.followups import recall_check
from search.followups.derived import derived_studies
from search.followups.recall_check import check_recall, is_wanted
from search.planning.plan import make_plan
from search.planning.plan_words import plan_lines
from search.planning.stack_costs import StackCost
from search.spec.budget import Budget
from search.spec.recall import TRAINING, short_recall
from search.spec.study_file import study_from
from search.spec.study_template import commented_yaml

A, S = "attention(rotary=true)", "sepconv"


@pytest.fixture(autouse=True)
def engine(faults, monkeypatch):
    """The whole engine over a function in place of the training."""
    monkeypatch.setenv("SEARCH_CACHE_DIR", str(faults / "cache"))
    monkeypatch.setenv("SEARCH_THREADS", "1")
    # Cheaper than the tiny studies of these tests, as the real check is than a real study.
    for name, value in {"steps": 6, "batch_size": 1}.items():
        monkeypatch.setitem(TRAINING, name, value)
    runner = ObjectiveRunner(metrics, "loss")
    monkeypatch.setattr("search.engine.runner.make_training_runners", lambda *_, **__: [runner])


def metrics(architecture, seed, report):
    attends = any(block.mixer.kind == "attention" for block in architecture.blocks)
    return {"loss": loss(architecture, seed, report), "accuracy": 0.99 if attends else 0.2}


@pytest.fixture
def store(tmp_path):
    with search.open(f"sqlite:///{tmp_path / 'search.db'}", create=True) as opened:
        yield opened


def study(**changes):
    return study_from(
        {
            "task": {"kind": "faults.copy"},
            "encoder": {"d_model": 16, "n_layers": 2, "d_ff": 16},
            "space": {"choices": [A, S]},
            "training": RECIPE,
            "strategy": {"name": "exhaustive"},
        }
        | changes
    )


def run(store, budget=9, observer=None, **changes):
    spec = study(**changes)
    return search.run(spec, budget, store, name="base", in_process=True, observer=observer)


def test__run__finished_study__checks_pick_and_attention_outside_its_budget(store):
    recorder = Recorder()
    outcome = run(store, observer=recorder)
    assert outcome.n_trials == store.study("base").n_trials <= 9
    [found] = derived_studies(store, store.study("base"))
    assert (found.name, found.purpose, found.state) == ("base.recall", "recall", "completed")
    rows = store.rows("base.recall")
    assert [(row.mixers, row.phase, row.seed_index) for row in rows] == [
        (stack, "confirm", seed) for seed in (1, 2, 3) for stack in ((A, A), (S, S))
    ]
    assert found.spec["task"]["kind"] == "mqar"
    assert store.counts("base").started == outcome.n_trials
    assert any("not counted in the budget" in text for text in recorder.messages)


def test__run__again__starts_nothing(store):
    run(store)
    recorder = Recorder()
    again = run(store, observer=recorder)
    assert (again.started, recorder.started) == (0, [])
    assert not any("recall" in text for text in recorder.messages)
    assert len(store.studies()) == 2


def test__run__check_that_is_missing_or_was_interrupted__is_made_up_for(store):
    class StopsInTheCheck(Recorder):
        def trial_started(self, trial):
            super().trial_started(trial)
            if self.study.name == "base.recall" and trial.number == 1:
                raise KeyboardInterrupt

    run(store, observer=StopsInTheCheck())
    recall = store.study("base.recall")
    assert recall.n_completed == 1
    recorder = Recorder()
    run(store, observer=recorder)
    assert len(recorder.started) == 5
    assert store.study("base.recall").n_completed == 6


def test__run__pick_that_is_not_confirmed__is_not_checked_yet(store):
    run(store, 5)
    assert [row.name for row in store.studies()] == ["base"]
    run(store, 6)
    assert [row.name for row in store.studies()] == ["base", "base.recall"]


def test__run__check_dearer_than_the_study__is_left_out_until_more_is_spent(store, monkeypatch):
    monkeypatch.setitem(TRAINING, "steps", 10**4)
    recorder = Recorder()
    run(store, observer=recorder)
    assert len(store.studies()) == 1
    assert "recall check left out: it would cost" in recorder.messages[-1]
    monkeypatch.setitem(TRAINING, "steps", 6)
    run(store)
    assert len(store.studies()) == 2


def test__run__recall_false__leaves_it_out(store):
    run(store, recall=False)
    assert len(store.studies()) == 1
    assert not is_wanted(study(recall=False))
    assert not is_wanted(own_study())
    assert is_wanted(study())


def test__run__own_objective_and_derived_study__are_not_checked(store):
    search.run(own_study(), 6, store, objective=loss)
    assert len(store.studies()) == 1


def test__check_recall__time_budget__takes_what_is_left_or_says_so(store):
    run(store, recall=False)
    spec = study(recall=False).model_copy(update={"recall": True})
    busy_s = store.study("base").busy_s
    recorder = Recorder()
    used_up = Budget("seconds", busy_s)
    assert check_recall(store, "base", spec, used_up, recorder) is None
    assert "left out" in recorder.messages[-1]
    assert len(store.studies()) == 1
    outcome = check_recall(store, "base", spec, Budget("seconds", busy_s + 60), recorder)
    assert (outcome.exit_code, outcome.completed) == (0, 6)


def test__check_recall__another_study_with_another_pick__takes_over_attention(store):
    run(store)
    search.run(study(space={"choices": [A, "bproj"]}), 9, store, name="other", in_process=True)
    rows = {row.mixers: row for row in store.rows("other.recall")}
    assert set(rows) == {("bproj", "bproj"), (A, A)}
    assert rows[A, A].reused_from is not None
    assert rows["bproj", "bproj"].reused_from is None


def test__check_recall__pick_changed_by_a_larger_budget__is_checked_too(store):
    spec = {
        "space": {"choices": [A, "bproj", "sepconv", "average"]},
        "baselines": {"cheap": "average"},
    }
    run(store, 9, **spec)
    run(store, 60, **spec)
    found = derived_studies(store, store.study("base"))
    assert [row.name for row in found] == ["base.recall", "base.recall.2"]
    assert [row.n_trials for row in found] == [6, 6]


def test__search_run__check_interrupted__ends_as_interrupted_and_goes_on_later(
    tmp_path, capsys, monkeypatch
):
    path = tmp_path / "study.yaml"
    path.write_text(commented_yaml(study()), encoding="utf-8")
    store = f"sqlite:///{tmp_path / 'search.db'}"
    arguments = ["run", str(path), "--budget", "9", "--name", "base", "--store", store]
    check = recall_check.run_study
    stop = StopFlag()
    stop.ask("interrupted")
    monkeypatch.setattr(recall_check, "run_study", partial(check, stop=stop))
    stopped = call(capsys, *arguments)
    assert stopped.code == 130, stopped.err
    assert "nothing is lost" in stopped.error_line
    monkeypatch.setattr(recall_check, "run_study", check)
    done = call(capsys, *arguments)
    assert done.code == 0, done.err
    assert "and sepconv*2 on associative recall" in done.err
    assert "fails recall with 0 of 3 seeds (0.20, 0.20, 0.20)" in done.out


def test__plan__budget_that_confirms__announces_the_check_and_its_cost(monkeypatch):
    cost = StackCost("s", 10**6, step_s=0.1, trial_s=20.0, peak_memory_bytes=5)

    def lines(budget, spec):
        plan = make_plan(spec, Budget.parse(budget), cost, cost, name="s")
        return [line for line in plan_lines(plan, spec) if "recall" in line]

    [line] = lines("9", study())
    assert f"6 x {short_recall(study()).training.steps} steps" in line
    assert "beside the budget" in line
    [line] = lines("1h", study())
    assert "time that is left" in line
    assert lines("5", study()) == []
    assert lines("9", study(recall=False)) == []
    monkeypatch.setitem(TRAINING, "steps", 10**6)
    assert lines("9", study()) == [
        "recall check of the pick: left out, it would cost more than the study itself"
    ]

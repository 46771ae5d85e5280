"""Derived studies in a store: run, continued, found again, and read by the answer of their base."""

import pytest
from fault_trials import RECIPE
from own_study import Recorder, loss, own_study

import search
from search.answers.answer import answer_study
from search.engine.own_objective import ObjectiveRunner
from search.errors import InputError
from search.followups.confirm import scales_of, select
from search.followups.confirm_plan import plan_of, plan_words
from search.followups.derived import (
    derived_rows,
    derived_studies,
    refuse_unfit,
    run_stages,
    stages_of,
)
from search.spec.study_file import study_from

A, S = "attention(rotary=true)", "sepconv"


@pytest.fixture(autouse=True)
def engine(faults, monkeypatch, request):
    """The whole engine over a function in place of the training, but for slow tests."""
    monkeypatch.setenv("SEARCH_CACHE_DIR", str(faults / "cache"))
    monkeypatch.setenv("SEARCH_THREADS", "1")
    if "slow" not in request.keywords:
        runner = ObjectiveRunner(loss, "loss")
        monkeypatch.setattr("search.engine.runner.make_training_runners", lambda *_, **__: [runner])


@pytest.fixture
def store(tmp_path):
    with search.open(f"sqlite:///{tmp_path / 'search.db'}", create=True) as opened:
        yield opened


def base_study():
    return study_from(
        {
            "task": {"kind": "faults.copy"},
            "encoder": {"d_model": 16, "n_layers": 2, "d_ff": 16},
            "space": {"choices": [A, S]},
            "training": RECIPE,
            "strategy": {"name": "exhaustive"},
            "recall": False,
        }
    )


@pytest.fixture
def base(store):
    """The row of a study of four stacks, two of them confirmed."""
    search.run(base_study(), 9, store, name="base", in_process=True)
    return store.study("base")


def stages(store, base, seeds=1, **wish):
    spec = base_study()
    found = select(spec, store.rows(base.id))
    return stages_of(store, base, spec, scales_of(spec, **wish), found, seeds)


def run(store, base, found, observer=None):
    return run_stages(store, base, found, observer or Recorder(), in_process=True)


def test__run_stages__a_finished_study__trains_each_length_and_takes_over_what_is_there(
    store, base
):
    assert run(store, base, stages(store, base)) is None
    found = derived_studies(store, base)
    assert [(row.name, row.base, row.purpose) for row in found] == [
        (f"base.steps-{times}", "base", f"steps-{times}") for times in ("x1", "x2", "x4")
    ]
    confirmed = {r.mixers for r in store.rows("base") if r.phase == "confirm" and r.seed_index == 1}
    assert confirmed
    own = store.rows("base.steps-x1")
    assert {row.mixers for row in own if row.reused_from is not None} == confirmed
    for row in own:
        twins = [r for r in store.rows("base") if r.mixers == row.mixers and r.seed == row.seed]
        for twin in twins:
            assert twin.test == row.test
    assert store.study("base.steps-x4").spec["training"]["steps"] == 4 * RECIPE["steps"]
    assert store.study("base").n_trials == base.n_trials


@pytest.mark.slow
def test__run_stages__real_trainings__are_as_long_as_they_say(store, base):
    run(store, base, stages(store, base, steps=2 * RECIPE["steps"]))
    lengths = {row.name: {r.steps for r in store.rows(row.id)} for row in store.studies()[1:]}
    steps = RECIPE["steps"]
    assert lengths == {"base.steps-x1": {steps}, "base.steps-x2": {2 * steps}}


def test__stages_of__the_same_wish_again__goes_on_and_starts_nothing(store, base):
    run(store, base, stages(store, base, steps=2 * RECIPE["steps"]))
    trials = sum(row.n_trials for row in derived_studies(store, base))
    again = stages(store, base, steps=2 * RECIPE["steps"])
    assert all(stage.row is not None for stage in again)
    recorder = Recorder()
    assert run(store, base, again, recorder) is None
    assert recorder.started == []
    assert sum(row.n_trials for row in derived_studies(store, base)) == trials


def test__stages_of__more_seeds_or_longer__begins_anew_only_what_is_not_there(store, base):
    run(store, base, stages(store, base, steps=2 * RECIPE["steps"]))
    more = stages(store, base, seeds=2, steps=2 * RECIPE["steps"])
    assert [stage.name for stage in more] == ["base.steps-x1.2", "base.steps-x2.2"]
    longer = stages(store, base, steps=4 * RECIPE["steps"])
    assert [stage.row is not None for stage in longer] == [True, True, False]
    recorder = Recorder()
    run(store, base, more[:1], recorder)
    assert {trial.seed_index for trial in recorder.started} == {2}
    fewer = stages(store, base, seeds=1, steps=2 * RECIPE["steps"])
    assert fewer[0].name == "base.steps-x1.2"


def test__derived_rows__read_by_the_answer__tell_lengths_and_widths(store, base):
    run(store, base, stages(store, base, steps=2 * RECIPE["steps"], d_model=32))
    answer = answer_study(
        store.rows("base"), base_study(), derived=derived_rows(store, store.study("base"))
    )
    found = answer.lengths
    assert [(m.purpose, m.steps, m.d_model) for m in found.measured] == [
        ("steps-x1", RECIPE["steps"], 16),
        ("steps-x2", 2 * RECIPE["steps"], 16),
        ("d_model-32", RECIPE["steps"], 32),
    ]
    assert all(m.n_candidate == m.n_reference == 1 for m in found.measured)
    assert answer_study(store.rows("base"), base_study()).lengths is None


def test__plan_of__before_and_after__counts_what_is_missing(store, base):
    spec, rows = base_study(), store.rows("base")
    [own, double] = stages(store, base, steps=2 * RECIPE["steps"])
    confirmed = sum(r.phase == "confirm" and r.seed_index == 1 for r in rows)
    plan = plan_of(store, spec, rows, own)
    assert (plan.done, plan.taken_over) == (0, confirmed)
    assert plan.missing == len(plan.architectures) - confirmed
    assert plan_of(store, spec, rows, double).missing == len(
        double.derived.study.space.architectures
    )
    run(store, base, [own])
    [own, _] = stages(store, base, steps=2 * RECIPE["steps"])
    after = plan_of(store, spec, rows, own)
    assert (after.missing, after.taken_over, after.seconds) == (0, 0, 0)
    assert "0 trainings to do" in "\n".join(plan_words("base", [after]))


def test__refuse_unfit__own_objective_and_derived_study__are_one_clear_line(store, base):
    outcome = search.run(own_study(), 6, store, objective=loss)
    row = store.study(outcome.study)
    with pytest.raises(InputError, match="function 'loss'"):
        refuse_unfit(row, own_study())
    run(store, base, stages(store, base)[:1])
    derived = store.study("base.steps-x1")
    with pytest.raises(InputError, match="repeats finalists of 'base'"):
        refuse_unfit(derived, base_study())


def test__run_stages__interrupted__returns_that_and_the_rest_comes_later(store, base):
    class StopsAtOnce(Recorder):
        def trial_started(self, trial):
            super().trial_started(trial)
            raise KeyboardInterrupt

    found = stages(store, base, steps=2 * RECIPE["steps"])
    outcome = run(store, base, found, StopsAtOnce())
    assert outcome.exit_code == 130
    assert run(store, base, stages(store, base, steps=2 * RECIPE["steps"])) is None
    assert all(row.n_completed == row.n_trials for row in derived_studies(store, base))

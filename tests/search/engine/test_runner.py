"""Whole runs over a small trainable task: in a training process, and in this one."""

import pytest
from fault_trials import RECIPE
from own_study import Recorder

import search
from search.errors import InputError
from search.planning.plan import plan_study
from search.spec.budget import Budget
from search.spec.study_file import study_from


def study(*faults, **changes):
    """A study whose mixers have these faults; the first is the reference."""
    traps = [{"kind": "faults.trap", "fault": fault, "at": 3 + n} for n, fault in enumerate(faults)]
    return study_from(
        {
            "task": {"kind": "faults.copy"},
            "encoder": {"d_model": 16, "n_layers": 2, "d_ff": 16},
            "space": {"choices": [*traps, {"kind": "identity"}]},
            "baselines": {"reference": "faults.trap", "cheap": "identity"},
            "training": RECIPE | changes.pop("training", {}),
            "strategy": {"name": "exhaustive"},
            "recall": False,
        }
        | changes
    )


@pytest.fixture(autouse=True)
def cache(faults, monkeypatch):
    monkeypatch.setenv("SEARCH_CACHE_DIR", str(faults / "cache"))
    monkeypatch.setenv("SEARCH_THREADS", "1")


@pytest.fixture
def store(tmp_path):
    with search.open(f"sqlite:///{tmp_path / 'search.db'}", create=True) as opened:
        yield opened


def test__run_study__in_a_process_of_its_own_and_in_this_one__give_the_same_numbers(store):
    spec = study("none")
    recorder = Recorder()
    outcome = search.run(spec, 6, store, name="child", observer=recorder)
    assert (outcome.exit_code, outcome.completed) == (0, 6)
    with search.open(f"{store.address.url}2", create=True) as other:
        here = search.run(spec, 6, other, name="here", in_process=True)
        ours = [(r.mixers, r.phase, r.selection, r.test, r.curve) for r in other.rows("here")]
    assert here.completed == 6
    rows = store.rows("child")
    assert [(r.mixers, r.phase, r.selection, r.test, r.curve) for r in rows] == ours
    assert [row.phase for row in rows][-2:] == ["confirm"] * 2
    assert all(("loss" in row.test) == (row.phase == "confirm") for row in rows)
    assert all(row.flops and row.params and row.step_s for row in rows)
    assert len(recorder.readings) == 6 * RECIPE["validations"]
    assert store.study("child").attrs["mixsearch:data"]


def test__C44__one_mixer_raises__its_trials_fail_and_the_others_finish(store):
    outcome = search.run(study("none", "raises"), 4, store, name="mixed")
    rows = store.rows("mixed")
    broken = {row.number for row in rows if "raises" in row.notation}
    assert broken
    assert {row.state for row in rows if row.number in broken} == {"failed"}
    assert {row.state for row in rows if row.number not in broken} == {"completed"}
    assert outcome.exit_code == 0


def test__C57__mixer_that_always_raises__exit_code_one_with_its_cause(store):
    spec = study(
        "raises", "raises", space={"choices": TRAPS}, baselines={"reference": "faults.trap"}
    )
    outcome = search.run(spec, 3, store, name="broken")
    assert (outcome.exit_code, outcome.failed) == (1, 3)
    assert "no such filter" in outcome.message


TRAPS = [{"kind": "faults.trap", "fault": "raises", "at": at} for at in (1, 2)]


def test__run_study__flops_budget__is_reserved_and_never_exceeded(store):
    from mixers.cost import count_flops
    from search.planning.plan import flops_of
    from search.planning.stack_costs import extremes

    spec = study("none")
    dear = max(count_flops(spec.encoder_spec(mixers)) for mixers in extremes(spec))
    budget = f"{3.5 * flops_of(spec, dear):.0f}flop"
    outcome = search.run(spec, budget, store, name="flops", in_process=True)
    rows = store.rows("flops")
    spent = sum(flops_of(spec, row.flops) for row in rows)
    assert len(rows) >= 3
    assert spent <= Budget.parse(budget).amount
    assert "needs" in outcome.message
    seen = Recorder()
    again = search.run(spec, budget, store, name="flops", in_process=True, observer=seen)
    assert again.started == 0
    assert seen.study.spent == spent


def test__run_study__other_data_than_it_was_begun_with__is_refused(store, monkeypatch):
    from search.engine import runner
    from search.engine.preparing import Prepared

    spec = study("none")
    search.run(spec, 1, store, name="data", in_process=True)
    real = runner.prepare
    monkeypatch.setattr(
        runner, "prepare", lambda study, cache: Prepared("f" * 64, real(study, cache).facts)
    )
    with pytest.raises(InputError, match="begun with other data"):
        search.run(spec, 2, store, name="data", in_process=True)
    assert len(store.rows("data")) == 1


def test__run_study__sampler_refuses_a_value__is_refused_before_the_study_exists(store):
    spec = study("none", strategy={"name": "nsgaii", "options": {"population_size": 1}})
    with pytest.raises(InputError, match=r"strategy\.options: .*population_size"):
        search.run(spec, 1, store)
    assert store.studies() == []


def test__run_study__new_study_without_its_data__is_refused_before_the_study_exists(
    store, tmp_path
):
    data = {"source": str(tmp_path / "nowhere.txt")}
    missing = study_from({"task": {"kind": "mlm", "data": data}})
    with pytest.raises(InputError, match=r"nowhere\.txt"):
        search.run(missing, 1, store)
    assert store.studies() == []


def test__plan_study__small_task__times_both_extremes_and_stores_nothing(store):
    plan = plan_study(study("none"), Budget.parse(9), store=store)
    assert plan.trials == (9, 9)
    assert plan.dearest.trial_s > 0
    assert plan.cheapest.step_s > 0
    assert plan.memory_bytes > 0
    assert store.studies() == []

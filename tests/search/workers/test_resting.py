"""A study that is paused or stopped from elsewhere while a run works on it."""

import time

import pytest
from own_study import loss, run_own, store_url, stored_rows

import search
from search.errors import InputError


@pytest.mark.parametrize(("wish", "left"), [("paused", "queued"), ("stopped", "stopped")])
def test__run__study_rests__its_trial_waits_for_its_resume_or_ends_with_it(
    tmp_path, monkeypatch, wish, left
):
    monkeypatch.setenv("SEARCH_BEAT_S", "0.02")
    calls = []

    def interrupted(architecture, seed, report):
        calls.append(architecture.notation)
        if len(calls) == 2:
            with search.open(store_url(tmp_path)) as elsewhere:
                study_id = elsewhere.studies()[0].id
                assert elsewhere.change_state(study_id, wish).running == 1
            for step in range(1, 2000):
                report(step, 1.0)
                time.sleep(0.005)
        return loss(architecture, seed, report)

    outcome = run_own(tmp_path, 4, interrupted, name="demo")
    assert (outcome.exit_code, outcome.started) == (130, 2)
    assert f"the study is {wish}" in outcome.message
    with search.open(store_url(tmp_path)) as store:
        study = store.study("demo")
        assert (study.state, study.reason, study.n_running) == (wish, "by hand", 0)
        assert [row.state for row in store.rows("demo")] == ["completed", left]
    if wish == "stopped":
        assert "the answer is drawn from what is there" in outcome.message
        with pytest.raises(InputError, match="stopped for good"):
            run_own(tmp_path, 4, interrupted, name="demo")
        return
    assert run_own(tmp_path, 4, interrupted, name="demo").exit_code == 0
    rows = stored_rows(tmp_path, outcome)
    assert [row.state for row in rows] == ["completed"] * 4
    # The trial in hand is the one that was tried twice, and nothing was trained besides.
    assert calls[2] == calls[1]
    assert len(calls) == 5


def test__run__rests_before_any_trial_is_complete__is_not_called_a_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCH_BEAT_S", "0.02")

    def paused_at_once(architecture, seed, report):
        with search.open(store_url(tmp_path)) as elsewhere:
            elsewhere.change_state(elsewhere.studies()[0].id, "paused")
        for step in range(1, 2000):
            report(step, 1.0)
            time.sleep(0.005)

    outcome = run_own(tmp_path, 3, paused_at_once, name="demo")
    assert outcome.exit_code == 130
    with search.open(store_url(tmp_path)) as store:
        assert store.study("demo").state == "paused"

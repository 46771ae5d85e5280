"""Budgets, resumption, small spaces, divergence and failure of whole runs."""

import math
import time

import pytest
from own_study import Recorder, loss, run_own, store_url, stored_rows

import search
from mixers.registry import mixer_registry
from search.errors import InputError


def test__C36__budget_of_ten_with_failures__starts_ten_then_none_then_two(tmp_path):
    def sometimes_fails(architecture, seed, report):
        if architecture.blocks[0].mixer.kind == "bproj":
            raise RuntimeError("no luck")
        return loss(architecture, seed, report)

    first = run_own(tmp_path, 10, sometimes_fails)
    rows = stored_rows(tmp_path, first)
    assert (first.started, len(rows)) == (10, 10)
    assert {row.state for row in rows} == {"completed", "failed"}
    again = run_own(tmp_path, 10, sometimes_fails)
    assert (again.started, again.n_trials, again.exit_code) == (0, 10, 0)
    assert "nothing started" in again.message
    smaller = run_own(tmp_path, 7, sometimes_fails)
    assert (smaller.started, smaller.n_trials) == (0, 10)
    raised = run_own(tmp_path, 12, sometimes_fails)
    assert (raised.started, raised.n_trials) == (2, 12)


@pytest.mark.parametrize("strategy", ["tpe", "nsgaii", "qmc"])
def test__C39__stopped_and_resumed__lists_the_same_architectures_as_in_one_go(tmp_path, strategy):
    options = {"n_layers": 4, "choices": list(KINDS), "strategy": strategy, "seed": 42}
    whole, parts, twin = (tmp_path / name for name in ("whole", "parts", "twin"))
    for folder in (whole, parts, twin):
        folder.mkdir()

    def architectures(folder, outcome):
        return [(row.phase, row.role, row.mixers) for row in stored_rows(folder, outcome)]

    in_one_go = architectures(whole, run_own(whole, 24, **options))
    stopper = Stopper(after=11)
    interrupted = run_own(parts, 24, observer=stopper, **options)
    assert (interrupted.exit_code, interrupted.n_trials) == (130, 11)
    assert architectures(parts, run_own(parts, 24, **options)) == in_one_go
    assert architectures(twin, run_own(twin, 24, **options)) == in_one_go
    explored = [mixers for phase, _, mixers in in_one_go if phase != "confirm"]
    assert len(set(explored)) == len(explored)


def test__C39__raised_budget__repeats_nothing_of_the_smaller_one(tmp_path):
    run_own(tmp_path, 6, choices=KINDS)
    rows = stored_rows(tmp_path, run_own(tmp_path, 12, choices=KINDS))
    explored = [row.mixers for row in rows if row.phase != "confirm"]
    assert len(rows) == 12
    assert len(set(explored)) == len(explored)


def test__C40__new_choice_in_another_study__old_results_are_reused(tmp_path):
    calls = []

    def counted(architecture, seed, report):
        calls.append(architecture.notation)
        return loss(architecture, seed, report)

    small = {"n_layers": 2, "choices": ["sepconv", "attention"], "strategy": "exhaustive"}
    run_own(tmp_path, 5, counted, **small)
    trained = set(calls)
    wide = small | {"choices": ["bproj", "attention", "sepconv"]}
    outcome = run_own(tmp_path, 15, counted, **wide)
    rows = stored_rows(tmp_path, outcome)
    reused = {row.notation for row in rows if row.reused_from is not None}
    assert reused == trained & {row.notation for row in rows}
    assert len(reused) >= 4
    assert {row.notation for row in rows if row.phase != "confirm"} > reused
    with pytest.raises(InputError, match=r"study 'objective-\w+' exists with another spec"):
        run_own(tmp_path, 20, counted, name=outcome.study, **small)


def test__C40__other_order_of_choices__proposes_the_same_points_for_old_rows(tmp_path):
    from own_study import own_study

    from search.phases.history import history_of
    from search.spec.space import Space

    outcome = run_own(tmp_path, 8, choices=["attention", "sepconv", "bproj"])
    rows = stored_rows(tmp_path, outcome)
    facts = {"measures": own_study().measures, "study_attrs": {}}
    ordered, turned = (
        history_of(rows, Space.of(own_study(choices=choices)), **facts)
        for choices in (
            ["attention", "sepconv", "bproj"],
            ["bproj", "average", "sepconv", "attention"],
        )
    )
    assert turned.trials == ordered.trials


def test__C40__uninstalled_mixer__old_trials_list_and_a_new_run_is_refused(tmp_path, local_mixer):
    outcome = run_own(tmp_path, 4, constant, choices=["local.shrug", "sepconv"])
    study = search.open(store_url(tmp_path)).study(outcome.study_id)
    mixer_registry.unregister("local.shrug")
    rows = stored_rows(tmp_path, outcome)
    assert len(rows) == 4
    assert any("local.shrug" in row.mixers for row in rows)
    with search.open(store_url(tmp_path)) as store:
        assert store.query("SELECT count(*) FROM trials_flat").rows[0][0] == 4
        with pytest.raises(InputError, match=r"space\.choices\.0: unknown kind 'local.shrug'"):
            search.run(study.spec, 9, store, objective=constant)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test__C41__not_finite_objective__is_diverged_never_best_never_a_good_point(
    tmp_path, direction, value
):
    from own_study import own_study

    from search.phases.history import history_of
    from search.spec.space import Space

    def sometimes_wild(architecture, seed, report):
        if architecture.blocks[0].mixer.kind == "attention":
            return value
        if architecture.blocks[1].mixer.kind == "bproj":
            report(2, value)
        return loss(architecture, seed, report)

    options = {"direction": direction, "n_layers": 2, "strategy": "exhaustive"}
    outcome = run_own(tmp_path, 12, sometimes_wild, **options)
    rows = stored_rows(tmp_path, outcome)
    wild = [
        row
        for row in rows
        if row.mixers[0] == "attention" or (len(row.mixers) > 1 and row.mixers[1] == "bproj")
    ]
    assert len(wild) >= 4
    assert {row.state for row in wild} == {"diverged"}
    assert {row.state for row in rows if row not in wild} == {"completed"}
    with search.open(store_url(tmp_path)) as store:
        best = store.leaderboard(outcome.study)
    assert all(math.isfinite(line["mean"]) for line in best)
    assert best[0]["notation"] not in {row.notation for row in wild}
    study = own_study(sometimes_wild, **options)
    history = history_of(rows, Space.of(study), measures=study.measures, study_attrs={})
    numbers = {row.number for row in wild}
    assert all(t.value is None for t in history.trials if t.number in numbers)
    assert all(t.state == "pruned" for t in history.trials if t.number in numbers)


@pytest.mark.parametrize("strategy", ["tpe", "exhaustive"])
def test__C43__nine_architectures_and_budget_of_thirty__each_once_and_a_clean_end(
    tmp_path, strategy
):
    outcome = run_own(tmp_path, 30, n_layers=2, strategy=strategy)
    rows = stored_rows(tmp_path, outcome)
    explored = [row.mixers for row in rows if row.seed_index == 0]
    full_depth = [mixers for mixers in explored if len(mixers) == 2]
    assert len(set(explored)) == len(explored)
    assert len(full_depth) == 9
    assert (outcome.exit_code, outcome.reason) == (0, "space used up")
    assert "all 9 architectures of the space are trained" in outcome.message
    assert "raise --budget to confirm more" in outcome.message
    assert sum(row.phase == "confirm" for row in rows) == 10
    again = run_own(tmp_path, 30, n_layers=2, strategy=strategy)
    assert (again.started, again.exit_code, again.reason) == (0, 0, "space used up")


def test__C45__time_budget__stops_the_trial_in_hand_and_a_larger_one_goes_on(tmp_path):
    def slow(architecture, seed, report):
        for step in range(1, 100_000):
            report(step, 1.0 + 1.0 / step)
            time.sleep(0.01)
        return 1.0

    began = time.monotonic()
    outcome = run_own(tmp_path, "1s", slow)
    assert time.monotonic() - began < 30
    [row] = stored_rows(tmp_path, outcome)
    assert (row.state, row.phase, outcome.started) == ("stopped", "baseline", 1)
    assert row.reason == "time budget used up"
    assert 0 < row.steps < 100_000
    assert row.selection["loss"] == 1.0 + 1.0 / row.steps
    assert "none of 1 trials came to an end within the budget" in outcome.message
    assert outcome.exit_code == 1
    assert run_own(tmp_path, "1s", slow).started == 0
    with search.open(store_url(tmp_path)) as store:
        study = store.study(outcome.study)
        assert (study.n_running, study.state) == (0, "failed")
    more = run_own(tmp_path, f"{study.busy_s + 0.5:.2f}s", slow)
    assert (more.started, more.n_trials) == (1, 2)


def test__C57__every_trial_fails__exit_code_one_with_number_and_first_cause(tmp_path):
    def broken(architecture, seed, report):
        raise RuntimeError("cannot work")

    recorder = Recorder()
    outcome = run_own(tmp_path, 3, broken, observer=recorder)
    assert (outcome.exit_code, outcome.completed, outcome.failed) == (1, 0, 3)
    assert "3 of 3 trials failed" in outcome.message
    assert "RuntimeError" in outcome.message
    assert "cannot work" in outcome.message
    assert recorder.outcome == outcome
    with search.open(store_url(tmp_path)) as store:
        assert store.leaderboard(outcome.study) == []
        assert store.study(outcome.study).state == "failed"
    again = run_own(tmp_path, 3, broken)
    assert (again.started, again.exit_code) == (0, 1)


KINDS = ("attention", "sepconv", "bproj", "average", "hardmax_shift")


def constant(architecture, seed, report):
    return 1.0


class Stopper(Recorder):
    """Asks the run to stop after so many trials, as Ctrl-C does."""

    def __init__(self, after):
        super().__init__()
        self.after = after

    def trial_finished(self, row):
        import signal

        super().trial_finished(row)
        if len(self.rows) == self.after:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def local_mixer():
    from typing import Literal

    from mixers.base import TokenMixer
    from mixers.config import MixerConfig, MixerTraits

    class ShrugConfig(MixerConfig):
        kind: Literal["local.shrug"] = "local.shrug"

    class Shrug(TokenMixer[ShrugConfig]):
        config_type = ShrugConfig

        @classmethod
        def traits(cls, config):
            return MixerTraits(
                reach=0,
                linear=True,
                position_aware=False,
                causal=True,
                fixed_length=False,
                cost="n",
                source="none",
            )

        @classmethod
        def flops(cls, config, *, d_model, seq_len):
            return 0

        def forward(self, x, mask=None):
            return 0 * x

    mixer_registry.register(Shrug)
    yield
    mixer_registry.unregister("local.shrug")

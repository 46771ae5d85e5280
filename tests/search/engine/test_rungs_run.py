"""Studies with rungs as a whole: what is trained how far, and what that costs."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from time import monotonic

import pytest
from own_study import Recorder
from store_factory import result, study_spec
from told_time import tell_time

import search
from mixers import count_flops
from mixers.notation import parse_architecture
from search.engine.assembly import make_claims
from search.engine.needs import strategy_of
from search.engine.preparing import Prepared
from search.engine.run_end import used_up
from search.engine.stopping import StopFlag
from search.files import Files
from search.messages import Report, TrialConfig
from search.rows import FINAL_STATES
from search.settings import Settings
from search.spec.budget import Budget
from search.spec.study_file import study_from
from search.training.trial import run_trial
from search.workers.worker import OUT_OF_TIME, Worker

RUNGS, STEPS = (60, 180), 600
START = datetime(2030, 1, 1, tzinfo=UTC)
WORTH = {"attention": 0.5, "sepconv": 0.1, "bproj": 0.2, "average": 0.4, "hardmax_shift": 0.3}


class Trainer:
    """Trains nothing: it counts the steps of each trial, and reads a loss that falls with them."""

    device = "cpu"

    def __init__(self):
        self.steps = Counter()
        self.ended_at = {}

    def run(self, assignment, *, on_message, should_stop):
        claim, until = assignment.claim, assignment.until or STEPS
        start = claim.promoted_from or 0
        assert self.steps[claim.trial_id] == start, "a promoted trial goes on where it ended"
        worth = sum(WORTH[block.mixer.kind] for block in assignment.spec.blocks)
        for step in (*RUNGS, STEPS):
            if start < step <= until:
                loss = 1.0 + worth + 10.0 / step
                on_message(Report(step=step, split="selection", metrics={"loss": loss}))
        self.steps[claim.trial_id] += until - start
        self.ended_at.setdefault(claim.phase, Counter())[until] += 1
        outcome = "completed" if until == STEPS else "pruned"
        splits = ("selection", "test") if claim.phase == "confirm" else ("selection",)
        return result(
            loss, outcome=outcome, steps=until, splits=splits, flops=count_flops(assignment.spec)
        )

    def close(self):
        pass


class TimedTrainer(Trainer):
    """Ten steps take a second, five in a promoted trial, by a clock that store and worker share."""

    def __init__(self, store):
        super().__init__()
        self.now, self.order = 0.0, []
        tell_time(store.engine, lambda: START + timedelta(seconds=self.now))

    def clock(self):
        return self.now

    def tick(self, seconds):
        self.now += seconds

    def run(self, assignment, *, on_message, should_stop):
        claim, until = assignment.claim, assignment.until or STEPS
        worth = sum(WORTH[block.mixer.kind] for block in assignment.spec.blocks)
        start = self.steps[claim.trial_id]  # where its newest checkpoint is
        assert start >= (claim.promoted_from or 0)
        self.order.append((claim.trial_id, start))
        for step in range(start + 10, until + 1, 10):
            self.tick(5.0 if claim.promoted_from else 1.0)
            self.steps[claim.trial_id] = step
            loss = 1.0 + worth + 10.0 / step
            if step in (*RUNGS, STEPS):
                on_message(Report(step=step, split="selection", metrics={"loss": loss}))
            if step < until and (reason := should_stop()) is not None:
                return result(outcome="stopped", reason=reason, steps=step, splits=())
        outcome = "completed" if until == STEPS else "pruned"
        splits = ("selection", "test") if claim.phase == "confirm" else ("selection",)
        return result(loss, outcome=outcome, steps=until, splits=splits)


def work(store, tmp_path, budget, trainer, **changes):
    """Runs a study with rungs under a budget; returns it with its rows."""
    choices = list(WORTH)
    study = study_spec(rungs=RUNGS, space={"choices": choices}, **changes)
    row = store.ensure_study("s", study, {})
    amount = Budget.parse(budget)
    claims = make_claims(
        store, row, study, strategy_of(study), amount, store.register_worker(), Prepared("f")
    )
    files, recorder = Files(tmp_path / "files"), Recorder()
    Worker(
        store, row.id, claims, trainer, budget=amount, observer=recorder, stop=StopFlag(),
        settings=Settings(), files=files, clock=getattr(trainer, "clock", monotonic),
    ).work()  # fmt: skip
    return study, store.rows("s", curves=True)


def test__run__rungs_and_trials__only_the_search_is_cut_and_a_larger_budget_promotes(
    store, tmp_path
):
    trainer = Trainer()
    study, rows = work(store, tmp_path, 24, trainer)
    assert [row.number for row in rows] == list(range(24))
    search_rows = [row for row in rows if row.phase == "search"]
    assert {row.state for row in rows if row.phase != "search"} == {"completed"}
    assert trainer.ended_at["baseline"] == {STEPS: sum(r.phase == "baseline" for r in rows)}
    n = len(search_rows)
    ended = trainer.ended_at["search"]
    assert ended[60] == n
    assert n // 3 <= ended[180] < n
    assert 1 <= ended[600] < ended[180]
    # Its best goes to the end; what is confirmed went there too.
    best = min(search_rows, key=lambda row: row.rungs[60]["loss"])
    assert best.state == "completed"
    completed = {row.mixers for row in rows if row.state == "completed" and row.phase != "confirm"}
    assert {row.mixers for row in rows if row.phase == "confirm"} <= completed
    # Steps and FLOPs are counted as they were made, over all attempts.
    assert {row.id: row.steps for row in rows} == dict(trainer.steps)
    batch = study.training.batch_size
    assert store.counts("s").flops == sum(
        3 * row.flops * row.steps * batch for row in rows if row.flops
    )
    assert used_up(store, store.study("s"), study, Budget.parse(24)) is not None
    cut = {row.id for row in search_rows if row.state == "pruned"}
    _, rows = work(store, tmp_path, 36, trainer)
    assert len(rows) == 36
    assert [row.id for row in rows if row.id in cut and row.steps > 60]
    assert {row.id: row.steps for row in rows} == dict(trainer.steps)


def test__run__few_trials__the_search_is_brought_to_its_end_before_the_confirmation(
    store, tmp_path
):
    _, rows = work(store, tmp_path, 8, Trainer(), strategy={"name": "exhaustive"})
    assert Counter(row.phase for row in rows) == {"baseline": 2, "search": 4, "confirm": 2}
    assert sum(row.state == "completed" for row in rows if row.phase == "search") == 1


@pytest.mark.parametrize("share", [0.3, 1.7])
def test__run__rungs_and_flops__never_more_than_the_budget(store, tmp_path, share):
    study = study_spec()
    one = 3 * count_flops(study.encoder_spec(parse_architecture("attention*2"))) * 32 * STEPS
    budget = int(9 * share * one)
    _, rows = work(store, tmp_path, f"{budget}flop", Trainer())
    spent = sum(3 * row.flops * row.steps * 32 for row in rows if row.flops)
    assert store.counts("s").flops == spent <= budget
    assert budget - spent < one


def test__run__rungs_and_time__a_promoted_trial_cut_by_its_end_goes_on_under_a_longer_one(
    store, tmp_path
):
    trainer = TimedTrainer(store)
    study, rows = work(store, tmp_path, "200s", trainer)
    spent = store.counts("s").busy_s
    # It ends at a step boundary.
    assert trainer.now == spent
    assert 200 <= spent < 205
    assert store.study("s").n_running == 0
    assert used_up(store, store.study("s"), study, Budget.parse("200s")) is not None
    assert work(store, tmp_path, "200s", trainer)[1] == rows
    [cut] = [row for row in rows if row.state not in FINAL_STATES]
    assert (cut.state, cut.reason) == ("queued", OUT_OF_TIME)
    made, n = trainer.steps[cut.id], len(trainer.order)
    assert max(cut.rungs) < made < STEPS
    _, rows = work(store, tmp_path, "600s", trainer)
    assert trainer.order[n] == (cut.id, made)
    assert next(row for row in rows if row.id == cut.id).state in ("completed", "pruned")
    ended = {row.id: row.steps for row in rows if row.state in FINAL_STATES}
    assert ended == {number: trainer.steps[number] for number in ended}


def small_study(**changes):
    """Real trainings of milliseconds."""
    return study_from(
        {
            "task": {"kind": "faults.copy"},
            "encoder": {"d_model": 16, "n_layers": 2, "d_ff": 16, "dropout": 0.1},
            "space": {"choices": ["attention", "average", "identity"]},
            "baselines": {"reference": "attention", "cheap": "average"},
            "training": {"steps": 8, "batch_size": 4, "validations": 2},
            "strategy": {"name": "exhaustive"},
            "rungs": [2, 5],
            "reduction": 2,
            "recall": False,
        }
        | changes
    )


def test__run__real_trainings__a_promoted_trial_is_that_of_one_piece(faults, tmp_path, monkeypatch):
    monkeypatch.setenv("SEARCH_CACHE_DIR", str(faults))
    monkeypatch.setenv("SEARCH_FILES_DIR", str(tmp_path / "files"))
    monkeypatch.setenv("SEARCH_THREADS", "1")
    study = small_study()
    store = search.open(f"sqlite:///{tmp_path / 'search.db'}", create=True)
    search.run(study, 6, store, name="s", in_process=True)
    rows = store.rows("s", curves=True)
    promoted = [row for row in rows if row.phase == "search" and row.state == "completed"]
    assert promoted
    for row in promoted:
        config = TrialConfig(
            study=small_study(rungs=[]),
            spec=study.encoder_spec(parse_architecture(row.notation)),
            seed=row.seed,
            cache_dir=str(faults),
        )
        whole = run_trial(config, report=lambda message: None, should_stop=lambda: None)
        assert row.selection == whole.evaluations["selection"]
        assert [step for step, _ in row.curve] == [2, 4, 5, 8]
        attempts = store.trial(row.id)["attempts"]
        assert [attempt["resumed_step"] for attempt in attempts] == [0, 2, 5]
        assert [attempt["outcome"] for attempt in attempts] == ["pruned", "pruned", "completed"]
    # Cut trials keep their checkpoints, ended ones do not.
    [folder] = (tmp_path / "files").glob("*/checkpoints")
    kept = {int(path.name.removeprefix("trial-")) for path in folder.iterdir()}
    assert kept == {row.id for row in rows if row.state == "pruned"}
    store.close()

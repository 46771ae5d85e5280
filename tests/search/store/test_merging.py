"""Taking another store's studies in, checked against a store in which all was trained at once."""

import pytest
import store_factory
from sqlalchemy import func, select

from search.errors import InputError, NothingThereError
from search.store import copying
from search.store.repo import Store
from search.store.tables import Base, Trial

STACKS = ("attention*2", "sepconv*2", "sepconv, attention", "attention, sepconv")


@pytest.fixture
def other(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/other.db") as opened:
        yield opened


def document(store, number, study="demo"):
    """All that is known of a trial, without what belongs to the store it stands in."""
    trial_id = next(row.id for row in store.rows(study) if row.number == number)
    found = store.trial(trial_id)
    for name in ("trial", "reused_from", "worker"):
        found.pop(name, None)
    found["attempts"] = [{**a, "worker_id": None, "study_id": None} for a in found["attempts"]]
    return found


def board(store, study="demo"):
    return [
        {name: value for name, value in line.items() if name not in ("study", "best_trial")}
        for line in store.leaderboard(study)
    ]


def sizes(store):
    """The number of rows of every table."""
    with store.reading() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in Base.metadata.sorted_tables
        }


def test__merge__study_that_is_not_here__reads_the_same_under_new_ids(store, other):
    store_factory.fill(store, "mine", training_key="mine")
    store_factory.fill(other, seeds=3)
    other.save_verdicts(other.study("demo").id, [])
    other.record_look(other.study("demo").id, 8)
    [merged] = store.merge(other)
    assert (merged.created, merged.added, merged.duplicates, merged.left_out) == (True, 12, 0, 0)
    assert [document(store, n) for n in range(12)] == [document(other, n) for n in range(12)]
    assert board(store) == board(other)
    assert store.looks("demo") == other.looks("demo") == (8,)
    here, there = store.counts("demo"), other.counts("demo")
    assert (here.by_phase, here.flops) == (there.by_phase, there.flops)
    assert here.busy_s == pytest.approx(there.busy_s, abs=0.05)
    ids = [row.id for row in store.rows("mine")] + [row.id for row in store.rows("demo")]
    assert len(set(ids)) == 4 + 12
    before = sizes(store)
    [again] = store.merge(other)
    assert (again.created, again.added, again.duplicates) == (False, 0, 12)
    assert sizes(store) == before | {"events": before["events"] + 1}


def test__merge__study_that_is_here__as_if_all_had_been_trained_here(store, other, tmp_path):
    store_factory.fill(store, architectures=STACKS[:3])
    store_factory.fill(other, architectures=[STACKS[2], STACKS[0], STACKS[3]])
    [merged] = store.merge(other)
    assert (merged.created, merged.added, merged.duplicates) == (False, 1, 2)
    with Store.open(f"sqlite:///{tmp_path}/whole.db") as whole:
        store_factory.fill(whole, architectures=STACKS)
        assert board(store) == board(whole)
        assert store.counts("demo").flops == whole.counts("demo").flops
    assert [row.number for row in store.rows("demo")] == [0, 1, 2, 3]


def test__merge__trials_that_have_not_ended__left_out_until_they_have(store, other):
    study_id = other.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id
    worker = other.register_worker()
    claims = [store_factory.claim_and_commit(other, study_id, worker, s) for s in STACKS[:3]]
    store_factory.reserve(other, study_id, worker)
    other.release(claims[1], False, "preempted")
    other.fail(claims[2], store_factory.failure())
    [merged] = store.merge(other)
    assert (merged.added, merged.left_out) == (1, 3)
    [row] = store.rows("demo")
    assert (row.number, row.state, store.study("demo").n_running) == (2, "failed", 0)
    other.finish(claims[0], store_factory.result())
    assert [(m.added, m.duplicates, m.left_out) for m in store.merge(other)] == [(1, 1, 2)]
    assert [row.number for row in store.rows("demo")] == [0, 2]


def test__merge__reused_and_derived__point_at_the_rows_here(store, other):
    first = store_factory.fill(other, "first", architectures=STACKS[:1])
    spec = store_factory.study_spec()
    second = other.ensure_study(
        "first.x4", spec, store_factory.PLUGINS, derived_from=(first, "length")
    )
    worker = other.register_worker()
    claim = store_factory.reserve(other, second.id, worker)
    outcome = other.commit(
        claim,
        store_factory.encoder_spec(STACKS[0]),
        seed=0,
        seed_index=0,
        training_key=store_factory.TRAINING_KEY,
    )
    assert outcome == "reused"
    store_factory.fill(other, "unrelated", architectures=STACKS[:1], training_key="else")
    store_factory.fill(store, "mine")
    merged = store.merge(other, study="first", name="theirs")
    assert [one.name for one in merged] == ["theirs", "theirs.x4"]
    [source], [copy] = store.rows("theirs"), store.rows("theirs.x4")
    assert copy.reused_from == source.id
    derived = store.study("theirs.x4")
    assert (derived.base, derived.purpose) == ("theirs", "length")


def test__merge__same_name_for_something_else__refused_and_nothing_changed(store, other):
    store_factory.fill(store, architectures=STACKS[:1])
    store_factory.fill(other, "another", training_key="another")
    changed = store_factory.study_spec(training={"steps": 900})
    store_factory.fill(other, "demo", study=changed)
    before = sizes(store)
    with pytest.raises(InputError, match=r"training\.steps: 600 -> 900\); .*--study demo --name"):
        store.merge(other)
    with pytest.raises(NothingThereError, match="no study 'nobody'; it has: another, demo"):
        store.merge(other, study="nobody")
    assert sizes(store) == before
    [merged] = store.merge(other, study="demo", name="longer")
    assert (merged.name, merged.added) == ("longer", 4)


def test__merge__other_data__refused(store, other):
    for one, data in ((store, "a"), (other, "b")):
        study_id = store_factory.fill(one, architectures=STACKS[:1])
        worker = one.register_worker()
        claim = store_factory.reserve(one, study_id, worker)
        spec = store_factory.encoder_spec(STACKS[1])
        keys = {"seed": 0, "seed_index": 0, "training_key": data}
        one.commit(claim, spec, study_attrs={"data": data}, **keys)
    with pytest.raises(InputError, match="'demo' was made here with other data"):
        store.merge(other, must_agree=("data",))


def test__merge__interrupted_in_the_middle__leaves_the_store_as_it_was(store, other, monkeypatch):
    store_factory.fill(store, architectures=STACKS[:1], training_key="demo")
    for name in ("demo", "second", "third"):
        store_factory.fill(other, name, training_key=name)
    before = sizes(store)
    original, calls = copying.insert_rows, []

    def interrupted(connection, table, values):
        calls.append(table)
        if len(calls) == 20:
            raise KeyboardInterrupt
        original(connection, table, values)

    monkeypatch.setattr(copying, "insert_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.merge(other)
    assert len(calls) == 20
    assert sizes(store) == before
    monkeypatch.undo()
    assert sum(one.added for one in store.merge(other)) == 3 + 4 + 4


def test__copying__every_table_of_a_trial__is_copied():
    owned = {
        table.name
        for table in Base.metadata.sorted_tables
        for key in table.foreign_keys
        if key.column.table is Trial.__table__ and key.parent.name == "trial_id"
    }
    assert {table.__tablename__ for table in copying.OF_A_TRIAL} == owned

import json

import pytest
import store_factory
from sqlalchemy import update

from search.errors import InputError, NothingThereError
from search.rows import VerdictRow
from search.store.studies import differences
from search.store.tables import Study


def test__ensure_study__same_name_and_spec__continues(store):
    spec = store_factory.study_spec()
    first = store.ensure_study("demo", spec, store_factory.PLUGINS)
    second = store.ensure_study("demo", spec, store_factory.PLUGINS)
    assert first.id == second.id
    assert second.space_revision == 1
    assert (second.objective, second.direction) == ("loss", "minimize")
    assert type(spec).model_validate(second.spec) == spec
    assert [event["kind"] for event in store.events()] == ["study_created"]


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "a\tb", "\x1b[31mred"])
def test__ensure_study__name_that_no_list_could_show__refused(store, name):
    with pytest.raises(InputError, match="name"):
        store.ensure_study(name, store_factory.study_spec(), store_factory.PLUGINS)
    assert store.studies() == []


@pytest.mark.parametrize("name", ["two words", "gr\u00f6\u00dfe \U0001f600", "it's; --", "a/b"])
def test__ensure_study__unusual_name__is_found_again(store, name):
    store.ensure_study(name, store_factory.study_spec(), store_factory.PLUGINS)
    assert store.study(name).name == name


def test__ensure_study__other_spec__names_the_paths(store):
    store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS)
    changed = store_factory.study_spec(
        training={"steps": 900}, space={"choices": ["attention", "average"]}, seed=3
    )
    with pytest.raises(InputError) as caught:
        store.ensure_study("demo", changed, store_factory.PLUGINS)
    message = str(caught.value)
    assert "training.steps: 600 -> 900" in message
    assert "seed: 0 -> 3" in message
    assert 'space.choices.1.kind: "sepconv" -> "average"' in message
    assert caught.value.command == "--name NEW"
    assert "\n" not in message
    assert caught.value.exit_code == 2
    assert len(store.studies()) == 1


def test__differences__many__are_all_found():
    old = {"a": [1, {"b": 2}], "c": None, "d": "x"}
    new = {"a": [1, {"b": 3}, 4], "d": "x", "e": 1.5}
    assert list(differences(old, new)) == [
        "a.1.b: 2 -> 3",
        "a.2: (absent) -> 4",
        "c: null -> (absent)",
        "e: (absent) -> 1.5",
    ]


def test__ensure_study__plugin_version_changed__new_revision_keeps_old_trials(store):
    spec = store_factory.study_spec()
    study_id = store_factory.fill(store)
    newer = store_factory.PLUGINS | {"sepconv": ("mixsearch", "0.2.0")}
    assert store.ensure_study("demo", spec, newer).space_revision == 2
    assert store.ensure_study("demo", spec, newer).space_revision == 2
    worker = store.register_worker()
    claim = store_factory.claim_and_commit(store, study_id, worker, "sepconv*3")
    assert {block["version"] for block in store.trial(claim.trial_id)["blocks"]} == {"0.2.0"}
    assert {block["version"] for block in store.trial(1)["blocks"]} == {"0.1.0"}
    assert len(store.rows("demo")) == 5


def test__study__unknown__suggests_the_nearest(store):
    store.ensure_study("mlm-12345678", store_factory.study_spec(), store_factory.PLUGINS)
    with pytest.raises(NothingThereError, match="did you mean mlm-12345678") as caught:
        store.study("mlm-12345679")
    assert caught.value.exit_code == 4
    for call in (store.rows, store.leaderboard):
        with pytest.raises(NothingThereError):
            call("other")
    with pytest.raises(NothingThereError):
        store.trial(99)


def test__study__counts__are_those_of_its_trials(store):
    study_id = store_factory.fill(store)
    worker = store.register_worker()
    claim = store_factory.claim_and_commit(store, study_id, worker, "attention*3")
    row = store.study(study_id)
    assert (row.n_trials, row.n_completed, row.n_running) == (5, 4, 1)
    store.fail(claim, store_factory.failure())
    row = store.studies()[0]
    assert (row.n_trials, row.n_completed, row.n_running) == (5, 4, 0)


def test__save_verdicts__again__replaces_in_order(store):
    study_id = store_factory.fill(store)
    line = VerdictRow(
        contrast="sepconv*2 - attention*2",
        estimate=-0.5,
        low=-0.6,
        high=-0.4,
        unit="nats",
        n=4,
        verdict="better",
    )
    undecided = VerdictRow(
        contrast="layer 0",
        estimate=None,
        low=None,
        high=None,
        unit="nats",
        n=1,
        verdict="undecided",
    )
    store.save_verdicts(study_id, [undecided])
    store.save_verdicts(study_id, [line, vars(undecided)])
    found = store.query("SELECT study, contrast, estimate, verdict FROM verdicts")
    assert found.rows == [
        ("demo", "sepconv*2 - attention*2", -0.5, "better"),
        ("demo", "layer 0", None, "undecided"),
    ]
    store.save_verdicts(study_id, [])
    assert store.query("SELECT * FROM verdicts").rows == []


def test__set_study_state__is_kept_with_its_reason(store):
    study_id = store_factory.fill(store)
    store.set_study_state(study_id, "completed", "space used up")
    row = store.study("demo")
    assert (row.state, row.reason) == ("completed", "space used up")
    assert store.events()[-1]["data"] == {"state": "completed", "reason": "space used up"}
    with pytest.raises(NothingThereError):
        store.set_study_state(99, "paused", None)


def test__ensure_study__stored_with_its_defaults_spelled_out__is_the_same_study(store):
    spec = store_factory.study_spec()
    first = store.ensure_study("demo", spec, store_factory.PLUGINS)
    document = json.loads(spec.model_dump_json())
    assert document != first.spec
    with store.writing() as connection:
        connection.execute(update(Study).values(spec=document))
    assert store.ensure_study("demo", spec, store_factory.PLUGINS).id == first.id
    changed = store_factory.study_spec(match="params")
    with pytest.raises(InputError, match=r'another spec \(match: "none" -> "params"\)'):
        store.ensure_study("demo", changed, store_factory.PLUGINS)


def test__ask_budget__larger_than_before__an_ended_study_runs_again(store):
    row = store.ensure_study("s", store_factory.study_spec(), store_factory.PLUGINS)
    assert row.budget is None
    store.ask_budget(row.id, "12")
    store.set_study_state(row.id, "completed", "budget")
    store.ask_budget(row.id, "12")
    assert store.study("s").state == "completed"
    store.ask_budget(row.id, "24")
    assert (store.study("s").state, store.study("s").budget) == ("running", "24")
    store.set_study_state(row.id, "paused", "by hand")
    store.ask_budget(row.id, "48")
    assert store.study("s").state == "paused"

"""A store of the first schema, filled by the SQL of its time, is brought to the present one."""

import pytest
from sqlalchemy import inspect, text, update
from sqlalchemy.exc import IntegrityError
from store_factory import PLUGINS, study_spec

from search.errors import StoreError
from search.rows import VerdictRow
from search.store import schema, views
from search.store.address import parse_address
from search.store.engine import make_engine, writing
from search.store.repo import Store
from search.store.tables import Trial

NOW = "'2026-01-01 00:00:00.000000+00:00'"
FIRST_STORE = f"""
INSERT INTO studies (id, name, spec, objective, direction, n_layers, reference_kind, state, attrs,
    created_at) VALUES (7, 'old', '{{}}', 'loss', 'minimize', 2, 'attention', 'completed', '{{}}',
    {NOW});
INSERT INTO space_revisions (id, study_id, number, choices, plugins, created_at)
    VALUES (3, 7, 1, '[]', '{{}}', {NOW});
INSERT INTO trials (id, study_id, revision_id, number, phase, state, arch_id, code, notation,
    mixers, n_layers, seed, seed_index, training_key, sampler_params, sampler_attrs, attempt,
    training_flops, created_at) VALUES (11, 7, 3, 0, 'confirm', 'completed', 'a', 'AA',
    'attention*2', '["attention", "attention"]', 2, 1, 1, 'k', '{{}}', '{{}}', 1, 5, {NOW});
INSERT INTO evaluations (trial_id, split, metric, value) VALUES (11, 'test', 'loss', 2.5);
INSERT INTO study_verdicts (study_id, place, contrast, estimate, low, high, unit, n, verdict,
    made_at) VALUES (7, 0, 'AA - BB', -1.0, -2.0, 0.5, 'nats', 4, 'undecided', {NOW})
"""


@pytest.fixture
def first_store(store_url, monkeypatch):
    """The URL of a store as the first version made and filled it."""
    from alembic import command

    address = parse_address(store_url)
    engine = make_engine(address)
    with monkeypatch.context() as patch:
        patch.setattr(views, "VIEWS", ())
        upgrade = command.upgrade
        patch.setattr(command, "upgrade", lambda config, _: upgrade(config, "0001"))
        with writing(engine, address) as connection:
            schema.run_migrations(connection)
            for statement in FIRST_STORE.split(";\n"):
                connection.execute(text(statement))
    engine.dispose()
    return store_url


def test__upgrade__first_schema__rows_stay_and_new_columns_have_their_defaults(first_store):
    with pytest.raises(StoreError, match="schema 0001"):
        Store.open(first_store)
    assert schema.upgrade(first_store) == schema.Upgrade("0001", schema.HEAD)
    with Store.open(first_store) as store:
        (row,) = store.rows("old", documents=True)
        assert (row.number, row.code, dict(row.test)) == (0, "AA", {"loss": 2.5})
        assert (dict(row.recipe), dict(row.documents)) == ({}, {})
        assert (store.study("old").base, store.study("old").purpose) == (None, None)
        assert store.looks("old") == ()
        (verdict,) = store.view("verdicts", "old")
        assert (verdict["contrast"], verdict["kind"], verdict["p_value"]) == (
            "AA - BB",
            "confirmatory",
            None,
        )


def test__upgrade__first_schema__new_keys_and_checks_hold(first_store):
    schema.upgrade(first_store)
    with Store.open(first_store) as store:
        for wrong in (
            "INSERT INTO derived_studies (study_id, base_id, purpose) VALUES (7, 99, 'x')",
            "UPDATE study_verdicts SET kind = 'certain'",
            "INSERT INTO looks (study_id, number, confirm_trials, made_at) "
            f"VALUES (99, 1, 2, {NOW})",
        ):
            with pytest.raises(IntegrityError), store.engine.begin() as connection:
                connection.execute(text(wrong))


def test__upgrade__first_schema__same_tables_as_a_new_store(first_store):
    schema.upgrade(first_store)
    with Store.open(first_store) as store:
        found = inspect(store.engine)
        assert "looks" in found.get_table_names()
        # That they equal the models is checked for new stores, which run the same migrations.
        assert {c["name"] for c in found.get_columns("trials")} >= {"recipe", "training_key"}


def test__ensure_study__derived__knows_its_base_and_outlives_it(store):
    base = store.ensure_study("base", study_spec(), PLUGINS)
    assert (base.base, base.purpose) == (None, None)
    for _ in range(2):
        derived = store.ensure_study(
            "derived", study_spec(seed=1), PLUGINS, derived_from=(base.id, "confirm")
        )
        assert (derived.base, derived.purpose) == ("base", "confirm")
    with store.engine.begin() as connection:
        connection.execute(text("DELETE FROM studies WHERE name = 'base'"))
    (left,) = store.studies()
    assert (left.name, left.base, left.purpose) == ("derived", None, None)


def test__record_look__no_new_trial__is_the_same_look(store):
    study = store.ensure_study("demo", study_spec(), PLUGINS)
    assert store.record_look(study.id, 4) == 1
    assert store.record_look(study.id, 4) == 1
    assert store.record_look(study.id, 8) == 2
    assert store.looks(study.name) == (4, 8)


def test__save_verdicts__kind_and_p_value__come_back(store):
    study = store.ensure_study("demo", study_spec(), PLUGINS)
    line = VerdictRow(
        contrast="S - A",
        estimate=-0.1,
        low=-0.2,
        high=0.1,
        unit="nats",
        n=6,
        verdict="undecided",
        kind="exploratory",
        p_value=0.25,
    )
    store.save_verdicts(study.id, [line])
    (found,) = store.view("verdicts", study.name)
    assert (found["kind"], found["p_value"]) == ("exploratory", 0.25)


def test__upgrade__first_schema__a_trial_may_take_more_flops_than_64_bits_count(first_store):
    schema.upgrade(first_store)
    with Store.open(first_store) as store:
        assert store.trial(11)["training_flops"] == 5
        with store.writing() as connection:
            connection.execute(update(Trial).values(training_flops=2**67))
        assert store.trial(11)["training_flops"] == 2**67
        assert store.query("SELECT training_flops FROM trials").rows == [(2**67,)]

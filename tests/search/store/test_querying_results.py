"""The page on querying: its tables are generated, its queries are run."""

import re
from pathlib import Path

import pytest
import store_factory

from search.store.reference import rewritten
from search.store.tables import Base
from search.store.views import VIEWS

PAGE = Path(__file__).parents[3] / "docs" / "querying-results.md"
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture(scope="module")
def filled(module_store):
    study_id = store_factory.fill(module_store, seeds=3)
    worker = module_store.register_worker()
    claim = store_factory.claim_and_commit(module_store, study_id, worker, "average*2")
    module_store.fail(claim, store_factory.failure())
    return module_store


def test__page__generated_parts__are_up_to_date():
    page = PAGE.read_text(encoding="utf-8")
    assert rewritten(page) == page


def test__page__names_every_view_and_table_with_every_column():
    page = PAGE.read_text(encoding="utf-8")
    for view in VIEWS:
        assert f"### {view.name}\n" in page
    for name, table in Base.metadata.tables.items():
        section = page.split(f"### {name}\n")[1].split("\n###")[0]
        assert set(re.findall(r"^\| `(\w+)`", section, flags=re.MULTILINE)) == set(
            table.columns.keys()
        )


def test__page__has_ten_queries():
    assert len(QUERIES) == 10


@pytest.mark.parametrize("sql", QUERIES, ids=[str(i) for i in range(len(QUERIES))])
def test__page__every_query__runs_and_finds_rows(filled, sql):
    found = filled.query(sql)
    assert found.rows


def test__page__accuracy_by_mixer_of_the_first_layer__is_that_of_the_rows(filled):
    (sql,) = [query for query in QUERIES if "b.layer = 0" in query]
    wanted: dict[str, list[float]] = {}
    for row in filled.rows("demo"):
        if row.state == "completed":
            wanted.setdefault(row.mixers[0], []).append(row.selection["accuracy"])
    found = {kind: (n, mean) for kind, n, mean in filled.query(sql).rows}
    assert found.keys() == wanted.keys() == {"attention", "sepconv"}
    for kind, values in wanted.items():
        assert found[kind] == (len(values), pytest.approx(sum(values) / len(values)))


def test__page__noise_floor__is_the_pooled_variance(filled):
    (sql,) = [query for query in QUERIES if "degrees_of_freedom" in query]
    by_stack: dict[str, list[float]] = {}
    for row in filled.rows("demo"):
        if row.state == "completed":
            by_stack.setdefault(row.notation, []).append(row.selection["loss"])
    squares = sum(
        sum((v - sum(values) / len(values)) ** 2 for v in values) for values in by_stack.values()
    )
    freedom = sum(len(values) - 1 for values in by_stack.values())
    architectures, degrees, variance = filled.query(sql).rows[0]
    assert (architectures, degrees) == (4, freedom)
    assert variance == pytest.approx(squares / freedom)

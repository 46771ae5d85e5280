import pytest
import store_factory

from search.errors import InputError
from search.store.lists import newest_change, view_page
from search.store.repo import Store
from search.store.views import LEADERBOARD, TRIALS_FLAT


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/search.db") as opened:
        store_factory.fill(opened, "demo", seeds=2)
        store_factory.fill(opened, "other", training_key="k1")
        yield opened


def page(store, **options):
    given = {"where": {"study": "demo"}, "limit": 100} | options
    with store.reading() as connection:
        return view_page(connection, given.pop("view", TRIALS_FLAT), **given)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("sort", ["number", "selection", "test", "code", "finished_at"])
def test__view_page__pages_in_turn__the_sorted_list_with_empty_values_last(store, sort, descending):
    every = page(store, sort=sort, descending=descending)
    pages = [
        page(store, sort=sort, descending=descending, limit=3, offset=offset).rows
        for offset in range(0, every.total, 3)
    ]
    assert [row for rows in pages for row in rows] == every.rows
    assert len(every.rows) == every.total == len(store.rows("demo"))
    values = [row[sort] for row in every.rows]
    known = [value for value in values if value is not None]
    assert values == sorted(known, reverse=descending) + [None] * (len(values) - len(known))


def test__view_page__filters__those_rows_and_their_number(store):
    rows = page(store).rows
    wanted = [row for row in rows if row["phase"] in ("baseline", "confirm")]
    found = page(store, where={"study": "demo", "phase": ("baseline", "confirm")}, limit=2)
    assert (found.rows, found.total) == (wanted[:2], len(wanted))
    text = page(store, contains=(("code", "notation"), "SEPCONV, att"))
    assert {row["notation"] for row in text.rows} == {"sepconv, attention"}
    assert page(store, contains=(("notation",), "%")).total == 0
    board = page(store, view=LEADERBOARD, sort="mean")
    assert [row["place"] for row in board.rows] == [1, 2, 3, 4]


@pytest.mark.parametrize("options", [{"sort": "number; --"}, {"where": {"x": 1}}])
def test__view_page__unknown_column__refused_with_the_columns(store, options):
    with pytest.raises(InputError, match=r"there is no column .*; there are study, trial"):
        page(store, **options)


def test__newest_change__reports_and_answers__are_none(store):
    study = store.study("demo")

    def newest():
        with store.reading() as connection:
            return newest_change(connection, [study.id])

    events = store.events(study=study.id)
    assert newest() == max(e["id"] for e in events if e["kind"] not in ("report", "answer"))
    before = newest()
    store.save_verdicts(study.id, [])
    assert newest() == before
    store.set_study_state(study.id, "paused", None)
    assert newest() == store.events(study=study.id)[-1]["id"] > before

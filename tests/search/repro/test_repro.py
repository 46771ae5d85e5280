"""A trial trained again: the same bits here, an interval elsewhere, and a verdict that can fail."""

import json
import math

import pytest
from command import call
from fault_trials import RECIPE
from sqlalchemy import text

import search
from search.errors import InputError, NothingThereError
from search.repro.again import Reproduction, judge, reproduce
from search.repro.comparison import Compared, Fact, beside, differing
from search.repro.interval import interval_of
from search.settings import settings
from search.spec.study_file import study_from


@pytest.fixture(scope="module")
def url(faults, tmp_path_factory):
    """A store with one study, trained here: its baselines, and repeats of two architectures."""
    place = f"sqlite:///{tmp_path_factory.mktemp('repro') / 'search.db'}"
    spec = study_from(
        {
            "task": {"kind": "faults.copy"},
            "encoder": {"d_model": 16, "n_layers": 2, "d_ff": 16, "dropout": 0.1},
            "space": {"choices": [{"kind": "faults.trap"}, {"kind": "identity"}]},
            "baselines": {"reference": "faults.trap", "cheap": "identity"},
            "training": RECIPE,
            "strategy": {"name": "exhaustive"},
            "recall": False,
        }
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEARCH_CACHE_DIR", str(faults / "cache"))
        patch.setenv("SEARCH_THREADS", "1")
        search.run(spec, 6, place, name="demo", in_process=True)
    return place


@pytest.fixture(autouse=True)
def cache(faults, monkeypatch):
    monkeypatch.setenv("SEARCH_CACHE_DIR", str(faults / "cache"))
    monkeypatch.setenv("SEARCH_LOG_DIR", str(faults / "logs"))


@pytest.fixture
def store(url, tmp_path):
    """A copy, so that a test may falsify it."""
    import sqlite3

    with sqlite3.connect(url.removeprefix("sqlite:///")) as source:
        source.execute("VACUUM INTO ?", [str(tmp_path / "copy.db")])
    source.close()
    with search.open(str(tmp_path / "copy.db")) as opened:
        yield opened


def again(store, number, **options):
    row = store.rows("demo")[number]
    return reproduce(store, store.study("demo"), row, settings(), in_process=True, **options)


def falsify(store, statement, **values):
    with store.writing() as connection:
        assert connection.execute(text(statement), values).rowcount >= 1


@pytest.mark.parametrize("number", [0, -1])
def test__reproduce__same_machine_and_versions__every_bit_and_nothing_stored(store, number):
    watched = []
    before = store.rows("demo"), store.counts("demo"), store.events(limit=10_000)
    made = again(store, number, watch=lambda step, metrics: watched.append((step, metrics["loss"])))
    assert (made.verdict, made.holds) == ("bitwise", True)
    assert made.recorded == made.repeated
    assert tuple(watched) == store.rows("demo")[number].curve
    sizes = {one.what: one.n for one in made.compared}
    confirmed = store.rows("demo")[number].phase == "confirm"
    assert confirmed == (number == -1)
    assert sizes["evaluations"] == (1 + confirmed) * len(store.rows("demo")[0].selection)
    assert sizes["curve"] >= 3 * RECIPE["validations"]
    assert sizes["mixer proof"] == 1
    assert (store.rows("demo"), store.counts("demo"), store.events(limit=10_000)) == before


def test__reproduce__last_bit_of_one_point_is_another__found_and_named(store):
    row = store.rows("demo")[1]
    step, value = row.curve[0]
    falsify(
        store,
        "UPDATE metric_points SET value = :v WHERE trial_id = :t AND step = :s "
        "AND split = 'selection' AND metric = 'loss'",
        **{"v": math.nextafter(value, 9.0), "t": row.id, "s": step},
    )
    commit = store.trial(row.id)["environment"]["commit"]
    made = again(store, 1)
    curve = made.compared[0]
    assert (curve.what, curve.n - curve.equal) == ("curve", 1)
    assert curve.first.startswith(f"selection.loss at step {step}: recorded ")
    assert 0 < curve.largest < 1e-12
    if commit.endswith("+changes"):
        assert [fact.name for fact in made.facts] == ["commit"]
    else:
        assert (made.verdict, made.facts) == ("different", ())


def test__reproduce__other_versions__the_interval_decides(store):
    row = next(r for r in store.rows("demo") if r.phase == "confirm")
    facts = store.trial(row.id)["environment"] | {"torch": "1.0", "machine": "pdp11"}
    falsify(store, "UPDATE environments SET facts = :f", f=json.dumps(facts))
    interval = interval_of(row, store.rows("demo"), "loss")
    moved = row.selection["loss"] + (interval.high - interval.low) / 8
    falsify(
        store,
        "UPDATE evaluations SET value = :v WHERE trial_id = :t AND split = 'selection' "
        "AND metric = 'loss'",
        **{"v": moved, "t": row.id},
    )
    made = again(store, row.number)
    assert {("torch", "1.0"), ("machine", "pdp11")} <= {(f.name, f.recorded) for f in made.facts}
    assert (made.verdict, made.holds) == ("inside", True)
    assert made.interval.low < made.repeated < made.interval.high
    assert made.recorded == moved != made.repeated


FACT = (Fact(name="torch", recorded="1.0", now="2.0"),)


@pytest.mark.parametrize(
    ("equal", "facts", "exact", "repeated", "verdict"),
    [
        (5, FACT, True, 9.0, "bitwise"),
        (4, (), True, 2.5, "different"),
        (4, (), False, 2.5, "inside"),
        (4, FACT, True, 2.5, "inside"),
        (4, FACT, True, 9.0, "outside"),
        (4, FACT, True, None, "outside"),
    ],
)
def test__judge__what_differs_and_where__verdict(equal, facts, exact, repeated, verdict):
    rows = [repeat(0, 2.4), repeat(1, 2.5), repeat(2, 2.6)]
    interval = interval_of(rows[0], rows, "loss")
    compared = [Compared(what="curve", n=5, equal=equal)]
    assert judge(compared, facts, exact, repeated, interval) == verdict
    if verdict in ("inside", "outside"):
        assert judge(compared, facts, exact, repeated, None) == "unknown"


def repeat(seed, loss, arch_id="a"):
    from search.rows import TrialRow

    return TrialRow(
        id=seed,
        study="demo",
        number=seed,
        phase="confirm",
        state="completed",
        arch_id=arch_id,
        selection={"loss": loss},
    )


def test__interval_of__three_repeats__students_interval_of_a_difference():
    rows = [repeat(0, 2.4), repeat(1, 2.5), repeat(2, 2.6), repeat(3, 1.0, "b")]
    own = interval_of(rows[1], rows, "loss")
    # t of 97.5 % at 2 degrees of freedom is 4.3027; the SD of 2.4, 2.5, 2.6 is 0.1.
    half = 4.302652729911275 * math.sqrt(2) * 0.1
    assert (own.low, own.high) == pytest.approx((2.5 - half, 2.5 + half))
    assert (own.df, own.source) == (2, "repeats of this architecture")
    other = interval_of(rows[3], rows, "loss")
    assert (other.low, other.df) == (pytest.approx(1.0 - half), 2)
    assert other.source == "repeats of all architectures"
    assert interval_of(rows[3], rows[3:], "loss") is None


def test__differing__edited_checkouts__never_the_same():
    same = {"commit": "abc", "torch": "2"}
    assert differing(same, same) == ()
    edited = same | {"commit": "abc+changes"}
    assert [fact.name for fact in differing(edited, edited)] == ["commit"]
    assert [fact.name for fact in differing({"a": "1"}, {"b": "1"})] == ["a", "b"]


def test__beside__missing_and_extra_values__not_equal():
    found = beside("curve", {"a": 1.0, "b": None, "c": 3.0}, {"b": None, "c": 3.5, "d": 4.0})
    assert (found.n, found.equal, found.largest) == (4, 1, 0.5)
    assert found.first == "a: recorded 1.0, now none"


def test__reproduce__what_cannot_be_trained_again__refused(store, tmp_path):
    demo = store.study("demo")
    falsify(store, "UPDATE trials SET state = 'failed' WHERE id = 2")
    with pytest.raises(NothingThereError, match="trial 1 of 'demo' is failed"):
        again(store, 1)
    falsify(store, "UPDATE studies SET attrs = :a", a=json.dumps({"mixsearch:data": "f" * 64}))
    with pytest.raises(InputError, match="begun with other data"):
        again(store, 0)
    assert demo.name == "demo"


def test__repro__command__prints_the_comparison_and_ends_with_its_code(
    capsys, url, monkeypatch, tmp_path
):
    done = call(capsys, "repro", "0", "--store", url)
    assert done.code == 0, done.err
    assert "verdict       reproduced to the last bit" in done.out
    assert "selection" not in done.err
    assert done.err.count("step") >= RECIPE["validations"]

    made = Reproduction(
        study="demo",
        number=0,
        verdict="outside",
        facts=FACT,
        compared=(Compared(what="curve", n=2, equal=1, first="x", largest=0.5),),
        objective="loss",
        recorded=2.0,
        repeated=3.0,
        interval=interval_of(repeat(0, 2.0), [repeat(0, 2.0), repeat(1, 2.1)], "loss"),
    )
    monkeypatch.setattr("search.repro.again.reproduce", lambda *args, **options: made)
    failed = call(capsys, "repro", "demo", "0", "--store", url)
    assert failed.code == 1
    assert "environment   torch: 1.0 -> 2.0" in failed.out
    assert "outside the interval" in failed.error_line
    document = json.loads(call(capsys, "repro", "demo", "0", "--store", url, "--json").out)
    assert (document["verdict"], document["holds"]) == ("outside", False)
    assert call(capsys, "repro", "--store", url).code == 2
    assert call(capsys, "repro", "demo", "99", "--store", url).code == 4

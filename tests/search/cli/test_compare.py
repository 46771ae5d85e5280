import json
from collections.abc import Callable

import pytest
import store_factory
from command import call

from mixers import EncoderSpec
from search.engine.claims import FINGERPRINT
from search.store.repo import Store

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two studies that may be compared, one of another task, one of other data, one empty."""
    url = f"sqlite:///{tmp_path_factory.mktemp('compare') / 'search.db'}"
    with Store.open(url) as opened:
        for name, changes in {
            "first": {},
            "second": {"strategy": {"name": "random"}},
            "shorter-text": {"task": {"kind": "mlm", "seq_len": 32}},
            "faster": {"training": {"learning_rate": 0.5}},
            "other-data": {"seed": 1},
            "swept": {"recipe": "sweep"},
        }.items():
            study_id = store_factory.fill(
                opened,
                name,
                seeds=3,
                study=store_factory.study_spec(**changes),
                loss_of=_loss_of(name),
                training_key=name,
            )
            _begun_with(opened, study_id, "d1" if name != "other-data" else "d2")
        opened.ensure_study("empty", store_factory.study_spec(), store_factory.PLUGINS)
    return url


def _loss_of(name: str) -> Callable[[EncoderSpec, int], float]:
    """Losses that differ between studies, as runs on other machines do."""
    return lambda spec, seed: store_factory.default_loss(spec, seed + len(name))


def _begun_with(store: Store, study_id: int, fingerprint: str) -> None:
    from sqlalchemy import update

    from search.store.tables import Study

    with store.writing() as connection:
        statement = update(Study).where(Study.id == study_id)
        connection.execute(statement.values(attrs={FINGERPRINT: fingerprint}))


def test__compare__two_samplers__picks_verdicts_kinds_and_shared(
    capsys: Capture, store: str
) -> None:
    done = call(capsys, "compare", "first", "second", "--store", store)
    assert done.code == 0
    for part in ("Answers", "Picks", "Verdicts", "Best by kind", "In both"):
        assert f"\n{part}" in f"\n{done.out}"
    assert 'settings that differ: strategy.name: "tpe" -> "random"' in done.out
    assert max(map(len, done.out.splitlines())) <= 100


def test__compare__json__strict_with_intervals_of_what_both_trained(
    capsys: Capture, store: str
) -> None:
    done = call(capsys, "compare", "first", "second", "--store", store, "--json")
    document = json.loads(done.out)
    assert document["studies"] == ["first", "second"]
    assert {arm["code"] for arm in document["shared"]} == {"AA", "SS", "SA", "AS"}
    assert all(arm["n"] == [2, 2] and arm["split"] == "test" for arm in document["shared"])


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ("shorter-text", "task.seq_len: 64 -> 32"),
        ("faster", "training.learning_rate: 0.012 -> 0.5"),
        ("swept", 'recipe: "shared" -> "sweep"'),
        ("other-data", "data and splits: d1 -> d2; seed: 0 -> 1 (draws the evaluation windows)"),
    ],
)
def test__compare__other_task_recipe_or_splits__refused_with_the_fields(
    capsys: Capture, store: str, other: str, says: str
) -> None:
    done = call(capsys, "compare", "first", other, "--store", store)
    assert (done.code, done.out) == (2, "")
    assert f"cannot be compared, they differ in {says}" in done.error_line


def test__compare__one_study_twice__refused(capsys: Capture, store: str) -> None:
    done = call(capsys, "compare", "first", "first", "--store", store)
    assert done.code == 2
    assert "name two" in done.error_line


def test__compare__unknown_study__code_4(capsys: Capture, store: str) -> None:
    assert call(capsys, "compare", "first", "firts", "--store", store).code == 4

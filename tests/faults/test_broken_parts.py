"""Promises that one process keeps: with the part that keeps one broken, the same steps break it.

Each test takes the same steps twice, first with the part at work.
"""

import http.client
import json
import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import store_factory
import torch
from own_study import Recorder
from served import API, server_of
from sqlalchemy import text
from store_fixtures import copied_store

from search.engine import needs
from search.engine.preparing import Prepared
from search.engine.stopping import StopFlag
from search.errors import StoreError
from search.messages import CheckpointPlan
from search.settings import Settings
from search.store import repo, schema
from search.store.repo import Store
from search.training import checkpointing, checkpoints
from search.training.checkpointing import Keeper, TrainingState, TrialFacts
from search.training.stages import Stages
from search.workers import pull
from service import hub


def keeper(folder: Path, told: list) -> Keeper:
    facts = TrialFacts(
        seconds=0.0, stages={}, peak_memory_bytes=0, probes=(), documents={}, reports=()
    )
    plan = CheckpointPlan(folder=str(folder), every_s=0.0, key="k")
    return Keeper(plan, Stages(), lambda: facts, told.append)


def state(step: int) -> TrainingState:
    weights = {"weight": torch.full((2000,), float(step))}
    return TrainingState(
        step=step,
        model=weights,
        optimizer={},
        schedule={},
        random={},
        unread=torch.zeros(0),
        losses=[],
        step_seconds=[],
    )


def step_after_truncation(folder: Path) -> int | None:
    """Save twice, truncate the newer file, and see where the next attempt goes on."""
    first = keeper(folder, [])
    for step in (3, 5):
        first.save(state(step))
    newest = sorted(folder.iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-200])
    found = keeper(folder, []).find()
    return None if found is None else int(found.state.model["weight"][0])


def test__one_checkpoint_kept__truncated_and_all_steps_are_lost(tmp_path, monkeypatch):
    assert step_after_truncation(tmp_path / "sound") == 3
    monkeypatch.setattr(checkpoints, "KEPT", 1)
    assert step_after_truncation(tmp_path / "broken") is None


def test__damage_unheard__truncated_checkpoint_ends_the_attempt(tmp_path, monkeypatch):
    damage = checkpoints.DAMAGED
    monkeypatch.setattr(checkpoints, "DAMAGED", ())
    with pytest.raises(damage):
        step_after_truncation(tmp_path)


@contextmanager
def no_room(n_bytes: int = 4096) -> Iterator[None]:
    """Let no file of this process grow beyond some bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test__refusal_of_the_disk_unheard__full_disk_ends_the_training(tmp_path, monkeypatch):
    told: list = []
    kept = keeper(tmp_path, told)
    kept.save(state(3))
    with no_room():
        kept.save(state(4))
        kept.save(state(5))
    assert [message.text.partition(" (")[0] for message in told] == [
        "no checkpoint could be written at step 4"
    ]
    monkeypatch.setattr(checkpointing, "OSError", (), raising=False)
    with no_room(), pytest.raises(OSError, match="File too large"):
        kept.save(state(6))
    found = keeper(tmp_path, []).find()
    assert found is not None
    assert found.state.step == 3


def first_data(stream: http.client.HTTPResponse) -> int | None:
    """The id of the next event of a stream; None where it gives a sign of life first."""
    while not (line := stream.readline()).startswith((b"data:", b": beat")):
        assert line, "the stream has ended"
    return json.loads(line.partition(b":")[2])["id"] if line.startswith(b"data:") else None


def missed_and_first(url: str) -> tuple[int, int | None]:
    """Let an event happen, resume from before it; returns its id and what comes first."""
    with Store.open(url) as store, server_of(url) as (base, _):
        last = store.events(limit=10_000)[-1]["id"]
        store.set_study_state(store.study("demo").id, "running", "again")
        [missed] = store.events(last)
        place = urlsplit(base)
        assert place.hostname is not None
        with closing(http.client.HTTPConnection(place.hostname, place.port, timeout=20)) as line:
            line.request("GET", f"{API}/events/stream", headers={"Last-Event-ID": str(last)})
            return missed["id"], first_data(line.getresponse())


def test__place_of_a_resuming_reader_forgotten__what_it_missed_does_not_come(tmp_path, monkeypatch):
    url = copied_store("sqlite", tmp_path)
    with Store.open(url) as store:
        store_factory.fill(store)
    missed, first = missed_and_first(url)
    assert first == missed
    follow = hub.Hub.follow
    monkeypatch.setattr(
        hub.Hub, "follow", lambda self, after, study: follow(self, self.look(), study)
    )
    missed, first = missed_and_first(url)
    assert first is None


def opened(url: str, tmp_path: Path) -> tuple[bool, list[str]]:
    """Whether a worker opens a study, and what it says of it."""
    seen = Recorder()
    with Store.open(url) as store:
        local = Settings(cache_dir=tmp_path, files_dir=tmp_path / "files")
        desk = pull.Desk(store, local, None, 0, seen, StopFlag())
        return desk.open(store.study("demo")) is not None, seen.messages


def test__versions_of_packages_not_compared__a_worker_trains_with_another_one(
    tmp_path, monkeypatch
):
    url = copied_store("sqlite", tmp_path)
    with Store.open(url) as store:
        spec = store_factory.study_spec()
        store.ensure_study("demo", spec, {"attention": ("pack", "1.0")})
    monkeypatch.setattr(pull, "prepare", lambda study, cache_dir: Prepared("f"))
    monkeypatch.setattr(needs, "plugins_of", lambda study: {"attention": ("pack", "2.0")})
    is_open, said = opened(url, tmp_path)
    assert not is_open
    assert "pack 2.0 here" in said[0]
    monkeypatch.setattr(pull, "refuse_other_plugins", lambda row, study: None)
    assert opened(url, tmp_path) == (True, [])


@pytest.mark.parametrize(("version", "advice"), [("0002", "upgrade it"), ("9999", "newer")])
def test__version_of_a_store_not_looked_at__another_one_is_written_to(
    ready_url, monkeypatch, version, advice
):
    def is_written() -> bool:
        with suppress(StoreError), Store.open(ready_url) as store:
            store.register_worker()
        with Store(made.engine, made.address, made.lease_s).reading() as connection:
            return bool(connection.execute(text("SELECT count(*) FROM workers")).scalar())

    with Store.open(ready_url) as made:
        with made.writing() as connection:
            connection.execute(text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '{version}'"))
        with pytest.raises(StoreError, match=advice):
            Store.open(ready_url)
        assert not is_written()
        monkeypatch.setattr(repo, "require_current", lambda schema, address: None)
        assert is_written()

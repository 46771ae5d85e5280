"""Which files a collection removes, on a folder with everything that may lie there."""

import os

import pytest
import store_factory

from search.errors import InputError
from search.files import Files
from search.upkeep import gc

STACKS = ("attention*2", "sepconv*2", "sepconv, attention")


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path / "files")


@pytest.fixture
def trials(store, files):
    """Ids of three ended trials, the best last, and of one that waits; each with its files."""
    study_id = store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id
    worker = store.register_worker()
    claims = [
        store_factory.claim_and_commit(store, study_id, worker, notation)
        for notation in (*STACKS, "attention, sepconv")
    ]
    store.fail(claims[0], store_factory.failure())
    store.finish(claims[1], store_factory.result(2.5))
    store.finish(claims[2], store_factory.result(2.4))
    store.release(claims[3], False, "preempted")
    for claim in claims:
        lay_out(files, claim.trial_id)
    lay_out(files, 999)
    return [claim.trial_id for claim in claims]


def lay_out(files: Files, trial_id: int) -> None:
    folder = files.checkpoints_of(trial_id)
    folder.mkdir(parents=True)
    for age, name in enumerate(("step-8-x.zip.7.part", "step-000000004-x.zip", "step-8-x.zip")):
        path = folder / name
        path.write_bytes(b"0123456789")
        os.utime(path, ns=(age * 10**9, age * 10**9))


def left(files: Files) -> dict[int, list[str]]:
    """The names that are left, by trial."""
    return {
        int(folder.name.removeprefix("trial-")): sorted(path.name for path in folder.iterdir())
        for folder in files.checkpoints.iterdir()
        if folder.name.startswith("trial-")
    }


OLDER, NEWEST, PART = "step-000000004-x.zip", "step-8-x.zip", "step-8-x.zip.7.part"


@pytest.mark.parametrize(
    ("keep", "ended", "best"),
    [
        ("all", [OLDER, NEWEST], [OLDER, NEWEST]),
        ("last", [NEWEST], [NEWEST]),
        ("best", None, [NEWEST]),
    ],
)
def test__collect__policy__keeps_what_it_says_and_all_that_is_in_use(
    store, files, trials, keep, ended, best
):
    everything = sorted([OLDER, NEWEST, PART])
    before = left(files)
    planned = gc.collect(store, files, keep, dry_run=True)
    assert left(files) == before == dict.fromkeys([*trials, 999], everything)
    done = gc.collect(store, files, keep)
    expected = {trials[0]: ended, trials[1]: ended, trials[2]: best, trials[3]: everything}
    assert left(files) == {trial: names for trial, names in expected.items() if names}
    assert done == planned
    assert done.size_bytes + done.kept_bytes == 5 * 30
    assert done.kept_bytes == 10 * sum(len(names) for names in left(files).values())
    assert gc.collect(store, files, keep).freed == ()


def test__collect__links_and_strangers__left_alone_with_what_they_point_at(
    store, files, trials, tmp_path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "step-8-x.zip").write_bytes(b"precious")
    (files.checkpoints / "trial-1000").symlink_to(outside)
    (files.checkpoints / "trial-1").joinpath("step-000000001-x.zip").symlink_to(
        outside / "step-8-x.zip"
    )
    (files.checkpoints / "notes").mkdir()
    (files.checkpoints / "trial-7x").mkdir()
    (files.checkpoints / "trial-12").write_text("a file")
    (files.spool).mkdir()
    (files.spool / "result.json").write_text("{}")
    done = gc.collect(store, files, "best")
    assert [path.name for path in done.left_alone] == [
        "notes",
        "trial-1000",
        "trial-12",
        "trial-7x",
    ]
    assert all(path.exists() for path in done.left_alone)
    assert (outside / "step-8-x.zip").read_bytes() == b"precious"
    assert (files.spool / "result.json").exists()
    assert not (files.checkpoints / "trial-1").exists()


def test__collect__room_is_a_link__refused(store, files, trials, tmp_path):
    files.checkpoints.rename(tmp_path / "elsewhere")
    files.checkpoints.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is a link"):
        gc.collect(store, files, "best")
    assert len(list((tmp_path / "elsewhere").iterdir())) == 5


def test__collect__trial_queued_again_meanwhile__keeps_its_files(store, files, trials, monkeypatch):
    before = left(files)
    read = gc.read_owners

    def stale(opened, ids):
        found = read(opened, ids)
        store.retry(store.study("demo").id)
        return found

    monkeypatch.setattr(gc, "read_owners", stale)
    done = gc.collect(store, files, "best")
    assert left(files)[trials[0]] == before[trials[0]]
    assert trials[1] not in left(files)
    assert {one.number for one in done.freed} == {1, 2, None}


def test__collect__no_folder_yet__nothing_to_do(store, tmp_path):
    done = gc.collect(store, Files(tmp_path / "none"), "best")
    assert (done.freed, done.kept_bytes, done.size_bytes) == ((), 0, 0)

import multiprocessing
import os
import resource
import signal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from search.training import checkpoints
from search.training.checkpoints import Checkpoint, latest, save


def checkpoint(step, **facts):
    generator = torch.Generator().manual_seed(step)
    weights = torch.randn(20, 30, generator=generator)
    return Checkpoint(step, facts, {"model": {"w": weights, "tied": weights[:5]}, "losses": [0.1]})


def steps_in(folder):
    return [int(path.name.split("-")[1]) for path in sorted(folder.iterdir())]


def test__save__then_latest__every_value_is_back_bit_for_bit(tmp_path):
    made = checkpoint(7, seconds=0.1 + 0.2, reports=[{"loss": 1e-17}])
    save(tmp_path / "a" / "trial-1", "key", made)
    found = latest(tmp_path / "a" / "trial-1", "key")
    assert (found.step, found.facts) == (7, made.facts)
    assert found.tensors["losses"] == [0.1]
    assert torch.equal(found.tensors["model"]["w"], made.tensors["model"]["w"])
    assert torch.equal(found.tensors["model"]["tied"], made.tensors["model"]["tied"])


def test__save__again_and_again__the_newest_two_stay(tmp_path):
    for step in (5, 10, 15, 20):
        save(tmp_path, "key", checkpoint(step))
    assert steps_in(tmp_path) == [15, 20]
    assert latest(tmp_path, "key").step == 20


def test__latest__folder_missing_or_empty__none(tmp_path):
    assert latest(tmp_path / "nowhere", "key") is None
    assert latest(tmp_path, "key") is None


def test__latest__checkpoint_of_another_training__not_read(tmp_path):
    path = save(tmp_path, "one training", checkpoint(9))
    assert latest(tmp_path, "another") is None
    # Not even under the name that the other one's would have.
    os.link(path, tmp_path / path.name.replace(*map(checkpoints.mark, ("one training", "another"))))
    told = []
    assert latest(tmp_path, "another", warn=told.append) is None
    assert "it belongs to another training" in told[0]
    assert latest(tmp_path, "one training").step == 9


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test__latest__newest_one_truncated_or_damaged__the_one_before(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("trial")
    save(folder, "key", checkpoint(3))
    path = save(folder, "key", checkpoint(4))
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        path.write_bytes(whole[:at])
    else:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
    told = []
    found = latest(folder, "key", warn=told.append)
    if found.step == 4:
        # A bit that holds no content, such as a date of the archive.
        assert torch.equal(found.tensors["model"]["w"], checkpoint(4).tensors["model"]["w"])
        assert not told
    else:
        assert found.step == 3
        assert path.name in told[0]
        assert steps_in(folder) == [3]


def test__latest__file_that_would_run_code__refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "refuse_objects", lambda tree, path: None)

    class Trap:
        def __reduce__(self):
            return (os.system, (f"touch {tmp_path / 'ran'}",))

    save(tmp_path, "key", Checkpoint(1, {}, {"model": Trap()}))
    assert latest(tmp_path, "key") is None
    assert not (tmp_path / "ran").exists()


def test__save__disk_takes_no_more__an_error_and_the_older_one_untouched(tmp_path):
    save(tmp_path, "key", checkpoint(1))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        with pytest.raises(OSError, match="File too large"):
            save(tmp_path, "key", checkpoint(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    assert steps_in(tmp_path) == [1]
    assert latest(tmp_path, "key").step == 1


def save_and_die(folder, name):
    """Saves step 2 in a process that is killed when it calls a function of the system."""
    target = {"fsync": os, "replace": checkpoints.Path}[name]
    setattr(target, name, lambda *arguments: os.kill(os.getpid(), signal.SIGKILL))
    save(folder, "key", checkpoint(2))


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test__save__killed_in_it__the_older_one_is_used_and_the_next_one_tidies_up(tmp_path, name):
    save(tmp_path, "key", checkpoint(1))
    process = multiprocessing.get_context("fork").Process(
        target=save_and_die, args=(tmp_path, name)
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert len(list(tmp_path.glob("*.part"))) == 1
    assert latest(tmp_path, "key").step == 1
    save(tmp_path, "key", checkpoint(2))
    assert steps_in(tmp_path) == [1, 2]

"""`search stop`, `pause`, `resume` and `retry`, as a person or a program calls them."""

import json
from pathlib import Path

import pytest
import store_factory
from command import call

from search.store.repo import Store

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A study with a failed trial and one in hand."""
    place = f"sqlite:///{tmp_path / 'search.db'}"
    with Store.open(place) as store:
        study = store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS)
        worker = store.register_worker()
        failed = store_factory.claim_and_commit(store, study.id, worker, "attention*2")
        store.fail(failed, store_factory.failure(cause="out_of_memory"))
        store_factory.claim_and_commit(store, study.id, worker, "sepconv*2")
    return place


def test__pause_and_resume__words_and_documents__say_what_follows(
    capsys: Capture, url: str
) -> None:
    paused = call(capsys, "pause", "demo", "--store", url)
    assert (paused.code, paused.out) == (
        0,
        "demo: paused; 1 trial in hand, saved and returned at the next step\n",
    )
    assert "paused (by hand)" in call(capsys, "ls", "--store", url).out
    again = json.loads(call(capsys, "pause", "--store", url, "--json").out)
    assert again == {
        **{"study": "demo", "before": "paused", "state": "paused", "changed": False},
        **{"running": 1, "queued": 0},
    }
    assert "hands out trials again" in call(capsys, "resume", "--store", url).out
    assert "is running; only a paused" in call(capsys, "resume", "--store", url).out


def test__stop__ends_for_good__until_it_is_reopened_by_name(capsys: Capture, url: str) -> None:
    stopped = call(capsys, "stop", "--store", url)
    assert stopped.out == (
        "demo: stopped; 1 trial in hand, ended at the next step; 'search report' draws its answer\n"
    )
    refused = call(capsys, "resume", "--store", url)
    assert (refused.code, "search resume --stopped" in refused.error_line) == (2, True)
    again = json.loads(call(capsys, "stop", "--store", url, "--json").out)
    assert (again["before"], again["state"], again["changed"]) == ("stopped", "stopped", False)
    assert "hands out trials again" in call(capsys, "resume", "--stopped", "--store", url).out


def test__retry__failed_trial__queued_and_said_so(capsys: Capture, url: str) -> None:
    call(capsys, "pause", "--store", url)
    none = call(capsys, "retry", "--state", "diverged", "--store", url)
    assert (none.code, none.out) == (0, "demo: nothing to try again: no trial is diverged\n")
    done = call(capsys, "retry", "--state", "failed", "--cause", "out_of_memory", "--store", url)
    assert done.out == (
        "demo: 1 trial queued again\n  0: was failed (out_of_memory); attempt 2 follows\n"
    )
    assert "search resume demo" in done.err
    listed = json.loads(call(capsys, "show", "demo", "--store", url, "--json").out)
    assert [trial["state"] for trial in listed["trials"]] == ["queued", "running"]
    nothing = json.loads(call(capsys, "retry", "--store", url, "--json").out)
    assert nothing == {"study": "demo", "state": "paused", "trials": []}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["stop", "dmo"], 4, "did you mean demo?"),
        (["pause", "--store", "absent.db"], 4, "there is no store"),
        (["retry", "--state", "completed"], 2, "expected failed, diverged, stopped"),
        (["retry", "--cause", "bad_luck"], 2, "expected error, out_of_memory, hung"),
        (["retry", "--trial", "1"], 2, "trial 1 of 'demo' is running"),
        (["retry", "--trial", "5"], 4, "it has trials 0 to 1"),
    ],
)
def test__wrong_input__one_line_and_nothing_changed(
    capsys: Capture, url: str, arguments: list[str], code: int, words: str
) -> None:
    place = [] if "--store" in arguments else ["--store", url]
    done = call(capsys, *arguments, *place)
    assert done.code == code
    assert words in done.error_line
    with Store.open(url) as store:
        assert store.study("demo").state == "running"
        assert [row.state for row in store.rows("demo")] == ["failed", "running"]

import json
from pathlib import Path

import pytest
from command import Outcome, call
from store_factory import PLUGINS, claim_and_commit, study_spec

from search.store.repo import Store

Capture = pytest.CaptureFixture[str]
FAILED = "ValueError: something went wrong in forward"


def read(capsys: Capture, *arguments: str) -> Outcome:
    done = call(capsys, *arguments)
    assert done.code == 0, done.err
    return done


def test__ls__json__counts_of_each_study(capsys: Capture, filled_store: str) -> None:
    studies = json.loads(read(capsys, "ls", "--store", filled_store, "--json").out)
    assert [(s["name"], s["n_trials"], s["n_completed"], s["n_running"]) for s in studies] == [
        ("demo", 14, 12, 1)
    ]


def test__ls__text__one_row_each(capsys: Capture, two_studies: str) -> None:
    lines = read(capsys, "ls", "--store", two_studies).out.splitlines()
    assert [line.split()[0] for line in lines] == ["study", "empty", "hopeless"]


def test__ls__nobody_works_on_it__idle(capsys: Capture, two_studies: str) -> None:
    lines = read(capsys, "ls", "--store", two_studies).out.splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["idle", "idle"]


@pytest.mark.parametrize("command", ["ls", "show"])
def test__reading__trial_of_a_lost_worker__back_in_the_queue(
    capsys: Capture, ready_url: str, command: str
) -> None:
    with Store.open(ready_url, lease_s=-1.0) as store:  # over when it begins
        study_id = store.ensure_study("demo", study_spec(), PLUGINS).id
        claim_and_commit(store, study_id, store.register_worker(), "attention*2")
        assert store.study("demo").n_running == 1
        read(capsys, command, "--store", ready_url)
        assert store.study("demo").n_running == 0
        assert [row.state for row in store.rows("demo")] == ["queued"]


def test__show__study__its_trials_with_metrics_and_failures(
    capsys: Capture, filled_store: str
) -> None:
    out = read(capsys, "show", "--store", filled_store).out
    assert "12 completed, 1 failed, 1 running" in out
    rows = {line.split()[0]: line for line in out.splitlines() if line.split()[:1]}
    assert "2.9800" in rows["0"]
    assert "40 s" in rows["0"]
    assert FAILED in rows["12"]


def test__show__limit__last_rows_and_says_so(capsys: Capture, filled_store: str) -> None:
    done = read(capsys, "show", "demo", "--limit", "2", "--store", filled_store)
    assert "the last 2 of 14 trials" in done.err
    assert "2.9800" not in done.out


def test__show__study_as_json__rows_as_the_store_has_them(
    capsys: Capture, filled_store: str
) -> None:
    document = json.loads(read(capsys, "show", "demo", "--store", filled_store, "--json").out)
    assert document["study"]["name"] == "demo"
    assert [trial["number"] for trial in document["trials"]] == list(range(14))
    assert document["trials"][4]["test"]["loss"] == pytest.approx(3.03)


@pytest.mark.parametrize("arguments", [["demo", "4"], ["4"]])
def test__show__trial__everything_that_is_known(
    capsys: Capture, filled_store: str, arguments: list[str]
) -> None:
    out = read(capsys, "show", *arguments, "--store", filled_store).out
    for part in (
        "4 of demo (confirm)",
        "completed (trained to the end)",
        "attention*2",
        "route         every token sees every other after 1 layer",
        "Evaluations",
        "3.0300",
        "Curve",
        "45 ms to 55 ms",
        "286.1 MiB",
        "Probe",
        "sha256 " + "0" * 64,
        "Attempts",
        "torch    2.13.0",
    ):
        assert part in out


def test__show__failed_trial__reason_and_traceback(capsys: Capture, filled_store: str) -> None:
    out = read(capsys, "show", "demo", "12", "--store", filled_store).out
    assert f"error         {FAILED}" in out
    assert "traceback" in out


def test__show__trial_as_json__whole_document(capsys: Capture, filled_store: str) -> None:
    trial = json.loads(read(capsys, "show", "demo", "3", "--store", filled_store, "--json").out)
    assert trial["number"] == 3
    assert [block["notation"] for block in trial["blocks"]] == ["attention", "sepconv"]
    assert trial["probes"]["init"]["p_sep"] is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "dema"], "did you mean demo?"),
        (["show", "demo", "99"], "it has trials 0 to 13"),
        (["show", "99"], "no trial 99"),
    ],
)
def test__show__what_is_not_there__code_4(
    capsys: Capture, filled_store: str, arguments: list[str], says: str
) -> None:
    done = call(capsys, *arguments, "--store", filled_store)
    assert done.code == 4
    assert says in done.error_line


def test__show__several_studies_and_no_name__lists_them(capsys: Capture, two_studies: str) -> None:
    done = call(capsys, "show", "--store", two_studies)
    assert done.code == 2
    assert "empty, hopeless" in done.error_line


@pytest.mark.parametrize("command", [["ls"], ["show"], ["query", "SELECT 1"]])
def test__reading__no_store__code_4_and_none_is_made(
    capsys: Capture, tmp_path, command: list[str]
) -> None:
    place = tmp_path / "none.db"
    done = call(capsys, *command, "--store", str(place))
    assert done.code == 4
    assert str(place) in done.error_line
    assert not place.exists()


def test__reading__foreign_database__code_3_and_left_alone(capsys: Capture, tmp_path) -> None:
    place = tmp_path / "notes.txt"
    place.write_text("dear diary")
    done = call(capsys, "ls", "--store", str(place))
    assert done.code == 3
    assert "not an SQLite database" in done.error_line
    assert place.read_text() == "dear diary"


def test__show__objectives_and_limits__are_told(capsys: Capture, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'search.db'}"
    asked = {"objectives": ("loss", "flops"), "limits": {"max_params": 200_000.0}}
    with Store.open(url, create=True) as store:
        store.ensure_study("judged", study_spec(**asked), PLUGINS)
    lines = read(capsys, "show", "judged", "--store", url).out.splitlines()
    assert "beside it   flops" in lines
    assert "limits      max_params 200000" in lines

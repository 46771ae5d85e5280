"""`search run` and the reading commands as real processes, on a small text."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from command import PROGRAM, Outcome, environment, spawn
from plugin_packages import EXAMPLE, lay_out, pip_install
from tiny_run import own_folders, tiny

FIRST_LAYER = (
    "SELECT b.kind, COUNT(*) AS n, AVG(e.value) AS accuracy FROM trial_blocks b "
    "JOIN evaluations e ON e.trial_id = b.trial_id AND e.metric = 'accuracy' "
    "AND e.split = 'selection' WHERE b.layer = 0 GROUP BY b.kind ORDER BY accuracy DESC"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


def rows_of(folder: Path, sql: str, *options: str) -> list[dict[str, object]]:
    done = spawn("query", sql, "--json", *options, cwd=folder)
    assert done.code == 0, done.err
    found: list[dict[str, object]] = json.loads(done.out)
    return found


@pytest.fixture(scope="module")
def first(folder: Path) -> Outcome:
    return spawn("run", "--budget", "6", *tiny(folder), cwd=folder, env=own_folders(folder))


def test__run__budget_of_six__answer_of_one_screen_last(first: Outcome) -> None:
    assert first.code == 0, first.err
    lines = first.out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith("Answer")
    assert any("next: search show" in line for line in lines[-4:])


def test__run__piped__one_plain_line_a_trial_and_no_noise(first: Outcome) -> None:
    lines = first.err.splitlines()
    assert lines[0].startswith("preparing study mlm-")
    counted = [line.split()[0] for line in lines if "  loss " in line]
    assert counted == [f"{n}/6" for n in range(1, 7)]
    assert "\x1b" not in first.err + first.out
    assert "warn" not in first.err.lower()


def test__run__again__starts_nothing_and_says_so(folder: Path, first: Outcome) -> None:
    again = spawn("run", "--budget", "6", *tiny(folder), cwd=folder, env=own_folders(folder))
    assert again.code == 0
    assert "nothing started" in again.err
    assert again.out.splitlines()[-1] == first.out.splitlines()[-1]
    assert rows_of(folder, "SELECT COUNT(*) AS n FROM trials") == [{"n": 6}]


def test__run__larger_budget_as_json__starts_two_more(folder: Path, first: Outcome) -> None:
    done = spawn(
        "run", "--budget", "8", "--json", *tiny(folder), cwd=folder, env=own_folders(folder)
    )
    assert done.code == 0, done.err
    events = [json.loads(line) for line in done.out.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "study_started"
    assert kinds[-2:] == ["finished", "answer"]
    assert kinds.count("trial_started") == kinds.count("trial_finished") == 2
    assert events[-2]["started"] == 2
    assert events[-1]["answer"]["leaders"]


def test__query__accuracy_by_mixer_of_the_first_layer(folder: Path, first: Outcome) -> None:
    rows = rows_of(folder, FIRST_LAYER)
    assert {"attention", "sepconv"} <= {row["kind"] for row in rows}
    assert all(isinstance(row["accuracy"], float) for row in rows)


def test__show__a_real_trial__proof_costs_and_probe(folder: Path, first: Outcome) -> None:
    out = spawn("show", "0", cwd=folder).out
    for part in ("mixers.builtin.attention", "256 of 256 pairs", "latency", "torch", "sha256"):
        assert part in out


def test__dry_run__plan_and_no_store(tmp_path: Path, folder: Path) -> None:
    done = spawn(
        "run", "--dry-run", "--budget", "24", *tiny(folder), cwd=tmp_path, env=own_folders(folder)
    )
    assert done.code == 0, done.err
    assert "nothing was started" in done.out
    assert "dearest stack" in done.out
    assert list(tmp_path.iterdir()) == []


def test__ctrl_c__nothing_left_running_and_the_same_command_continues(
    tmp_path: Path, folder: Path
) -> None:
    command = ["run", "--budget", "1", "--json", *tiny(folder, training__steps=100)]
    process = subprocess.Popen(
        [*PROGRAM, *command],
        cwd=tmp_path,
        env=environment(**own_folders(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if json.loads(line)["event"] == "progress":
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err.splitlines()[-1].startswith("search: interrupted")
    assert "Traceback" not in err
    states = rows_of(tmp_path, "SELECT state, COUNT(*) AS n FROM trials GROUP BY state")
    assert states == [{"state": "queued", "n": 1}]
    done = spawn(*command, cwd=tmp_path, env=own_folders(folder))
    assert done.code == 0, done.err
    states = rows_of(tmp_path, "SELECT state, COUNT(*) AS n FROM trials GROUP BY state")
    assert states == [{"state": "completed", "n": 1}]


def test__example_plugin__installed_by_pip_and_searched_beside_the_built_ins(
    tmp_path: Path, folder: Path
) -> None:
    site = pip_install(EXAMPLE, tmp_path / "site", tmp_path)
    choices = ["attention(rotary=true)", "acme-mixers.shift"]
    options = tiny(folder, space__choices=choices, strategy__name="exhaustive")
    env = own_folders(folder) | {"PYTHONPATH": str(site)}
    done = spawn("run", "--budget", "3", *options, cwd=tmp_path, env=env)
    assert done.code == 0, done.err
    kinds = rows_of(
        tmp_path,
        "SELECT DISTINCT b.kind FROM trial_blocks b JOIN trials t ON t.id = b.trial_id "
        "WHERE t.state = 'completed'",
    )
    assert {row["kind"] for row in kinds} == {"attention", "acme-mixers.shift"}
    listed = spawn("show", cwd=tmp_path)
    assert "acme-mixers.shift (acme-mixers 1.0.0)" in listed.out


def test__C57__every_trial_fails__code_1_and_first_cause_everywhere(tmp_path: Path) -> None:
    site = lay_out("faults", tmp_path / "site")
    settings = {
        "task": {"kind": "faults.copy"},
        "encoder": {"d_model": 16, "n_layers": 2, "d_ff": 16},
        "space": {
            "choices": ["faults.trap(fault=raises, at=1)", "faults.trap(fault=raises, at=2)"]
        },
        "baselines": {"reference": "faults.trap(fault=raises, at=1)"},
        "training": {"steps": 4, "batch_size": 4, "validations": 1},
    }
    (tmp_path / "study.yaml").write_text(json.dumps(settings))
    env = own_folders(tmp_path) | {"PYTHONPATH": str(site)}
    done = spawn("run", "study.yaml", "--budget", "3", cwd=tmp_path, env=env)
    assert done.code == 1
    assert "3 of 3 trials failed" in done.error_line
    assert "no such filter" in done.error_line
    for command in (["best"], ["export", "--view", "leaderboard"]):
        read = spawn(*command, cwd=tmp_path, env=env)
        assert read.code == 4, read.err
    shown = spawn("show", cwd=tmp_path, env=env)
    assert shown.code == 0
    assert shown.out.count("no such filter") == 3


def test__own_text__wikitext_2__answered(tmp_path: Path, test_data: Path, folder: Path) -> None:
    text = test_data / "wikitext-2" / "wiki.valid.tokens"
    options = tiny(folder)[2:]
    done = spawn(
        *("run", "--data", str(text), "--budget", "1", *options),
        cwd=tmp_path,
        env=own_folders(tmp_path),
    )
    assert done.code == 0, done.err
    assert "wiki.valid.tokens" in done.out

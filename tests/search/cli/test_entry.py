import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import PROGRAM, call, environment, spawn

HEAVY = ("torch", "pytorch_lightning", "optuna", "sqlalchemy", "plotly", "transformers", "pandas")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"]])
def test__help__in_a_fresh_process__imports_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import atexit, json, sys, time; start = time.perf_counter();"
        "atexit.register(lambda: print(json.dumps([time.perf_counter() - start,"
        f" sorted(set(sys.modules) & set({HEAVY!r}))]), file=sys.stderr));"
        "from search.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments], capture_output=True, text=True, timeout=60
    )
    seconds, heavy = json.loads(done.stderr.splitlines()[-1])
    sys.stdout.write(f"search {' '.join(arguments)}: {seconds:.2f} s\n")
    assert done.returncode == 0
    assert heavy == []


def test__unknown_command__nearest_name_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "schem")
    assert done.code == 2
    assert "'schema'" in done.error_line


def test__unknown_option__one_line_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    done = call(capsys, "schema", "--colour")
    assert done.code == 2
    assert "--colour" in done.error_line
    assert "search schema --help" in done.error_line


def test__debug__at_the_end_of_the_line__shows_the_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    done = call(capsys, "mixers", "show", "atention", "--debug")
    assert done.code == 2
    assert "Traceback" in done.err
    assert done.err.splitlines()[-1].startswith("search: unknown mixer 'atention'")


def test__debug__from_the_environment__shows_the_traceback(tmp_path: Path) -> None:
    done = spawn("mixers", "show", "atention", cwd=tmp_path, env={"SEARCH_DEBUG": "1"})
    assert "Traceback" in done.err


def test__ctrl_c__in_any_command__one_line_and_code_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from search.store.repo import Store

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "open", interrupted)
    done = call(capsys, "ls")
    assert done.code == 130
    assert done.error_line.startswith("search: interrupted")


def test__ctrl_c__while_modules_are_imported__one_line_and_code_130(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import search.cli.app

    class Interrupted:
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, search.cli.app.__name__, Interrupted())
    done = call(capsys, "ls")
    assert done.code == 130
    assert done.error_line.startswith("search: interrupted")


def test__reader_of_the_pipe_goes_away__quiet(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*PROGRAM, "schema", "encoder"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=60,
    )
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 141


def test__disk_full__one_line_and_code_3(tmp_path: Path) -> None:
    done = spawn("schema", "encoder", "-o", "/dev/full", cwd=tmp_path)
    assert done.code == 3
    assert "disk is full" in done.error_line


def test__completion__of_commands__offers_them(tmp_path: Path) -> None:
    done = spawn(
        cwd=tmp_path,
        env={
            "_SEARCH_COMPLETE": "complete_bash",
            "COMP_WORDS": "search mix",
            "COMP_CWORD": "1",
        },
    )
    assert done.code == 0
    assert done.out.split() == ["mixers"]

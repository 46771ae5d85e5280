"""Call the command `search` from tests: in this process, or as a real process of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-P", "-c", "from search.cli import main; main()"]


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def error_line(self) -> str:
        """The one line of an error; fails if there is more than that or a traceback."""
        lines = [line for line in self.err.splitlines() if line.startswith("search: ")]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err + self.out, self.err
        return lines[0]


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> Outcome:
    """Run a command in this process."""
    from search.cli import main

    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    return Outcome(code, said.out, said.err)


def environment(**variables: str) -> dict[str, str]:
    """The environment of a command under test: nothing of the caller's own settings."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("SEARCH_")}
    kept |= {"OMP_NUM_THREADS": "1", "COLUMNS": "120"}
    if "SEARCH_CACHE_DIR" in os.environ:
        kept["SEARCH_CACHE_DIR"] = os.environ["SEARCH_CACHE_DIR"]
    return kept | variables


def spawn(
    *arguments: str, cwd: Path, timeout_s: float = 300, env: Mapping[str, str] | None = None
) -> Outcome:
    """Run a command as a process of its own and wait for it."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env=environment(**(env or {})),
        capture_output=True,
        text=True,
        timeout=timeout_s,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)

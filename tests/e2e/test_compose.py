"""docker-compose.yml is true: its commands and environment run natively, on a real PostgreSQL."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from command import spawn
from postgres import Cluster, shared_cluster, why_not
from ruamel.yaml import YAML
from tiny_run import own_folders, tiny

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yml"
REQUIRED = re.compile(r"\$\{(\w+):\?[^}]*\}")
WITH_DEFAULT = re.compile(r"\$\{\w+:-([^}]*)\}")


def services() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(FILE.read_text())["services"]
    return found


def words(command: list[str]) -> list[str]:
    return [WITH_DEFAULT.sub(r"\1", word) for word in command]


@pytest.fixture
def server() -> Cluster:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    return shared_cluster()


@pytest.mark.postgres
def test__compose__migrate_run_report__work_with_their_own_commands(
    server: Cluster, tmp_path: Path
) -> None:
    stack = services()
    database = server.create_database()
    variables = stack["run"]["environment"]
    assert set(variables) == {"SEARCH_STORE", "PGPASSWORD"}
    store = variables["SEARCH_STORE"]
    assert store.startswith("postgresql+psycopg://search@db/search")
    local = store.replace("search@db/search", f"{server.user}@/{database}?host={server.folder}")
    env = {"SEARCH_STORE": local, "PGPASSWORD": "secret-word", **own_folders(tmp_path)}

    migrated = spawn(*words(stack["migrate"]["command"]), cwd=tmp_path, env=env)
    assert migrated.code == 0, migrated.err
    command = words(stack["run"]["command"])
    assert command[command.index("--budget") + 1] == "24"
    command[command.index("--budget") + 1] = "2"
    ran = spawn(*command, *tiny(tmp_path), cwd=tmp_path, env=env)
    assert ran.code == 0, ran.err
    told = spawn(*words(stack["report"]["command"]), cwd=tmp_path, env=env)
    assert told.code == 0, told.err
    assert "default" in told.out
    said = "".join(outcome.out + outcome.err for outcome in (migrated, ran, told))
    assert "secret-word" not in said


@pytest.mark.postgres
def test__compose__health_check__is_a_real_command(server: Cluster) -> None:
    kind, program, *options = services()["db"]["healthcheck"]["test"]
    assert (kind, program) == ("CMD", "pg_isready")
    known = [option for option in options if not option.startswith("--username")]
    ready = [str(server.programs / program), *known, f"--host={server.folder}"]
    assert subprocess.run(ready, check=False, capture_output=True).returncode == 0
    nowhere = [str(server.programs / program), *known, "--host=/nonexistent"]
    assert subprocess.run(nowhere, check=False, capture_output=True).returncode != 0


def test__compose__no_password_in_the_file__and_it_must_be_given() -> None:
    text = FILE.read_text()
    required = REQUIRED.findall(text)
    assert required
    assert set(required) == {"POSTGRES_PASSWORD"}
    for service in services().values():
        for name, value in service.get("environment", {}).items():
            if "PASSWORD" in name:
                assert REQUIRED.fullmatch(value)


def test__compose__the_tool_accepts_it(tmp_path: Path) -> None:
    tool = shutil.which("docker-compose")
    if tool is None:
        pytest.skip("docker-compose is not installed")
    without = {k: v for k, v in os.environ.items() if k != "POSTGRES_PASSWORD"}
    refused = subprocess.run(
        [tool, "-f", FILE, "config"], env=without, capture_output=True, text=True, check=False
    )
    assert refused.returncode != 0
    assert "set POSTGRES_PASSWORD" in refused.stderr
    accepted = subprocess.run(
        [tool, "-f", FILE, "config"],
        env=without | {"POSTGRES_PASSWORD": "x"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert accepted.returncode == 0, accepted.stderr


def test__dockerfile__copies_what_the_install_needs() -> None:
    copied = {
        word
        for line in (ROOT / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY")
        for word in line.split()[1:-1]
    }
    assert {"mixers", "search", "service", "pyproject.toml", "constraints.txt"} <= copied
    assert all((ROOT / name).exists() for name in copied)

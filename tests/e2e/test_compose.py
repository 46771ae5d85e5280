"""docker-compose.yml is true: its commands and environment run natively, on a real PostgreSQL."""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from command import PROGRAM, Outcome, environment, spawn
from postgres import Cluster, shared_cluster, why_not
from ruamel.yaml import YAML
from tiny_run import own_folders, tiny

from service.settings import ServiceSettings

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
def test__compose__migrate_token_queue_worker_report__work_with_their_own_commands(
    server: Cluster, tmp_path: Path
) -> None:
    stack = services()
    database = server.create_database()
    ours = {name: part for name, part in stack.items() if "build" in part}
    assert all(set(p["environment"]) == {"SEARCH_STORE", "PGPASSWORD"} for p in ours.values())
    store = stack["worker"]["environment"]["SEARCH_STORE"]
    assert store.startswith("postgresql+psycopg://search@db/search")
    local = store.replace("search@db/search", f"{server.user}@/{database}?host={server.folder}")
    env = {"SEARCH_STORE": local, "PGPASSWORD": "secret-word", **own_folders(tmp_path)}
    said = []

    def started(name: str, *more: str) -> Outcome:
        outcome = spawn(*words(stack[name]["command"]), *more, cwd=tmp_path, env=env)
        assert outcome.code == 0, (name, outcome.err)
        said.append(outcome.out + outcome.err)
        return outcome

    started("migrate")
    assert len(started("token").out.split()) == 1
    assert words(stack["queue"]["command"])[-2:] == ["--budget", "24"]
    started("queue", "--budget", "2", *tiny(tmp_path))
    assert "2 trials started here" in started("worker", "--until-idle").err
    assert "default" in started("report").out
    assert stack["worker-gpu"]["command"] == stack["worker"]["command"]
    assert "secret-word" not in "".join(said)


@pytest.mark.postgres
def test__compose__service__answers_on_its_port_with_its_own_command(
    server: Cluster, tmp_path: Path
) -> None:
    stack = services()
    url = server.url(server.create_database())
    env = {"SEARCH_STORE": url, **own_folders(tmp_path)}
    assert spawn("upgrade", cwd=tmp_path, env=env).code == 0
    command = words(stack["service"]["command"])
    refused = spawn(*command, cwd=tmp_path, env=env)
    assert refused.code != 0
    assert "token" in refused.error_line
    assert spawn(*words(stack["token"]["command"]), cwd=tmp_path, env=env).code == 0
    inside = stack["service"]["ports"][0].split(":")[-1]
    assert int(inside) == ServiceSettings().port
    port = free_port()
    process = subprocess.Popen(
        [*PROGRAM, *command, "--port", str(port)],
        cwd=tmp_path,
        env=environment(**env),
        stderr=subprocess.PIPE,
    )
    try:
        assert answer_of(f"http://127.0.0.1:{port}/api/v1/health") == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def answer_of(url: str) -> int:
    """The status of a URL, once something listens there."""
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                status: int = answer.status
                return status
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


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

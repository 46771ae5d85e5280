"""`search serve` and `search token`, as the command line runs them."""

import json
import re
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
from command import PROGRAM, call, environment
from served import API, client_of

from search.errors import InputError
from search.settings import Settings
from service.settings import ServiceSettings, service_settings

PATIENCE_S = 60


def test__token__new_ls_revoke__make_list_and_end_one(
    filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = call(capsys, "token", "new", "ada", "--role", "submit", "--store", filled)
    text = made.out.strip()
    with client_of(filled, token=text) as client:
        assert client.get(f"{API}/session").json()["role"] == "submit"
    listed = call(capsys, "token", "ls", "--store", filled, "--json").out
    [row] = json.loads(listed)
    assert (row["name"], row["role"], row["revoked_at"]) == ("ada", "submit", None)
    assert text not in listed
    assert call(capsys, "token", "new", "ada", "--store", filled).code == 2
    assert call(capsys, "token", "revoke", "ada", "--store", filled).code == 0
    assert call(capsys, "token", "revoke", "eve", "--store", filled).code == 4
    with client_of(filled, token=text) as client:
        assert client.get(f"{API}/session").status_code == 401


def test__serve__where_it_may_not_or_cannot_listen__is_refused(
    filled: str, capsys: pytest.CaptureFixture[str]
) -> None:
    open_to_all = call(capsys, "serve", "--store", filled, "--host", "0.0.0.0", "--port", "0")
    assert open_to_all.code == 2
    assert "search token new" in open_to_all.error_line
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "--port" in call(capsys, "serve", "--store", filled, "--port", port).error_line


def test__serve__told_to_end_with_a_stream_open__ends_well(filled: str) -> None:
    command = [*PROGRAM, "serve", "--store", filled, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        base = next(word for word in said.split() if word.startswith("http://"))
        with urllib.request.urlopen(f"{base}{API}/ready", timeout=PATIENCE_S) as answer:
            assert json.load(answer)["status"] == "ok"
        with urllib.request.urlopen(f"{base}{API}/events/stream", timeout=PATIENCE_S) as stream:
            assert stream.readline().startswith(b"id: ")
            process.send_signal(signal.SIGINT)
            stream.read()  # ended in good order; one that is cut raises IncompleteRead
        assert process.wait(timeout=PATIENCE_S) == 0
        assert process.stderr.read() == ""


def test__settings__each_variable__is_in_the_one_table_with_its_default() -> None:
    page = (Path(__file__).parents[2] / "docs" / "deploying.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.+) \| (.+) \|$", page, re.MULTILINE)
    described = {name: (default.strip("`"), text) for name, default, text in rows}
    assert len(described) == len(rows)
    for settings in (Settings, ServiceSettings):
        prefix = settings.model_config["env_prefix"]
        for name, field in settings.model_fields.items():
            variable = "SEARCH_STORE" if name == "store" else f"{prefix}{name.upper()}"
            default, text = described.pop(variable)
            assert " ".join(str(field.description).split()) == text
            if field.default_factory is None:
                assert default == (
                    "-" if field.default in (None, ()) else str(field.default).lower()
                )
    assert set(described) == {
        *("SEARCH_SERVER", "SEARCH_TOKEN", "SEARCH_DEBUG"),
        *("PGPASSWORD", "POSTGRES_PASSWORD", "BUDGET"),
    }


def test__settings__from_the_environment__are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_SERVE_HOSTS", "a.example, b.example")
    monkeypatch.setenv("SEARCH_STORE", "x.db")
    found = service_settings(port=1, host=None)
    assert (found.hosts, found.store, found.port) == (("a.example", "b.example"), "x.db", 1)
    monkeypatch.setenv("SEARCH_SERVE_PORT", "x")
    with pytest.raises(InputError, match="port"):
        service_settings()

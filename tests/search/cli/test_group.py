from importlib.metadata import EntryPoint

import pytest
from command import call

from search.cli import group

SOURCE = """
import typer
def hello(name: str) -> None:
    "Greet."
    print("hello", name)
app = typer.Typer()
@app.command("one")
def one() -> None:
    print("first")
@app.command("two")
def two() -> None:
    print("second")
number = 3
def _exit() -> None: ...
"""


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch, tmp_path):
    (tmp_path / "greeting_plugin.py").write_text(SOURCE)
    (tmp_path / "exiting_plugin.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    entries = {
        "hello": "greeting_plugin:hello",
        "several": "greeting_plugin:app",
        "number": "greeting_plugin:number",
        "gone": "no_such_module:x",
        "exits": "exiting_plugin:x",
        "schema": "greeting_plugin:hello",
    }
    found = {n: EntryPoint(n, v, group.COMMANDS_GROUP) for n, v in entries.items()}
    monkeypatch.setattr(group, "plugin_entry_points", lambda: found)


@pytest.mark.usefixtures("commands")
class TestRegisteredCommands:
    def test__function__becomes_a_command(self, capsys) -> None:
        done = call(capsys, "hello", "you")
        assert (done.code, done.out) == (0, "hello you\n")

    def test__app__becomes_a_group(self, capsys) -> None:
        assert call(capsys, "several", "two").out == "second\n"

    def test__help__lists_all_and_says_what_is_broken(self, capsys) -> None:
        done = call(capsys, "--help")
        assert done.code == 0
        for name in ("hello", "several", "number", "gone", "exits", "mixers"):
            assert name in done.out
        assert done.out.count("broken") == 3

    @pytest.mark.parametrize("name", ["number", "gone", "exits"])
    def test__broken__one_line_when_called_and_harms_no_other(self, capsys, name) -> None:
        done = call(capsys, name, "--with", "arguments")
        assert done.code == 2
        assert f"command {name!r}" in done.error_line
        assert call(capsys, "hello", "again").code == 0

    def test__name_of_ours__not_replaced(self, capsys) -> None:
        done = call(capsys, "schema", "encoder")
        assert done.code == 0
        assert "hello" not in done.out

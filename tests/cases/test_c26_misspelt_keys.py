"""A misspelt setting in a file, on the command line or over HTTP is refused with its full path."""

from pathlib import Path

import pytest
from command import call
from plugin_packages import lay_out
from ruamel.yaml import YAML
from served import API, client_of

from mixers.registry import mixer_registry

Capture = pytest.CaptureFixture[str]

MISSPELT = {
    "top level": ("tolerence: 0.1", "tolerence=0.1", "tolerence", "tolerance"),
    "section": (
        "training: {lerning_rate: 0.1}",
        "training.lerning_rate=0.1",
        "training.lerning_rate",
        "learning_rate",
    ),
    "mixer": (
        "space: {choices: [{kind: sepconv, kernal_size: 7}]}",
        "space.choices=[{kind: sepconv, kernal_size: 7}]",
        "space.choices.0.sepconv.kernal_size",
        "kernel_size",
    ),
    "notation": (
        "space: {choices: ['sepconv(kernal_size=7)']}",
        "space.choices=['sepconv(kernal_size=7)']",
        "sepconv.kernal_size",
        "kernel_size",
    ),
    "plugin": (
        "space: {choices: [{kind: good-mixers.taps, delay: [2]}]}",
        "space.choices=[{kind: good-mixers.taps, delay: [2]}]",
        "space.choices.0.good-mixers.taps.delay",
        "delays",
    ),
    "data": (
        "task: {kind: mlm, data: {sourse: x.txt}}",
        "task.data.sourse=x.txt",
        "task.mlm.data.sourse",
        "source",
    ),
}


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(lay_out("good", tmp_path / "site"))
    mixer_registry.reset()
    yield
    monkeypatch.undo()
    mixer_registry.reset()


@pytest.mark.parametrize("place", MISSPELT)
def test__C26__file__full_path_nearest_name_and_nothing_queued(
    capsys: Capture, tmp_path: Path, place: str
) -> None:
    text, _, path, meant = MISSPELT[place]
    study = tmp_path / "study.yaml"
    study.write_text(f"seed: 1\n{text}\n")
    store = tmp_path / "search.db"
    done = call(capsys, "run", str(study), "--store", str(store))
    assert done.code == 2
    assert path in done.error_line
    assert f"did you mean {meant!r}" in done.error_line
    assert f"{study}, line 2" in done.error_line
    assert not store.exists()


@pytest.mark.parametrize("place", MISSPELT)
def test__C26__command_line__full_path_nearest_name_and_nothing_queued(
    capsys: Capture, tmp_path: Path, place: str
) -> None:
    _, setting, path, meant = MISSPELT[place]
    store = tmp_path / "search.db"
    done = call(capsys, "run", "--set", setting, "--store", str(store))
    assert done.code == 2
    assert path in done.error_line
    assert f"did you mean {meant!r}" in done.error_line
    assert not store.exists()


def test__C26__over_http__422_with_full_path_and_nearest_name_and_nothing_stored(
    tmp_path: Path,
) -> None:
    bodies = [
        ({"spec": YAML(typ="safe").load(text)}, path, meant)
        for text, _, path, meant in MISSPELT.values()
    ]
    with client_of(f"sqlite:///{tmp_path}/search.db") as client:
        for body, path, meant in [*bodies, ({"spec": {}, "nane": "new"}, "nane", "name")]:
            answer = client.post(f"{API}/studies", json=body)
            assert answer.status_code == 422, (body, answer.text)
            [error] = answer.json()["errors"]
            said = f"{error['path']}: {error['message']}"
            assert said.startswith("nane" if path == "nane" else "spec.")
            assert path in said
            assert f"did you mean {meant!r}" in said
        assert client.get(f"{API}/studies").json()["total"] == 0


def test__C26__several_at_once__each_is_named(capsys: Capture, tmp_path: Path) -> None:
    done = call(
        *(capsys, "run", "--set", "tolerence=1", "--set", "training.lerning_rate=1"),
        *("--store", str(tmp_path / "search.db")),
    )
    assert done.code == 2
    assert "tolerence" in done.error_line
    assert "training.lerning_rate" in done.error_line

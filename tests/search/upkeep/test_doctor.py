import json
import sqlite3
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import store_factory
from command import call, spawn
from plugin_packages import lay_out

from mixers.registry import mixer_registry
from search.settings import Settings
from search.store.repo import Store
from search.store.schema import VERSION_TABLE
from search.upkeep import doctor, findings

Capture = pytest.CaptureFixture[str]


def by_topic(findings: list[doctor.Finding], topic: str) -> list[doctor.Finding]:
    return [finding for finding in findings if finding.topic == topic]


def test__doctor__sound_installation__code_0_and_every_topic(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(capsys, "doctor", "--json")
    findings = json.loads(done.out)
    assert [f for f in findings if f["status"] == "wrong"] == []
    assert done.code == 0
    assert {f["topic"] for f in findings} >= {
        *("version", "dependencies", "import names", "machine", "devices", "cache"),
        *("working directory", "store", "mixers", "plugins"),
    }


def test__import_names__folders_of_those_names_here__named_with_the_way_out(
    tmp_path: Path,
) -> None:
    for room in doctor.ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("")
    done = spawn("doctor", cwd=tmp_path)
    assert done.code == 1
    for room in doctor.ROOMS:
        assert f"'import {room}' here finds {tmp_path / room}" in done.out
        assert f"rename {room!r}" in done.out
    assert done.error_line == "search: 3 things are wrong, see above"


def test__import_names__other_distribution_with_our_package__named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "mixers-0.0.13.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mixers\nVersion: 0.0.13\n")
    (info / "top_level.txt").write_text("mixers\n")
    monkeypatch.syspath_prepend(tmp_path)
    (finding,) = doctor.import_names()
    assert finding.status == "wrong"
    assert "mixers also installs a package called 'mixers'" in finding.detail
    assert "pip uninstall mixers" in finding.advice


def test__store_state__foreign_file__wrong(tmp_path: Path) -> None:
    place = tmp_path / "search.db"
    place.write_text("not a database")
    (finding,) = doctor.store_state(str(place))
    assert finding.status == "wrong"
    assert finding.advice


def test__store_state__older_store__wrong_with_the_command_that_upgrades_it(tmp_path: Path) -> None:
    place = tmp_path / "search.db"
    with Store.open(str(place)) as store, store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE {VERSION_TABLE} SET version_num = '0001'")
    (finding,) = doctor.store_state(str(place))
    assert finding.status == "wrong"
    assert "schema 0001" in finding.detail
    assert finding.advice == f"search upgrade --store {place}"


def test__store_state__filled_and_absent__ok(tmp_path: Path) -> None:
    place = tmp_path / "search.db"
    (absent,) = doctor.store_state(str(place))
    assert (absent.status, place.exists()) == ("ok", False)
    with Store.open(str(place)) as store:
        store_factory.fill(store)
    (finding,) = doctor.store_state(str(place))
    assert finding.status == "ok"
    assert "studies: 1, trials: 4" in finding.detail


def test__store_state__locked_by_another_program__wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from search.store import engine

    monkeypatch.setattr(engine, "BUSY_TIMEOUT_S", 0.2)
    place = tmp_path / "search.db"
    Store.open(str(place)).close()
    other = sqlite3.connect(place, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        (finding,) = doctor.store_state(str(place))
    finally:
        other.close()
    assert finding.status == "wrong"
    assert "cannot be written" in finding.detail


def test__disk__folder_not_there_yet__looks_at_the_nearest_that_is(tmp_path: Path) -> None:
    (finding,) = doctor.disk("cache", tmp_path / "a" / "b")
    assert finding.status == "ok"
    assert not (tmp_path / "a").exists()


def test__disk__little_room__warning_then_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "LOW_DISK_BYTES", 1 << 60)
    (low,) = doctor.disk("cache", tmp_path)
    monkeypatch.setattr(findings, "NO_DISK_BYTES", 1 << 60)
    (none,) = doctor.disk("cache", tmp_path)
    assert (low.status, none.status) == ("warning", "wrong")


def test__versions__requirement_not_met__wrong_with_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        doctor.importlib.metadata, "requires", lambda _: ["torch>=999", "no-such-thing>=1"]
    )
    wrong = by_topic(list(doctor.versions()), "dependency")
    assert [finding.status for finding in wrong] == ["wrong", "wrong"]
    assert wrong[0].advice == 'pip install "torch>=999"'
    assert "no-such-thing is missing" in wrong[1].detail


def test__plugins__one_that_raises__named_and_the_others_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "raising_metric.py").write_text("raise RuntimeError('not today')")
    monkeypatch.syspath_prepend(tmp_path)
    real = doctor.importlib.metadata.entry_points

    def with_a_broken_one(*, group: str) -> list[EntryPoint]:
        broken = EntryPoint("x.bad", "raising_metric:Bad", "search.metrics.v1")
        return [*real(group=group), *([broken] if group == "search.metrics.v1" else [])]

    monkeypatch.setattr(doctor.importlib.metadata, "entry_points", with_a_broken_one)
    findings = list(doctor.plugins())
    (wrong,) = [finding for finding in findings if finding.status == "wrong"]
    assert "RuntimeError: not today" in wrong.detail
    assert len(findings) == 1 + len(doctor.PLUGIN_GROUPS)


def test__mixers_found__broken_plugin__named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.syspath_prepend(lay_out("broken", tmp_path / "site"))
        mixer_registry.reset()
        findings = list(doctor.mixers_found())
    mixer_registry.reset()
    assert (findings[0].status, "attention" in findings[0].detail) == ("ok", True)
    wrong = [finding for finding in findings if finding.status == "wrong"]
    assert len(wrong) == 10
    assert any("no licence for this machine" in finding.detail for finding in wrong)
    assert {finding.advice for finding in wrong} == {"repair or uninstall broken-mixers"}


def test__examine__a_check_that_breaks__reported_and_the_rest_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise OSError("no such call")

    monkeypatch.setattr(doctor, "devices", broken)
    findings = list(doctor.examine(str(tmp_path / "search.db"), Settings(cache_dir=tmp_path)))
    assert any("no such call" in finding.detail for finding in findings)
    assert by_topic(findings, "mixers")

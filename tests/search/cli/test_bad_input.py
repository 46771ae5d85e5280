"""What a user can get wrong: one clear line, the documented code, nothing stored is lost."""

import sqlite3
import subprocess
from pathlib import Path

import pytest
from command import PROGRAM, Outcome, call, environment, spawn
from plugin_packages import lay_out
from tiny_run import own_folders, tiny

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in own_folders(tmp_path).items():
        monkeypatch.setenv(name, value)


def run(capsys: Capture, folder: Path, *options: str) -> Outcome:
    return call(capsys, "run", "--store", str(folder / "search.db"), *options)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--budget", "0"], "budget '0' allows nothing"),
        (["--budget", "banana"], "budget 'banana' is not understood; write 20 (trials)"),
        (["--budget", "-3"], "budget"),
        (["--seed", "banana"], "--seed"),
        (["--set", "training.steps"], "expected path=value"),
        (["--set", "training.steps=many"], "training.steps"),
        (["--set", "space.choices=[atention]"], "did you mean 'attention'?"),
        (["--set", "space.choices=['sepconv(n_filters=7)']"], "7 must divide d_model 64"),
        (["--set", "encoder.d_model=30"], "d_model 30"),
        (["--set", "strategy.name=tpee"], "did you mean 'tpe'?"),
        (["--set", "objectives=[los]"], "did you mean 'loss'?"),
        (["--set", "task.kind=mml"], "did you mean 'mlm'?"),
        (["--device", "gpu"], "--device"),
        (["no-such-study.yaml"], "no-such-study.yaml: No such file"),
    ],
)
def test__run__wrong_words__one_line_code_2_and_no_store(
    capsys: Capture, tmp_path: Path, options: list[str], says: str
) -> None:
    done = run(capsys, tmp_path, *options)
    assert done.code == 2
    assert says in done.error_line
    assert not (tmp_path / "search.db").exists()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.txt", None, "missing.txt"),
        ("empty.txt", b"", "empty.txt"),
        ("tiny.txt", b"Only one short sentence.\n", "tiny.txt"),
        ("binary.txt", bytes(range(256)) * 400, "binary.txt"),
        ("latin.txt", "caf\xe9 cr\xe8me\n".encode("latin-1") * 4000, "latin.txt"),
    ],
)
def test__run__unusable_text__names_the_file(
    capsys: Capture, tmp_path: Path, name: str, content: bytes | None, says: str
) -> None:
    place = tmp_path / name
    if content is not None:
        place.write_bytes(content)
    done = run(capsys, tmp_path, "--data", str(place))
    assert done.code == 2
    assert says in done.error_line


@pytest.mark.parametrize(
    "text", ["a: [1, 2", "seed: 1\nseed: 2", "- just\n- a list", "\x00\x01", "task: [mlm]"]
)
def test__run__broken_study_file__names_it(capsys: Capture, tmp_path: Path, text: str) -> None:
    place = tmp_path / "study.yaml"
    place.write_text(text)
    done = run(capsys, tmp_path, str(place))
    assert done.code == 2
    assert str(place) in done.error_line


def test__run__study_file_in_another_encoding__says_utf_8(capsys: Capture, tmp_path: Path) -> None:
    place = tmp_path / "study.yaml"
    place.write_bytes(b"# caf\xe9\nseed: 1\n")
    done = run(capsys, tmp_path, str(place))
    assert done.code == 2
    assert "UTF-8" in done.error_line


def test__run__store_is_no_database__code_3_and_left_alone(capsys: Capture, tmp_path: Path) -> None:
    place = tmp_path / "search.db"
    place.write_text("dear diary")
    done = run(capsys, tmp_path, *tiny(tmp_path))
    assert done.code == 3
    assert "not an SQLite database" in done.error_line
    assert place.read_text() == "dear diary"


def test__run__store_of_another_program__code_3_and_left_alone(
    capsys: Capture, tmp_path: Path
) -> None:
    place = tmp_path / "search.db"
    with sqlite3.connect(place) as connection:
        connection.execute("CREATE TABLE diary (day TEXT)")
        connection.execute("INSERT INTO diary VALUES ('monday')")
    connection.close()
    before = place.read_bytes()
    done = run(capsys, tmp_path, *tiny(tmp_path))
    assert done.code == 3
    assert "another program" in done.error_line
    assert place.read_bytes() == before


def test__run__store_of_a_newer_version__code_3(capsys: Capture, tmp_path: Path) -> None:
    place = tmp_path / "search.db"
    call(capsys, "upgrade", "--store", str(place))
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE mixsearch_schema SET version_num = '9999'")
    connection.close()
    done = run(capsys, tmp_path, *tiny(tmp_path))
    assert done.code == 3
    assert "install a newer one" in done.error_line


@pytest.mark.parametrize("place", ["no/such/folder/search.db", "."])
def test__run__store_where_none_can_be__code_3(capsys: Capture, tmp_path: Path, place: str) -> None:
    done = call(capsys, "run", "--store", str(tmp_path / place), *tiny(tmp_path))
    assert done.code == 3
    assert str(tmp_path) in done.error_line


def test__run__password_in_a_wrong_url__never_shown(capsys: Capture, tmp_path: Path) -> None:
    done = call(capsys, "run", "--store", "mysql://me:secret@host/db", *tiny(tmp_path))
    assert done.code == 2
    assert "secret" not in done.err + done.out
    assert "mysql" in done.error_line


def test__run__plugin_that_raises_at_import__refused_with_the_reason(tmp_path: Path) -> None:
    site = lay_out("broken", tmp_path / "site")
    done = spawn(
        *("run", "--set", "space.choices=[broken-mixers.raises, attention]"),
        cwd=tmp_path,
        env={"PYTHONPATH": str(site)},
    )
    assert done.code == 2
    assert "no licence for this machine" in done.error_line
    assert "broken-mixers 1.2.3" in done.error_line
    assert not (tmp_path / "search.db").exists()


def test__run__disk_full__code_3_and_nothing_stored_is_lost(
    tmp_path: Path, filled_store: str
) -> None:
    """A file system of its own, filled to the last block beside a store with trials."""
    text = tiny(tmp_path)
    disk = tmp_path / "disk"
    disk.mkdir()
    program = " ".join(f"'{word}'" for word in PROGRAM)
    options = " ".join(f"'{word}'" for word in text)
    script = f"""
        mount -t tmpfs -o size=1m tmpfs '{disk}' || exit 99
        cd '{disk}'
        cp '{filled_store.removeprefix("sqlite:///")}' search.db
        dd if=/dev/zero of=ballast bs=4k 2>/dev/null
        {program} run --name later --budget 1 {options}
        echo "code $?"
        rm ballast
        {program} ls --json
        {program} doctor | grep store
    """
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "bash", "-c", script],
        env=environment(**own_folders(tmp_path)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    if done.returncode == 99 or "unshare:" in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert "code 3" in done.stdout
    line = next(line for line in done.stderr.splitlines() if line.startswith("search: "))
    assert "full" in line
    assert '"n_completed": 12' in done.stdout
    assert "ok       store" in done.stdout

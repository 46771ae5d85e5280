import os
import re
import subprocess
import sys

import pytest
from command import call
from plugin_packages import ok, pip_install, run_python

from mixers.conformance import CHECKS
from search.cli.mixers_new import PackageNames, names_of


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A scaffold as it was written, and the folder it was installed into with pip."""
    from search.cli.mixers_new import write_package

    folder = tmp_path_factory.mktemp("new") / "acme-blends"
    write_package(names_of("acme-blends.soft_blend"), folder)
    scratch = tmp_path_factory.mktemp("build")
    return folder, pip_install(folder, tmp_path_factory.mktemp("site"), scratch)


def test__new__package__passes_its_own_tests_at_once(package, tmp_path):
    folder, site = package
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
         "--rootdir", str(tmp_path), str(folder / "tests")],
        env={**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"\b{2 * len(CHECKS)} passed", done.stdout), done.stdout


def test__new__package__is_found_by_name_and_trains(package, tmp_path):
    code = """
import mixers, torch
info = mixers.available()["acme-blends.soft_blend"]
assert (info.distribution, info.version, info.broken) == ("acme-blends", "0.1.0", None)
spec = mixers.EncoderSpec.of("acme-blends.soft_blend(width=3), attention",
                             d_ff=8, vocab_size=9, d_model=16, max_seq_len=8)
mixers.Encoder(spec)(torch.randint(9, (2, 8))).sum().backward()
print(spec.code, mixers.route(spec).full_after)
"""
    assert ok(run_python(code, package[1], cwd=tmp_path)).split() == ["SA", "2"]


def test__new__package__is_well_formed_python(package):
    folder, _ = package
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length", "100",
         "--select", "E,F,I,B,UP,N,SIM,RUF", str(folder)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test__new__command__names_the_files_and_what_to_do_next(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(capsys, "mixers", "new", "blend")
    assert done.code == 0
    assert done.out.splitlines() == [
        "blend-mixer/pyproject.toml",
        "blend-mixer/blend_mixer.py",
        "blend-mixer/tests/test_blend.py",
        "blend-mixer/README.md",
    ]
    assert "pip install -e 'blend-mixer[test]' && pytest blend-mixer" in done.err
    assert "search mixers check blend-mixer.blend" in done.err
    again = call(capsys, "mixers", "new", "blend")
    assert again.code == 2
    assert "exists and is not an empty folder" in again.error_line
    assert call(capsys, "mixers", "new", "blend", "--out", "other").code == 0


def test__names_of__name__gives_kind_module_and_class():
    names = names_of("acme-mixers2.soft_shift")
    assert names == PackageNames("acme-mixers2", "soft_shift")
    assert (names.kind, names.module, names.class_name) == (
        "acme-mixers2.soft_shift", "acme_mixers2", "SoftShift",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Blend", "in small letters"),
        ("acme.", "in small letters"),
        ("a/b.c", "in small letters"),
        ("acme.class", "in small letters"),
        ("../x", "in small letters"),
        ("mixsearch.blend", "choose another distribution than 'mixsearch'"),
        ("local.blend", "choose another distribution than 'local'"),
        ("9lives.blend", "choose another distribution than '9lives'"),
        ("json.blend", "a module 'json' exists already"),
        ("search.blend", "a module 'search' exists already"),
    ],
)
def test__new__name_that_cannot_be__is_refused_in_one_line(
    capsys, tmp_path, monkeypatch, name, message
):
    monkeypatch.chdir(tmp_path)
    done = call(capsys, "mixers", "new", name)
    assert done.code == 2
    assert message in done.error_line
    assert list(tmp_path.iterdir()) == []

"""The example package: installed by pip for real, used, and the very one of the guide."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_packages import EXAMPLE, ok, pip_install, run_python

from mixers.conformance import CHECKS

GUIDE = Path(__file__).parents[2] / "docs" / "writing-a-mixer.md"
BLOCK = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    scratch = tmp_path_factory.mktemp("build")
    return pip_install(EXAMPLE, tmp_path_factory.mktemp("site"), scratch)


def test__guide__shows_the_files_of_the_package_word_for_word():
    shown = dict(BLOCK.findall(GUIDE.read_text()))
    assert set(shown) == {"pyproject.toml", "acme_mixers.py", "tests/test_shift.py"}
    for name, text in shown.items():
        assert text == (EXAMPLE / name).read_text(), name


def test__guide__shell_blocks__are_commands_of_python():
    lines = re.findall(r'^python -c "(.*)"$', GUIDE.read_text(), re.MULTILINE)
    assert lines
    for line in lines:
        compile(line, "guide", "exec")


def test__example__installed_with_pip__is_found_and_trains(site, tmp_path):
    code = """
import mixers, torch
info = mixers.available()["acme-mixers.shift"]
assert (info.distribution, info.version, info.broken) == ("acme-mixers", "1.0.0", None)
spec = mixers.EncoderSpec.of(
    "acme-mixers.shift(distance=2), attention, acme-mixers.shift",
    d_ff=32, vocab_size=50, d_model=16, max_seq_len=16)
assert spec.code == "TAT"
assert mixers.EncoderSpec.model_validate_json(spec.model_dump_json()) == spec
encoder = mixers.Encoder(spec)
encoder(torch.randint(50, (2, 16))).sum().backward()
assert all(p.grad is not None for p in encoder.parameters())
mixers.testing.check_mixer("acme-mixers.shift")
print(spec.notation)
"""
    assert ok(run_python(code, site, cwd=tmp_path)).strip() == (
        "acme-mixers.shift(distance=2), attention, acme-mixers.shift"
    )


def test__example__its_own_tests__pass(site, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull,
         "--rootdir", str(tmp_path), str(EXAMPLE / "tests")],
        env={**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{3 * len(CHECKS)} passed" in done.stdout, done.stdout

from pathlib import Path

import pytest
from command import call

from search.spec.study import StudySpec
from search.spec.study_file import load_study

Capture = pytest.CaptureFixture[str]


def test__init__default__file_that_loads_as_the_default_study(
    capsys: Capture, tmp_path: Path
) -> None:
    place = tmp_path / "study.yaml"
    done = call(capsys, "init", "-o", str(place))
    assert done.code == 0
    assert f"search run {place}" in done.err
    assert load_study(place) == StudySpec()
    assert place.read_text().count("#") > 30


def test__init__data__put_into_the_study(capsys: Capture, tmp_path: Path) -> None:
    place = tmp_path / "study.yaml"
    call(capsys, "init", "--data", "my notes: old.txt", "-o", str(place))
    assert load_study(place).task.data.source == "my notes: old.txt"


def test__init__file_exists__left_alone_and_code_2(capsys: Capture, tmp_path: Path) -> None:
    place = tmp_path / "study.yaml"
    place.write_text("mine")
    done = call(capsys, "init", "-o", str(place))
    assert done.code == 2
    assert "exists and was left as it is" in done.error_line
    assert place.read_text() == "mine"

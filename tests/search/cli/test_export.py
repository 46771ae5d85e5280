from pathlib import Path

import pytest
from command import call

Capture = pytest.CaptureFixture[str]


def test__C57__export_of_a_study_without_a_trial__says_so(
    capsys: Capture, two_studies: str, tmp_path: Path
) -> None:
    place = tmp_path / "out.csv"
    done = call(capsys, "export", "empty", "--store", two_studies, "-o", str(place))
    assert done.code == 4
    assert not place.exists()


def test__export__csv_to_the_screen_and_parquet_to_a_file__same_rows(
    capsys: Capture, filled_store: str, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    screen = call(capsys, "export", "demo", "--view", "leaderboard", "--store", filled_store)
    place = tmp_path / "rows.parquet"
    call(
        *(capsys, "export", "demo", "--view", "leaderboard", "--store", filled_store),
        *("-o", str(place)),
    )
    assert parquet.read_table(place).num_rows == len(screen.out.splitlines()) - 1 == 4


def test__export__unknown_view__code_2(capsys: Capture, filled_store: str) -> None:
    done = call(capsys, "export", "--view", "leaderbord", "--store", filled_store)
    assert done.code == 2
    assert "leaderboard" in done.error_line

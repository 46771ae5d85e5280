"""Where the files of a store lie, and that forgetting a trial's takes nothing else."""

from pathlib import Path

from search.files import Files
from search.settings import Settings
from search.store.address import parse_address


def test__files__sqlite__beside_the_file_and_a_shared_folder_where_one_is_named(
    tmp_path: Path,
) -> None:
    address = parse_address(str(tmp_path / "search.db"))
    assert Files.of(address, Settings()).root == tmp_path / "search.db.files"
    shared = Files.of(address, Settings(files_dir=tmp_path / "shared"))
    assert shared.root.parent == tmp_path / "shared"
    assert shared.root != Files.of(parse_address("b.db"), Settings(files_dir=tmp_path)).root


def test__forget_checkpoints__of_one_trial__the_others_stay_and_twice_is_once(
    tmp_path: Path,
) -> None:
    files = Files(tmp_path)
    for trial_id in (1, 2):
        folder = files.checkpoints_of(trial_id)
        folder.mkdir(parents=True)
        (folder / "step-1.zip").write_bytes(b"weights")
    for _ in range(2):
        files.forget_checkpoints(1)
        assert [path.name for path in files.checkpoints.iterdir()] == ["trial-2"]
    assert (files.checkpoints_of(2) / "step-1.zip").read_bytes() == b"weights"

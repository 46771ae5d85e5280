from pathlib import Path

import pytest
from texts import write_folder

from search.data.spec import DataSpec
from search.tasks.mlm import MaskedLanguageModelling, MlmConfig


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 30 documents of 300 made-up words each."""
    return write_folder(tmp_path_factory.mktemp("texts") / "documents")


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def small_task(text_folder: Path, cache_dir: Path) -> MaskedLanguageModelling:
    """A prepared task on 30 made-up documents: 100 ids, 16 tokens, at most 40 windows."""
    config = MlmConfig(
        data=DataSpec(source=str(text_folder)),
        vocab_size=100,
        seq_len=16,
        evaluation_windows=40,
        test_windows=40,
    )
    task = MaskedLanguageModelling(config, seed=3, cache_dir=cache_dir)
    task.prepare()
    return task

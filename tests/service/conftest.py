"""A store with a finished study, copied for each test."""

import shutil
from pathlib import Path

import pytest
import store_factory
from store_fixtures import copied_store

from search.store.repo import Store


@pytest.fixture(scope="session")
def filled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    url = copied_store("sqlite", folder)
    with Store.open(url) as store:
        store_factory.fill(store, "demo", seeds=2)
    return folder / "search.db"


@pytest.fixture
def filled(filled_file: Path, tmp_path: Path) -> str:
    """The URL of a store on SQLite with the study `demo` of 8 trials."""
    path = tmp_path / "filled.db"
    shutil.copy(filled_file, path)
    return f"sqlite:///{path}"

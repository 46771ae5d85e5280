"""Fixtures over both databases; tests/conftest.py makes them known to every test.

`store_url` is an empty place, `store` an open store with its tables. On PostgreSQL both carry the
marker `postgres` and skip with the reason where no server can be started.
"""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from postgres import Cluster

    from search.store.repo import Store

# This module is loaded at every start of pytest, so it imports the database code where it is used.

BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


def cluster_or_skip() -> "Cluster":
    from postgres import shared_cluster, why_not

    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    return shared_cluster()


@cache
def sqlite_template() -> Path:
    from search.store.schema import upgrade

    folder = tempfile.mkdtemp(prefix="store")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "template.db"
    upgrade(str(path))
    return path


@cache
def postgres_template() -> str:
    from postgres import shared_cluster

    from search.store.schema import upgrade

    name = shared_cluster().create_database()
    upgrade(shared_cluster().url(name))
    return name


@pytest.fixture(params=BOTH)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty place."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/search.db"
    server = cluster_or_skip()
    return server.url(server.create_database())


def copied_store(kind: str, folder: Path) -> str:
    """The URL of a store without a study, copied from one that was migrated once."""
    if kind == "sqlite":
        path = folder / "search.db"
        shutil.copy(sqlite_template(), path)
        return f"sqlite:///{path}"
    server = cluster_or_skip()
    return server.url(server.create_database(postgres_template()))


@pytest.fixture(params=BOTH)
def ready_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store without a study."""
    return copied_store(request.param, tmp_path)


@pytest.fixture
def store(ready_url: str) -> Iterator["Store"]:
    """An open store without a study."""
    from search.store.repo import Store

    with Store.open(ready_url) as opened:
        yield opened


@pytest.fixture(scope="module", params=BOTH)
def module_store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator["Store"]:
    """An open store for a whole module, whose tests only read it after filling it once."""
    from search.store.repo import Store

    with Store.open(copied_store(request.param, tmp_path_factory.mktemp("store"))) as opened:
        yield opened

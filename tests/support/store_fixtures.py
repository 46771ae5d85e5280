"""Fixtures over both databases; a test module imports those it names.

`store_url` is an empty place, `store` an open store with its tables. On PostgreSQL both carry the
marker `postgres` and skip with the reason where no server can be started.
"""

import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from postgres import shared_cluster, why_not

from search.store.repo import Store
from search.store.schema import upgrade

BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


def cluster_or_skip():
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    return shared_cluster()


@cache
def sqlite_template() -> Path:
    path = Path(tempfile.mkdtemp(prefix="store")) / "template.db"
    upgrade(str(path))
    return path


@cache
def postgres_template() -> str:
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


@pytest.fixture(params=BOTH)
def ready_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store without a study, copied from one that was migrated once."""
    if request.param == "sqlite":
        path = tmp_path / "search.db"
        shutil.copy(sqlite_template(), path)
        return f"sqlite:///{path}"
    server = cluster_or_skip()
    return server.url(server.create_database(postgres_template()))


@pytest.fixture
def store(ready_url: str) -> Iterator[Store]:
    """An open store without a study."""
    with Store.open(ready_url) as opened:
        yield opened

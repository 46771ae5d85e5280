"""Fixtures of the fault matrix."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from crew import Crew
from nursery import Nursery
from postgres import Cluster, cluster, why_not
from store_fixtures import copied_store

from search.store.repo import Store


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Where the worker processes come from."""
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def crew(nursery: Nursery, ready_url: str, tmp_path: Path) -> Iterator[Crew]:
    """Workers on each of the two databases, five trials."""
    made = Crew(nursery, ready_url, tmp_path, 5)
    yield made
    made.close()


@pytest.fixture
def sqlite_crew(nursery: Nursery, tmp_path: Path) -> Iterator[Crew]:
    """Workers on an SQLite file, for faults that only a file has."""
    made = Crew(nursery, copied_store("sqlite", tmp_path), tmp_path, 5)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Cluster]:
    """A PostgreSQL server of its own, which a test may stop."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with cluster() as running:
        yield running


@pytest.fixture
def begun(nursery: Nursery, server: Cluster, tmp_path: Path) -> Iterator[Crew]:
    """Workers on the server that a test may stop, eight trials."""
    url = server.url(server.create_database())
    with Store.open(url):
        pass
    made = Crew(nursery, url, tmp_path, 8)
    yield made
    made.close()

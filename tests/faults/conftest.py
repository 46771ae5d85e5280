"""Fixtures of the fault matrix."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from crew import Crew
from postgres import Cluster, cluster, why_not
from store_fixtures import copied_store


@pytest.fixture
def crew(ready_url: str, tmp_path: Path) -> Iterator[Crew]:
    """Workers on each of the two databases, five trials."""
    made = Crew(ready_url, tmp_path, 5)
    yield made
    made.close()


@pytest.fixture
def sqlite_crew(tmp_path: Path) -> Iterator[Crew]:
    """Workers on an SQLite file, for faults that only a file has."""
    made = Crew(copied_store("sqlite", tmp_path), tmp_path, 5)
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

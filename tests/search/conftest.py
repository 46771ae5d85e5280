"""The package of faulty plugins, installed for the tests of a module."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_trials import faults_installed


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the caches and logs of trials over the package tests/plugins/faults."""
    with faults_installed(tmp_path_factory.mktemp("faults")) as folder:
        yield folder

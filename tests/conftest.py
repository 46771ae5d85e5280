"""Shared fixtures, and the rule that mandatory groups may not skip.

`SEARCH_TEST_MANDATORY` names marker groups ("data,postgres"): where it is set, a test of such a
group that skips is reported as a failure. A laptop without them may skip; the gate may not.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest_plugins = ["store_fixtures"]

MANDATORY = {name for name in os.environ.get("SEARCH_TEST_MANDATORY", "").split(",") if name}


@pytest.fixture(scope="session", autouse=True)
def own_devices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Trainings in this process do not give way to those of other test processes.

    Else how often a training looks up would depend on which tests run beside it.
    """
    folder = tmp_path_factory.mktemp("devices")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("search.timing.device_lease.shared_folder", lambda: folder)
        yield


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real texts, or a skip where there is none."""
    folder = os.environ.get("SEARCH_TEST_DATA")
    if not folder:
        pytest.skip("SEARCH_TEST_DATA names no folder of real texts")
    path = Path(folder)
    assert path.is_dir(), f"SEARCH_TEST_DATA={folder} is not a folder"
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """A real browser for the tests of one file, or a skip where there is none."""
    from browser import BROWSER, launched

    if BROWSER is None:
        pytest.skip("needs a Chrome or Chromium")
    with launched() as found:
        yield found


MARKS = {"test_data": pytest.mark.data, "browser": pytest.mark.browser}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in MARKS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS[name])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()
    groups = MANDATORY & {marker.name for marker in item.iter_markers()}
    if report.skipped and groups and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"mandatory group {sorted(groups)} skipped: {report.longrepr}"

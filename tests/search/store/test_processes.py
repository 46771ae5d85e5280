"""Several real processes on one store. The same with more of them is a soak test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import store_factory

SUPPORT = Path(store_factory.__file__).parent
PROCESSES = 4


@pytest.fixture
def study_id(store):
    return store.ensure_study("demo", store_factory.study_spec(), store_factory.PLUGINS).id


def run_together(script, *arguments):
    """Run the script in several processes at once; all must end well."""
    root = Path(__file__).parents[3]
    environment = os.environ | {"PYTHONPATH": str(root)}
    processes = [
        subprocess.Popen(
            [sys.executable, SUPPORT / script, *map(str, arguments)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(PROCESSES)
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES, errors


def test__reserve__budget_and_processes__exact_with_rising_numbers(store, ready_url, study_id):
    run_together("claim_budget.py", ready_url, study_id, 30)
    rows = store.rows("demo")
    assert [row.number for row in rows] == list(range(30))
    run_together("claim_budget.py", ready_url, study_id, 32)
    assert len(store.rows("demo")) == 32

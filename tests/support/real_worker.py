"""The real command `search` with the package of faulty mixers, and its real training processes.

Started by nursery.py. FAULT_SITE is the folder where the package lies, for this process and those
that it starts; FAULT_FLAG is for the package.
"""

import os
import sys

from mixers.registry import mixer_registry
from search import cli
from search.tasks.base import task_registry


def main(*words: str) -> int:
    """Run the command; returns its exit code."""
    site = os.environ["FAULT_SITE"]
    sys.path.insert(0, site)
    os.environ["PYTHONPATH"] = os.pathsep.join([site, os.environ["PYTHONPATH"]])
    mixer_registry.reset()
    task_registry().reset()
    try:
        cli.main(words)
    except SystemExit as end:
        return int(end.code or 0)
    return 0

"""Configs of trials over the package tests/plugins/faults, for tests of trials and slots."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plugin_packages import lay_out

from mixers.registry import mixer_registry
from search.messages import TrialConfig
from search.spec.study import StudySpec
from search.tasks.base import task_registry

RECIPE = {"steps": 8, "batch_size": 4, "learning_rate": 1e-2, "validations": 2}


def trial_config(cache_dir: Path, fault: str = "none", **changes: Any) -> TrialConfig:
    """A trial of one faulty mixer under an identity; needs the package on `sys.path`."""
    recipe = RECIPE | changes.pop("training", {})
    study = StudySpec.model_validate(
        {
            "task": {"kind": "faults.copy"},
            "encoder": {"d_model": 16, "n_layers": 2, "d_ff": 16, "dropout": changes.pop("p", 0.0)},
            "space": {"choices": [{"kind": "faults.trap"}, {"kind": "identity"}]},
            "baselines": {"reference": "faults.trap", "cheap": "identity"},
            "training": recipe,
        }
    )
    trap, identity = study.space.choices
    at = changes.pop("at", 3)
    trap = type(trap)(fault=fault, at=at)
    return TrialConfig(
        study=study,
        spec=study.encoder_spec([trap, identity]),
        seed=changes.pop("seed", 0),
        cache_dir=str(cache_dir),
        **changes,
    )


@contextmanager
def faults_installed(folder: Path) -> Iterator[Path]:
    """Makes the package importable, here and in processes started from here; gives the folder."""
    site = str(lay_out("faults", folder / "site"))
    sys.path.insert(0, site)
    mixer_registry.reset()
    task_registry().reset()
    try:
        yield folder
    finally:
        sys.path.remove(site)
        sys.modules.pop("faults", None)
        mixer_registry.reset()
        task_registry().reset()

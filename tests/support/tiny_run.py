"""Settings under which `search run` takes seconds, for tests of the command as a whole."""

import json
from pathlib import Path

from texts import write_folder

SETTINGS = {
    "task.vocab_size": 96,
    "task.seq_len": 16,
    "task.evaluation_windows": 16,
    "task.test_windows": 16,
    "encoder.d_model": 16,
    "encoder.d_ff": 32,
    "encoder.n_layers": 2,
    "training.steps": 8,
    "training.batch_size": 8,
    "training.validations": 2,
    "recall": False,
}


def tiny(folder: Path, **changes: object) -> list[str]:
    """Options of a run on a small text that is made in the folder; dots as double underscores."""
    text = folder / "text"
    if not text.exists():
        write_folder(text, 40, 300)
    settings = SETTINGS | {name.replace("__", "."): value for name, value in changes.items()}
    options = ["--data", str(text)]
    for path, value in settings.items():
        options += ["--set", f"{path}={json.dumps(value)}"]
    return options


def own_folders(folder: Path) -> dict[str, str]:
    """Environment that keeps a run's caches and logs in the folder, and other tests' cores free."""
    return {
        "SEARCH_CACHE_DIR": str(folder / "cache"),
        "SEARCH_LOG_DIR": str(folder / "logs"),
        "SEARCH_THREADS": "1",
    }

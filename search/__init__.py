"""Which token mixer should each layer use? Search, train, store, answer.

Names load on first use, so `import search` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from search.api import open, run
    from search.spec.study import StudySpec

__all__ = ["StudySpec", "open", "run"]

HOME_OF = {"StudySpec": "spec.study", "open": "api", "run": "api"}


def __getattr__(name: str) -> Any:
    if name not in HOME_OF:
        raise AttributeError(f"module 'search' has no attribute {name!r}")
    return getattr(import_module(f"search.{HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)

"""The data of a study, read once before any trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search.engine.claims import FINGERPRINT
from search.errors import InputError
from search.tasks.objective import ObjectiveConfig

if TYPE_CHECKING:
    from search.rows import StudyRow
    from search.spec.study import StudySpec


@dataclass(frozen=True)
class Prepared:
    """What a study's trials share: the hash of its data and facts about it for people."""

    fingerprint: str
    facts: Mapping[str, Any] = field(default_factory=dict)


def prepare(study: StudySpec, cache_dir: Path) -> Prepared:
    """Reads and tokenises the data once, so that faults of the data show before any trial.

    Raises:
        InputError: The data is missing, unreadable or too little, or the cache cannot be made.
    """
    if isinstance(study.task, ObjectiveConfig):
        return Prepared(study.task.source_sha256, {"objective": study.task.name})
    from search.tasks.base import build_task

    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cache folder {cache_dir}: {error.strerror}; set SEARCH_CACHE_DIR to another"
        ) from None
    task = build_task(study.task, seed=study.seed, cache_dir=cache_dir)
    task.prepare()
    return Prepared(task.fingerprint, task.describe())


def refuse_other_data(row: StudyRow, prepared: Prepared) -> None:
    """Refuses to go on with other data than the study was begun with.

    Raises:
        InputError: The hashes differ.
    """
    begun = row.attrs.get(FINGERPRINT)
    if begun is not None and begun != prepared.fingerprint:
        raise InputError(
            f"study {row.name!r} was begun with other data ({begun[:8]}, now "
            f"{prepared.fingerprint[:8]}); restore it, or start a study under another name",
            command="--name NEW",
        )

"""Which study a report is about, where its rows are, and what they were made with."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from search.api import DEFAULT_STORE

if TYPE_CHECKING:
    from search.rows import StudyRow, TrialRow
    from search.store.readable import ReadableStore


@dataclass(frozen=True)
class About:
    """What a report says of its study beside the answer.

    Attributes:
        study: the study's name.
        store: the store's URL, or that of a service; a password in it is never shown.
        spec: the study's spec as its JSON document.
        fingerprint: hash of the prepared data, its splits, windows and masks.
        seeds: training seeds of the finished trials, each once.
        facts: versions and machine of the newest trial that was trained, by name.
        letters: what each letter of a code stands for: mixers of the trials, each once.
    """

    study: str
    store: str = DEFAULT_STORE
    spec: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    seeds: tuple[int, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    letters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def shown_store(self) -> str:
        """The store without a password."""
        from search.store.address import masked

        return masked(self.store)

    @property
    def argument(self) -> str:
        """The study's name as an argument of a shell."""
        return shlex.quote(self.study)

    @property
    def is_served(self) -> bool:
        """Whether the rows came from a service, which reading commands alone can be told."""
        return self.store.startswith(("http://", "https://"))

    @property
    def store_option(self) -> str:
        """The option that names the store, where it is not the default one."""
        shown = self.shown_store
        option = "--server" if self.is_served else "--store"
        return "" if shown == DEFAULT_STORE else f" {option} {shlex.quote(shown)}"


def about_study(store: ReadableStore, study: StudyRow, rows: Sequence[TrialRow], url: str) -> About:
    """Gathers from the store what a reader needs to repeat a study.

    Args:
        store: where it is.
        study: the study.
        rows: its trials.
        url: the store, or the service before it, as the user named it.
    """
    from search.engine.claims import FINGERPRINT

    finished = [row for row in rows if row.state == "completed"]
    trained = [row for row in finished if row.reused_from is None] or finished
    facts = store.trial(trained[-1].id)["environment"] if trained else {}
    return About(
        study=study.name,
        store=url,
        spec=study.spec,
        fingerprint=str(study.attrs.get(FINGERPRINT, "")),
        seeds=tuple(sorted({row.seed for row in finished})),
        facts={str(name): str(value) for name, value in facts.items()},
        letters=letters_of(rows),
    )


def letters_of(rows: Iterable[TrialRow]) -> dict[str, tuple[str, ...]]:
    """The mixers behind the letters of the codes, in alphabetical order of the letters."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        if len(row.code) == len(row.mixers):
            for letter, mixer in zip(row.code, row.mixers, strict=True):
                found.setdefault(letter, {})[mixer] = None
    return {letter: tuple(found[letter]) for letter in sorted(found)}

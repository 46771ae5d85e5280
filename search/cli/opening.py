"""Open a store for a reading command and find the study and trial that are meant."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from search.rows import StudyRow, TrialRow
    from search.spec.study import StudySpec
    from search.store.readable import ReadableStore
    from search.store.repo import Store


@contextmanager
def open_store(url: str) -> "Iterator[Store]":
    """Open an existing store; reading never creates one, but takes back what dead workers held.

    Args:
        url: What `--store` was given.

    Raises:
        StoreError: If it is unreadable, foreign or of another version.
        NothingThereError: If there is no store yet.
    """
    from search.errors import StoreError
    from search.store.repo import Store

    with Store.open(url, create=False) as store:
        with suppress(StoreError):  # a store that cannot be written now can still be read
            store.reap()
        yield store


@contextmanager
def open_reader(url: str, server: str | None) -> "Iterator[ReadableStore]":
    """Open an existing store to be read, here or behind a service.

    Args:
        url: What `--store` was given.
        server: What `--server` was given.

    Raises:
        InputError: If the address is wrong, or the service refuses the token.
        StoreError: If the store or the service cannot be used.
        NothingThereError: If there is no store yet.
    """
    if server is None:
        with open_store(url) as store:
            yield store
        return
    import os

    from search.remote import RemoteStore

    with RemoteStore(server, os.environ.get("SEARCH_TOKEN") or None) as remote:
        yield remote


def find_study(store: "ReadableStore", name: str | None) -> "StudyRow":
    """Return the study of this name, or the only one that is not derived when no name is given.

    Raises:
        NothingThereError: If there is no such study, or none at all.
        InputError: If no name is given and there are several.
    """
    from search.errors import InputError, NothingThereError

    if name is not None:
        return store.study(name)
    studies = [study for study in store.studies() if study.base is None]
    if not studies:
        raise NothingThereError(f"{store.url}: holds no study yet; 'search run' starts one")
    if len(studies) > 1:
        names = ", ".join(study.name for study in studies)
        raise InputError(f"{store.url}: holds {len(studies)} studies, name one of them: {names}")
    return studies[0]


def find_trial(store: "ReadableStore", study: "StudyRow", number: int) -> "TrialRow":
    """Return the trial of this number within a study.

    Raises:
        NothingThereError: If there is no such trial.
    """
    from search.errors import NothingThereError

    rows = store.rows(study.name, curves=False)
    for row in rows:
        if row.number == number:
            return row
    there = f"it has trials 0 to {rows[-1].number}" if rows else "it has no trial yet"
    raise NothingThereError(f"study {study.name!r} has no trial {number}; {there}")


def spec_of(study: "StudyRow") -> "StudySpec":
    """Return a stored study's spec as a validated object.

    Raises:
        InputError: If it cannot be built here, as when a mixer is not installed any more.
    """
    from search.spec.study_file import study_from

    return study_from(study.spec, source=f"study {study.name}")

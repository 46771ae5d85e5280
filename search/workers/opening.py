"""The store that a worker works for: a database at hand, or a service before one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from search.remote.working import RemoteWorkerStore
    from search.store.repo import Store


def open_for_work(url: str, server: str | None, token: str | None) -> Store | RemoteWorkerStore:
    """Opens the store, or a client of the service.

    Args:
        url: The store's URL; not looked at where there is a server.
        server: The service's address.
        token: What the service is shown; a store needs none.

    Raises:
        InputError: An address is wrong.
        StoreError: The store cannot be used.
    """
    if server is None:
        from search.api import open as open_store

        return open_store(url)
    from search.remote.working import RemoteWorkerStore

    return RemoteWorkerStore(server, token)

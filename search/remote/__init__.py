"""A store behind `search serve`: read over HTTP, or worked for by a worker without a database."""

from search.remote.reading import RemoteStore

__all__ = ["RemoteStore"]

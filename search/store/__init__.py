"""The store: `search.store.repo.Store` is its door; importing this package loads no database."""

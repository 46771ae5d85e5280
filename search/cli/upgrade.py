"""`search upgrade`: bring a store to the schema of this version."""

from search.cli.options import DEFAULT_STORE, StoreOption
from search.cli.output import write


def upgrade(store: StoreOption = DEFAULT_STORE) -> None:
    """Bring a store to this version's schema; create it if it is not there."""
    from search.store import schema
    from search.store.address import parse_address

    place = parse_address(store).label
    done = schema.upgrade(store)
    if not done.changed:
        write(f"{place}: has schema {done.after} already")
    elif done.before is None:
        write(f"{place}: created with schema {done.after}")
    else:
        write(f"{place}: upgraded from schema {done.before} to {done.after}")

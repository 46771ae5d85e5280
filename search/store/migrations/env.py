"""Runs migrations on the connection that `search.store.schema` hands over."""

from alembic import context

import search.store.measurements  # noqa: F401 - registers its tables
from search.store.schema import VERSION_TABLE
from search.store.tables import Base
from search.store.views import create_views, drop_views

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    version_table=VERSION_TABLE,
    render_as_batch=connection.dialect.name == "sqlite",
    transactional_ddl=True,
)
with context.begin_transaction():
    drop_views(connection)
    context.run_migrations()
    create_views(connection)

"""What Alembic runs: the connection, its transaction and its lock are the caller's."""

from __future__ import annotations

from alembic import context

from seatrial.store.schema import VERSION_TABLE

context.configure(
    connection=context.config.attributes["connection"],
    version_table=VERSION_TABLE,
    dialect=context.config.attributes["dialect"],
)
context.run_migrations()

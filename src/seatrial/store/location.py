"""Where a database is, as people are told."""

from __future__ import annotations

import sqlalchemy as sa

_SECRETS = ("password", "sslpassword")
"""Parameters of PostgreSQL's that may stand behind the `?`."""


def shown(url: sa.URL) -> str:
    """The URL of a database as it may stand in a message or a log: without passwords."""
    return url.difference_update_query(_SECRETS).render_as_string(hide_password=True)

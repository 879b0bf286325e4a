"""PostgreSQL servers: how a connection to one is prepared."""

from __future__ import annotations

from typing import Any


def prepare_server(connection: Any, _: Any) -> None:
    """Whatever a connection commits is on disk."""
    cursor = connection.cursor()
    cursor.execute("SET synchronous_commit TO on")
    cursor.close()
    connection.commit()

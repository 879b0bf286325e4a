"""PostgreSQL servers: prepares a connection, whatever the settings of its user are."""

from __future__ import annotations

import json
from typing import Any

#: With these settings a lost server is noticed within a minute instead of two hours.
CLIENT_SETTINGS = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # ms
}
_SETTINGS = {
    "synchronous_commit": "on",
    # An ask may take long, and its transaction is idle meanwhile.
    "idle_in_transaction_session_timeout": "0",
    "statement_timeout": "0",
    "transaction_timeout": "0",
    # The locks of a machine that lost power are released within a minute.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}


def prepare_server(longest_wait: float, connection: Any, _: Any) -> None:
    """Sets that commits of a connection are on disk, and that it waits for a lock for at most
    ``longest_wait`` seconds."""
    settings = _SETTINGS | {"lock_timeout": str(round(1000 * longest_wait))}
    with connection.cursor() as cursor:
        # Only the settings that this version of the server has.
        cursor.execute(
            "SELECT set_config(name, value, false) FROM pg_settings "
            "JOIN json_each_text(%s) AS wanted (key, value) ON key = name",
            [json.dumps(settings)],
        )
    connection.commit()

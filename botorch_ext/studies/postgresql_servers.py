"""PostgreSQL servers: how a connection to one is prepared, whatever the settings of its user."""

from __future__ import annotations

import json
from typing import Any

#: A server that is gone is noticed in a minute, and not in two hours.
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
    # The locks of a machine that lost power are given back in a minute.
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}


def prepare_server(longest_wait: float, connection: Any, _: Any) -> None:
    """Whatever a connection commits is on disk; it waits for a lock up to ``longest_wait`` s."""
    settings = _SETTINGS | {"lock_timeout": str(round(1000 * longest_wait))}
    with connection.cursor() as cursor:
        # Of those that this version of the server has.
        cursor.execute(
            "SELECT set_config(name, value, false) FROM pg_settings "
            "JOIN json_each_text(%s) AS wanted (key, value) ON key = name",
            [json.dumps(settings)],
        )
    connection.commit()

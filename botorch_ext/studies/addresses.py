"""Addresses of studies: reads paths and URLs."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from botorch_ext.exceptions import StudyError

_FORMS = "a path, or a URL that begins with sqlite:// or postgresql://"
_LIKE_A_URL = re.compile(r"(sqlite|postgres)[\w+]*(:|//)", re.IGNORECASE)


def url_of(place: str | os.PathLike[str]) -> URL:
    """Reads a path or a URL as a URL.

    Raises:
        StudyError: The place is none, the database is neither SQLite nor PostgreSQL, or its driver
            is not installed.
    """
    if not isinstance(place, str | os.PathLike):
        raise StudyError(f"a study must be at {_FORMS}, got {place!r}")
    if isinstance(place, str) and _LIKE_A_URL.match(place) and "://" not in place:
        # It may be a URL with a password, which a message about a path would show.
        raise StudyError(f"a study must be at {_FORMS}, got a URL without ://")
    try:
        path = os.fsdecode(place)
        is_url = isinstance(place, str) and "://" in place
        url = make_url(path) if is_url else URL.create("sqlite", database=path)
    except (ArgumentError, ValueError):
        # The cause is left out, because it may show a password.
        raise StudyError(f"a study must be at {_FORMS}, got a URL that cannot be read") from None
    if "@" in f"{url.host}{url.database}" and url.get_backend_name() != "sqlite":
        # What is before the @ is the rest of a password.
        raise StudyError("@, : and / in the password of a URL must be written %40, %3A and %2F")
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise StudyError(f"a study must be at {_FORMS}, got one that begins with {url.drivername}")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise StudyError("a study must be in a file, got a database in memory")
    if url.get_backend_name() == "sqlite" and url.query:
        raise StudyError(f"a URL of SQLite must have no options, got {', '.join(url.query)}")
    if "\0" in f"{url.database}":
        raise StudyError(f"a study must be at {_FORMS}, got one with a zero character")
    if url.get_backend_name() == "postgresql" and not (url.host or url.query):
        raise StudyError("a URL of PostgreSQL must have a host, as postgresql://localhost/lab has")
    if url.drivername == "postgresql+psycopg" and find_spec("psycopg") is None:
        raise StudyError("PostgreSQL needs psycopg: pip install 'botorch-ext[postgresql]'")
    return url

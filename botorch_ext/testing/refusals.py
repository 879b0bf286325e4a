"""Calls that must be refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def refused(error: type[Exception], match: str = "") -> Iterator[None]:
    """An AssertionError unless what happens inside raises such an error whose message matches."""
    try:
        yield
    except error as raised:
        if not re.search(match, str(raised)):
            raise AssertionError(f"the message must match {match!r}, got {raised}") from raised
    else:
        raise AssertionError(f"must be refused with {error.__name__}")

"""Immutable: a value that never changes, so that copies of what holds it share it."""

from __future__ import annotations

from typing import Any, Self


class Immutable:
    """A value that no event changes, and that may be large or impossible to copy."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

"""Methods of a benchmark, and what decides their answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any


@dataclass(frozen=True)
class Method:
    """A method and what decides its answers.

    Args:
        make: What makes it, from what a run is of.
        settings: A package, whose version decides, or a revision, which is raised when the method
            asks something else. Rows of other settings are stale.
    """

    make: Callable[..., Any]
    settings: str

    @property
    def version(self) -> str:
        """The settings, with the version of a package."""
        if " " in self.settings:
            return self.settings
        return f"{self.settings} {metadata.version(self.settings)}"

"""Runs of a benchmark that plays methods on problems with seeds, and what makes a row stale."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from benchmarks.common.tables import Row

KEY = ("method", "problem", "seed")


@dataclass(frozen=True)
class MethodRun:
    """One run. A benchmark says in a subclass what decides its outcome.

    Args:
        method: The name of the method.
        problem: The name of the problem.
        seed: Of everything random.
        smoke: Whether it only shows that everything runs.
    """

    method: str
    problem: str
    seed: int
    smoke: bool = False

    @property
    def key(self) -> Row:
        """Its values of `KEY`."""
        return {name: getattr(self, name) for name in KEY}

    @property
    def evaluations(self) -> int:
        """How many it has."""
        raise NotImplementedError

    @property
    def settings(self) -> tuple[Any, ...]:
        """What decides its outcome, beside its key and the number of evaluations."""
        raise NotImplementedError

    @property
    def digest(self) -> str:
        """The digest of what decides its outcome. A row with another one is stale."""
        decides = (*self.key.values(), self.evaluations, *self.settings)
        return hashlib.blake2b(repr(decides).encode(), digest_size=6).hexdigest()

"""Nearness of what strategies show."""

from __future__ import annotations

import math
from typing import Any


def assert_near(
    now: Any, then: Any, name: str = "", *, rel: float = 1e-9, more: bool = False
) -> None:
    """Floats within rounding of each other, in dicts and lists too; all else equal.

    Args:
        now: What is looked at.
        then: What it should be.
        name: Where in it we are, for messages.
        rel: The relative difference there may be; a tenth of it, at least 1e-9, is the absolute.
        more: Whether dicts may have keys that they should not.
    """
    if isinstance(then, dict):
        assert now.keys() >= then.keys() if more else now.keys() == then.keys(), name
        for key in then:
            assert_near(now[key], then[key], f"{name} {key}", rel=rel, more=more)
    elif isinstance(then, list | tuple):
        assert len(now) == len(then), name
        for place, (a, b) in enumerate(zip(now, then, strict=True)):
            assert_near(a, b, f"{name} {place}", rel=rel, more=more)
    elif isinstance(then, float) and isinstance(now, float):
        near = math.isclose(now, then, rel_tol=rel, abs_tol=max(rel / 10, 1e-9))
        assert near, f"{name}: {now}, {then}"
    else:
        assert now == then, f"{name}: {now}, {then}"

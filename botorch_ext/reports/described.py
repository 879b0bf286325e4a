"""Described strategies: what the description of a study says of its strategy, for readers.

Files of others may hold any description, and none of them is an error.
"""

from __future__ import annotations

from typing import Any

from botorch_ext.reports.words import in_words, short


def called(description: dict[str, Any]) -> str:
    """What a strategy is called: the function it was made by, or its class."""
    strategy = description.get("strategy")
    of_class = strategy.get("class") if isinstance(strategy, dict) else strategy
    return short(in_words(description.get("made_by") or of_class))


def arguments(description: dict[str, Any]) -> list[tuple[str, str]]:
    """The arguments of a strategy by name, in words; those that are None are left out."""
    strategy = description.get("strategy")
    if not isinstance(strategy, dict):
        return []
    return [
        (short(key), in_words(part))
        for key, part in strategy.items()
        if key != "class" and part is not None
    ]

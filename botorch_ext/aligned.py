"""Columns of tables: their names, and tables as texts for a terminal; names of a length."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


def free_names(own: Iterable[str], taken: Collection[str]) -> list[str]:
    """The names of the library's columns in a table that also has columns of the user.

    Args:
        own: The names that the library gives.
        taken: The names that the user gave. Where one of them is the same without regard to case,
            that of the library has underscores behind it, as in ``state_``.
    """
    known = {*taken, *(name.casefold() for name in taken)}
    free = []
    for name in own:
        while name in known:
            name += "_"
        known.add(name)
        free.append(name)
    return free


def cut(text: str, most: int) -> str:
    """A text of so many characters at most."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def printable(text: str) -> str:
    """A text without characters that would steer a terminal or break a line."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table whose columns have one width each."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]

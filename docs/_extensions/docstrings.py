"""Docstrings, written to be read in a terminal, made ready for reStructuredText."""

from __future__ import annotations

import re
from typing import Any

from plain_formulas import typeset
from sphinx.application import Sphinx

from botorch_ext.strategies import Strategy

# What is not prose: examples with their output, code, quoted words, roles, and the names at the
# beginning of the entries of a section.
_NOT_PROSE = re.compile(
    r"""
    (   (?<=\n)[ ]*>>>[ ].*?(?=\n[ ]*\n|$)
      | ``.+?``
      | "[^"\n]{1,30}"
      | :\w[\w:]*:`[^`]+`
      | `[^`]+`_?
      | (?<=\n)[ ]+\*{0,2}\w+(?:[ ]\([^)\n]*\))?:(?=\s)
    )
    """,
    re.DOTALL | re.VERBOSE,
)
_MATH = re.compile(r"(:math:`[^`]+`)")
# Stands for a colon while napoleon reads the docstring of a property, whose first line it would
# otherwise split at a colon, as a type and its description.
_COLON = "\ue000"


def prepare(text: str, owner: Any = None, owner_name: str = "") -> str:
    """A docstring in which `names` are links wherever they are defined, and formulas are typeset.

    Args:
        text: The docstring.
        owner: The class it belongs to, if any, whose members are meant first.
        owner_name: Its full name.
    """
    parts = _NOT_PROSE.split("\n" + text)
    for i, part in enumerate(parts):
        parts[i] = _code(part, owner, owner_name) if i % 2 else _prose(part)
    return "".join(parts)[1:]


def _code(code: str, owner: Any, owner_name: str) -> str:
    match = re.fullmatch(r"`([A-Za-z_][\w.]*)(\(\))?`", code)
    if match is None:
        return code
    name, call = match[1], match[2] or ""
    target = f".{name}"
    if owner is not None and hasattr(owner, name):
        target = f"{owner_name}.{name}"
    elif hasattr(Strategy, name):
        target = f"botorch_ext.strategies.Strategy.{name}"
    return f":py:obj:`{name}{call} <{target}>`"


def _prose(text: str) -> str:
    parts = _MATH.split(typeset(text))
    return "".join(part if i % 2 else _escaped(part) for i, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"([*|])", r"\\\1", re.sub(r"(?<=\w)_(?=\W|$)", r"\\_", text))


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    owner, owner_name = (obj, name) if what == "class" else (None, "")
    if what in ("method", "property", "attribute"):
        owner_name = name.rpartition(".")[0]
        module, _, class_name = owner_name.rpartition(".")
        owner = getattr(__import__(module, fromlist=[class_name]), class_name, None)
    lines[:] = prepare("\n".join(lines), owner, owner_name).split("\n")
    if what in ("property", "attribute"):
        end = lines.index("") if "" in lines else len(lines)
        lines[:end] = [re.sub(r":(?=\s|$)", _COLON, line) for line in lines[:end]]


def _with_colons(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = [line.replace(_COLON, ":") for line in lines]


def setup(app: Sphinx) -> dict[str, Any]:
    """Runs before and after napoleon reads the sections, which has priority 500."""
    app.setup_extension("sphinx.ext.napoleon")
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-process-docstring", _with_colons, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Beginning a study from a file that names its parameters."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from botorch_ext import algorithms
from botorch_ext.checks import did_you_mean, short
from botorch_ext.domains import Choice, Integer, Real, Space
from botorch_ext.exceptions import StudyError
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.limits import AtLeast, AtMost, Limit
from botorch_ext.parameters import Ordered
from botorch_ext.strategies import Strategy

_TYPES = {"real": Real, "integer": Integer, "choice": Choice, "ordered": Ordered}
# Arguments of methods that a file gives by their names.
_MODELS = {kind.__name__: kind for kind in (Fitted, Particles)}
_ENTRIES = ("parameters", "constraints", "conditions", "outcomes", "method", "arguments")
_LIMITS = {"at_most": AtMost, "at_least": AtLeast}
# Names in a TOML file without quotes: those of a table, and those of an entry.
_BARE = re.compile(
    r"""^[ \t]*(?:\[(?P<table>[^\[\]"'\r\n]+)\]|(?P<key>[^\[\]{}"'#=\r\n]+)=)""", re.MULTILINE
)
_NEEDS_NO_QUOTES = re.compile(r"[A-Za-z0-9_-]+")
EXAMPLE = """\
[parameters.temperature]
type = "real"
low = 20
high = 80
digits = 1
unit = "°C"

[parameters.solvent]
type = "choice"
values = ["water", "ethanol"]
"""


def strategy_of(path: Path, minimize: bool = False) -> Strategy:
    """Makes the strategy that a TOML or JSON file describes.

    Its entries are ``parameters`` by name, each with its ``type`` (real, integer, choice or
    ordered) and the arguments of `Real`, `Integer` or `Choice`; ``constraints``, a list of texts;
    ``conditions``, from the name of a parameter to the name of its parent and a list of values;
    ``outcomes`` by name, each with ``at_most`` or ``at_least`` and a ``unit`` if it has one; the
    ``method`` of `algorithms`, integrated_ei unless given, and its ``arguments``: plain values,
    ``"Fitted"`` for ``Fitted()`` and ``"Particles"`` for ``Particles()``.

    Args:
        path: The path of the file.
        minimize: Whether small values are good, also if the file does not say so.

    Raises:
        OSError: The file cannot be read.
        StudyError: An entry is wrong. The message names it.
    """
    found = _read(path)
    _require_known(found, _ENTRIES, f"{path}")
    for table in found.values():
        parts = [table, *table.values()] if isinstance(table, Mapping) else []
        if any(isinstance(part, Mapping) and "constraints" in part for part in parts):
            raise StudyError(f"{path}: constraints must stand above the first line in [brackets]")
    described = found.get("parameters")
    if not isinstance(described, Mapping) or not described:
        raise StudyError(f"{path} must have parameters by name, as in {short(EXAMPLE)}")
    parameters = {name: _parameter(name, each, path) for name, each in described.items()}
    method = found.get("method", "integrated_ei")
    if method not in algorithms.__all__:
        hint = did_you_mean(method, algorithms.__all__)
        raise StudyError(f"{path}: method must be one of the library, got {method!r}{hint}")
    try:
        space = Space(
            parameters,
            constraints=found.get("constraints", ()),
            conditions=found.get("conditions"),
        )
        arguments = {
            name: _MODELS[value]() if isinstance(value, str) and value in _MODELS else value
            for name, value in found.get("arguments", {}).items()
        }
        if minimize:
            arguments["minimize"] = True
        if "outcomes" in found:
            arguments["outcomes"] = _limits(found["outcomes"])
        return getattr(algorithms, method)(space, **arguments)
    except (TypeError, ValueError) as error:
        raise StudyError(f"{path}: {error}") from error


def _read(path: Path) -> dict[str, Any]:
    """The entries of a file."""
    is_json, text = path.suffix.lower() == ".json", ""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        found = json.loads(text) if is_json else tomllib.loads(text)
    except ValueError as error:  # of both, and of texts in another encoding
        kind, hint = ("JSON", "") if is_json else ("TOML", _quotes_hint(text))
        raise StudyError(f"{path} is no {kind} in UTF-8: {error}{hint}") from error
    if not isinstance(found, dict):
        raise StudyError(f"{path} must have entries by name, got {short(found)}")
    return found


def _quotes_hint(text: str) -> str:
    """A hint for a TOML file with a name that must stand in quotes, and does not."""
    for found in _BARE.finditer(text):
        for part in (found["table"] or found["key"]).split("."):
            if not _NEEDS_NO_QUOTES.fullmatch(name := part.strip()):
                return f'; put quotes around "{name}"'
    return ""


def _parameter(name: str, given: Any, path: Path) -> Any:
    if not isinstance(given, Mapping):
        raise StudyError(f"{path}: {name} must have a type and its values, got {short(given)}")
    arguments = dict(given)
    kind = arguments.pop("type", None)
    if kind not in _TYPES:
        raise StudyError(f"{path}: type of {name} must be one of {', '.join(_TYPES)}, got {kind!r}")
    try:
        return _TYPES[kind](**arguments)
    except TypeError as error:
        known = [each for each in _TYPES[kind].__dataclass_fields__ if each != "_"]
        _require_known(arguments, known, f"{path}: {name}")
        raise StudyError(f"{path}: {name}: {error}") from error
    except ValueError as error:
        raise StudyError(f"{path}: {name}: {error}") from error


def _limits(given: Any) -> dict[str, Limit]:
    """The limits of outcomes by name."""
    if not isinstance(given, Mapping):
        raise StudyError(f"outcomes must have limits by name, got {short(given)}")
    limits = {}
    for name, limit in given.items():
        entries = dict(limit) if isinstance(limit, Mapping) else {}
        unit, kinds = entries.pop("unit", None), [*entries]
        if len(kinds) != 1 or kinds[0] not in _LIMITS:
            raise StudyError(
                f"{name} must have at_most or at_least, and a unit, got {short(limit)}"
            )
        limits[name] = _LIMITS[kinds[0]](entries[kinds[0]], unit)
    return limits


def _require_known(given: Mapping[str, Any], known: Any, whose: str) -> None:
    for each in given:
        if each not in known:
            hint = did_you_mean(each, known)
            raise StudyError(f"{whose} must have {', '.join(known)}, got {each!r}{hint}")

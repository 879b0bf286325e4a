"""What is called by another name now than in the recorded sessions.

A recorded trial is replayed with the info that `info` makes of its own, given the method of the
entry (its name in the registry) and a dict that it may change. Add a case where a name changes, and
the reason.
"""

from __future__ import annotations

import ast
from typing import Any

from botorch_ext.strategies import Event
from botorch_ext.testing.sessions import from_plain

_NUMBERS = ("mean", "std", "width", "offset")
# Methods whose models are judged by what they predicted from told data alone.
_JUDGED = ("he_gp_ucb", "he_stable_opt", "lb_gp_ucb")
_SEVERAL = (*_JUDGED, "stable_opt", "mle_ucb", "expected_ucb", "a_gp_ucb")
# What warnings said of the same thing.
_SAID = {
    "bounds then tell little but where nothing was observed": (
        "the bounds then mostly show where data are missing"
    ),
    "a larger noise_variance makes it less": "a larger noise_variance reduces this",
}
_MADE = ("width", "round_lengths", "block_width", "told_width", "free_width")


def info(method: str, recorded: dict[str, Any]) -> dict[str, Any]:
    """The info that the trial has now."""
    if "decision" in recorded:  # of a base
        return recorded | {"decision": info(method, recorded["decision"])}
    if "width" in recorded and "model" not in recorded:
        # One model is the case of several: it has a place among them.
        return recorded | {"model": 0, "offset": 0.0}
    if "model" in recorded and "told" not in recorded and method.startswith(_JUDGED):
        # The numbers were from told data alone. Those that count pending trials stand beside them
        # now; they were not recorded, and nothing is decided by them.
        changed = _with_told(recorded)
        if "pessimistic" in recorded:
            changed["pessimistic"] = _with_told(recorded["pessimistic"])
        return changed
    return recorded


def _with_told(recorded: dict[str, Any]) -> dict[str, Any]:
    return recorded | {"told": {name: recorded[name] for name in _NUMBERS}}


def comparable(method: str, info: dict[str, Any]) -> dict[str, Any]:
    """What of an info was said before and means the same now: not what one of several models
    predicts where pending trials count, which had no place."""
    kept = info.copy()
    for part in ("decision", "pessimistic"):
        if part in kept:
            kept[part] = comparable(method, kept[part])
    if method.startswith(_SEVERAL):
        kept = {name: value for name, value in kept.items() if name not in _NUMBERS}
    return kept


def report(recorded: dict[str, Any]) -> dict[str, Any]:
    """The report that there is now: what says of widths and round lengths what they are made of was
    the text that makes them, and warnings had other words."""
    return {
        name: _parts(ast.parse(value, mode="eval").body)
        if name in _MADE and isinstance(value, str)
        else [_said(text) for text in value]
        if name == "warnings"
        else value
        for name, value in recorded.items()
    }


def _said(text: str) -> str:
    for before, now in _SAID.items():
        text = text.replace(before, now)
    return text


def _parts(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        parts = {str(each.arg): _parts(each.value) for each in node.keywords}
        return {"name": ast.unparse(node.func)} | parts
    if isinstance(node, ast.List | ast.Tuple):
        return [_parts(each) for each in node.elts]
    return ast.literal_eval(node)


def event(method: str, record: list[Any]) -> Event:
    """The event that there is now, from a recorded one."""
    if record[0] == "asked":
        record = [*record[:4], info(method, dict(record[4]))]  # without the step of the offer
    return from_plain(record)

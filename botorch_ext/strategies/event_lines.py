"""Event lines: converts events of a study to lines of JSON and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

from torch import Tensor

from botorch_ext.codec import decode, encode
from botorch_ext.exceptions import BrokenStudyError
from botorch_ext.plain_events import PlainRecord
from botorch_ext.strategies.events import Event, Trial

_CLASSES = {each.__name__.lower(): each for each in get_args(Event)}


def as_text(event: Event, version: str | None = None) -> str:
    """Writes an event as one line of JSON.

    Args:
        event: The event, in the sign of the user.
        version: The version of this library, which the line has; None for none.
    """
    entries = {each.name: getattr(event, each.name) for each in fields(event)}
    if "trial" in entries:
        trial: Trial = entries.pop("trial")
        context = None if trial.context is None else trial.context.tolist()
        entries |= {"id": trial.id, "x": trial.x.tolist(), "context": context, "info": trial.info}
    if "parameters" in entries:
        encoded = encode(dict(entries["parameters"]), "parameters")
        decode(encoded, "parameters")  # else nobody could open the study any more
        entries["parameters"] = encoded
    kind: Any = next(name for name, each in _CLASSES.items() if isinstance(event, each))
    return PlainRecord(kind, **entries, version=version).line()


def from_text(text: str, like: Tensor) -> Event:
    """Reads the event of a line.

    Args:
        text: A line that `as_text` wrote.
        like: A tensor with the dtype and the device of points.

    Returns:
        The event, in the sign of the user.

    Raises:
        BrokenStudyError: `as_text` did not write the line.
    """
    record = PlainRecord.read(text)
    kind = _CLASSES[record.kind]
    names = [each.name for each in fields(kind)]
    entries = {name: getattr(record, name) for name in names if name != "trial"}
    if "trial" in names:
        context = None if record.context is None else like.new_tensor(record.context)
        entries["trial"] = Trial(record.id, like.new_tensor(record.x), context, record.info)
    if "parameters" in names:
        try:
            entries["parameters"] = decode(record.parameters, "parameters")
        except ValueError as error:
            raise BrokenStudyError(f"an event cannot be read: {error}") from error
    return kind(**entries)

"""Event lines: converts events of a study to lines of JSON and back."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from botorch_ext.codec import decode, encode
from botorch_ext.exceptions import BrokenStudyError
from botorch_ext.strategies.events import (
    Abandoned,
    Asked,
    Attached,
    Corrected,
    Event,
    Noted,
    Told,
    Trial,
    Widened,
    Withdrawn,
    measured_in,
)
from botorch_ext.studies.description import versions
from botorch_ext.studies.plain_events import Kind, PlainRecord


def as_text(event: Event) -> str:
    """Writes an event as one line of JSON, with the version of this library.

    Args:
        event: The event, in the sign of the user.

    Returns:
        The line.
    """
    match event:
        case Asked(trial):
            record = _of_trial("asked", trial)
        case Attached(trial):
            record = replace(_of_trial("attached", trial), **measured_in(event))
        case Told(id):
            record = PlainRecord("told", id, **measured_in(event))
        case Corrected(id):
            record = PlainRecord("corrected", id, **measured_in(event))
        case Abandoned(id, failed):
            record = PlainRecord("abandoned", id, failed=failed)
        case Withdrawn(id):
            record = PlainRecord("withdrawn", id)
        case Noted(id, text):
            record = PlainRecord("noted", id, text=text)
        case Widened(id, parameters, inside):
            encoded = encode(dict(parameters), "parameters")
            decode(encoded, "parameters")  # else nobody could open the study any more
            record = PlainRecord("widened", id, parameters=encoded, inside=list(inside))
    return replace(record, version=versions()["botorch-ext"]).line()


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
    measured = record.value, record.outcomes, record.std, record.repeats
    match record.kind:
        case "asked":
            return Asked(_trial(record, like))
        case "attached":
            return Attached(_trial(record, like), *measured)
        case "told":
            return Told(record.id, *measured)
        case "corrected":
            return Corrected(record.id, *measured)
        case "abandoned":
            return Abandoned(record.id, record.failed)
        case "withdrawn":
            return Withdrawn(record.id)
        case "noted":
            return Noted(record.id, record.text)
        case "widened":
            try:
                parameters = decode(record.parameters, "parameters")
            except ValueError as error:
                raise BrokenStudyError(f"an event cannot be read: {error}") from error
            return Widened(record.id, parameters, tuple(record.inside))


def _of_trial(kind: Kind, trial: Trial) -> PlainRecord:
    context = None if trial.context is None else trial.context.tolist()
    return PlainRecord(kind, trial.id, trial.x.tolist(), context, trial.info)


def _trial(record: PlainRecord, like: Tensor) -> Trial:
    context = None if record.context is None else like.new_tensor(record.context)
    return Trial(record.id, like.new_tensor(record.x), context, record.info)

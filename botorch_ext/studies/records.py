"""Records: events of a study as JSON whose numbers come back bit for bit."""

from __future__ import annotations

import json
import math
from typing import Any

from torch import Tensor

from botorch_ext.exceptions import BrokenStudyError
from botorch_ext.strategies.events import (
    Abandoned,
    Asked,
    Attached,
    Corrected,
    Event,
    Told,
    Trial,
)

_NOT_FINITE = "not finite"


def as_text(event: Event, sign: float) -> str:
    """One line of JSON; values in the sign of the user.

    Args:
        event: In the sign of the strategy.
        sign: -1 where the study minimises, else 1.
    """
    match event:
        case Asked(trial):
            record = {"event": "asked"} | _of_trial(trial)
        case Attached(trial, value):
            record = {"event": "attached"} | _of_trial(trial) | {"value": sign * value}
        case Told(id, value):
            record = {"event": "told", "id": id, "value": sign * value}
        case Corrected(id, value):
            record = {"event": "corrected", "id": id, "value": sign * value}
        case Abandoned(id, failed):
            record = {"event": "abandoned", "id": id, "failed": failed}
    return to_json(record)


def from_text(text: str, like: Tensor, sign: float) -> Event:
    """The event of a line.

    Args:
        text: What `as_text` wrote.
        like: Gives dtype and device of points.
        sign: As there.

    Raises:
        BrokenStudyError: Anything else.
    """
    try:
        record = from_json(text)
        kind = record.pop("event")
        id = _whole(record.pop("id"))
        match kind:
            case "asked":
                event: Event = Asked(_trial(id, record, like))
            case "attached":
                event = Attached(_trial(id, record, like), _value(record, sign))
            case "told":
                event = Told(id, _value(record, sign))
            case "corrected":
                event = Corrected(id, _value(record, sign))
            case "abandoned":
                event = Abandoned(id, record.pop("failed") is True)
            case _:
                raise ValueError(f"unknown kind {kind!r}")
        if record:
            raise ValueError(f"unknown entries {sorted(record)}")
    except (ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
        raise BrokenStudyError(f"an event of the study cannot be read: {error!r}") from error
    return event


def _of_trial(trial: Trial) -> dict[str, Any]:
    context = None if trial.context is None else trial.context.tolist()
    return {"id": trial.id, "x": trial.x.tolist(), "context": context, "info": trial.info}


def _trial(id: int, record: dict[str, Any], like: Tensor) -> Trial:
    context = record.pop("context")
    context = None if context is None else like.new_tensor(context)
    return Trial(id, like.new_tensor(record.pop("x")), context, record.pop("info"))


def to_json(plain: Any) -> str:
    """JSON of plain values, those that are not finite included."""
    try:
        return _WRITER.encode(plain)
    except ValueError:
        return _WRITER.encode(_marked(plain))


def from_json(text: str) -> Any:
    """What `to_json` was given."""
    # A hook takes as long as all the rest.
    return (_MARKED_READER if _NOT_FINITE in text else _READER).decode(text)


def _marked(plain: Any) -> Any:
    if isinstance(plain, float) and not math.isfinite(plain):
        return {_NOT_FINITE: repr(plain)}
    if isinstance(plain, dict):
        return {key: _marked(value) for key, value in plain.items()}
    if isinstance(plain, list | tuple):
        return [_marked(value) for value in plain]
    return plain


def _unmarked(record: dict[str, Any]) -> Any:
    return float(record[_NOT_FINITE]) if list(record) == [_NOT_FINITE] else record


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


# Made once: `json.dumps` and `json.loads` would make them for each text.
_WRITER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_READER = json.JSONDecoder(parse_constant=_refused)
_MARKED_READER = json.JSONDecoder(object_hook=_unmarked, parse_constant=_refused)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is no whole number")
    return value


def _value(record: dict[str, Any], sign: float) -> float:
    value = record.pop("value")
    if type(value) not in (int, float):
        raise ValueError(f"{value!r} is no number")
    return sign * value

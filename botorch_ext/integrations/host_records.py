"""Records of what was asked, which another tool keeps with its trials, and those trials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from botorch_ext.exceptions import BrokenStudyError, NewerStudyError
from botorch_ext.studies.plain_records import from_json, to_json

_VERSION = 1

Status = Literal["running", "told", "failed", "abandoned"]
#: What became of a trial: its kind, the key of the trial, and a value where there is one.
Fact = tuple[str, int | str, float | None]

_WITH_VALUE = ("told", "attached", "corrected")
_KINDS = (*_WITH_VALUE, "failed", "abandoned")


@dataclass(frozen=True)
class HostTrial:
    """A trial as another tool has it.

    Args:
        key: What that tool knows it by, and nothing else.
        values: Of its parameters, as far as they are known.
        status: Whether it runs, has a value, failed or was given up.
        value: What was observed, in the sign of the user; a trial that was told a value which is
            not finite counts as failed.
        context: What was seen before it was asked, ``d_z`` numbers; None where there are none.
        record: The text that came with it when it was asked; None where something else asked it.
    """

    key: int | str
    values: Mapping[str, Any]
    status: Status = "running"
    value: float | None = None
    context: list[float] | None = None
    record: str | None = None

    @property
    def outcome(self) -> Status:
        """The status, where values count that can be told."""
        is_told = self.value is not None and math.isfinite(self.value)
        return "failed" if self.status == "told" and not is_told else self.status


@dataclass(frozen=True)
class Record:
    """What is kept with a trial so that the strategy can be made anew.

    Args:
        of: What tells the strategy from others, a digest of its arguments.
        number: 0, 1, 2, ... in the order of asking.
        before: What the strategy learnt between the question before and this one, in that order.
        x: The point, ``d`` numbers.
        context: ``d_z`` numbers, or None.
        info: What was known when it was asked.
    """

    of: str
    number: int
    before: tuple[Fact, ...]
    x: list[float]
    context: list[float] | None = None
    info: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """JSON, whose numbers come back bit for bit."""
        before = [list(fact) if fact[2] is not None else list(fact[:2]) for fact in self.before]
        entries = {"version": _VERSION} | vars(self) | {"before": before}
        return to_json({name: entry for name, entry in entries.items() if entry is not None})

    @classmethod
    def read(cls, text: str) -> Record:
        """The record of a text.

        Args:
            text: What `text` wrote.

        Raises:
            NewerStudyError: A newer version wrote it.
            BrokenStudyError: Anything else.
        """
        try:
            entries = from_json(text)
            version = entries.pop("version")
            if version == _VERSION:
                before = tuple(_fact(*fact) for fact in entries.pop("before"))
                record = cls(before=before, **entries)
                if type(record.number) is int and isinstance(record.of, str):
                    return record
                raise ValueError(f"number must be a whole number, got {record.number!r}")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BrokenStudyError(f"the record of a trial cannot be read: {error!r}") from error
        raise NewerStudyError(
            f"the record of a trial has version {version!r}, this library reads {_VERSION}"
        )


def _fact(kind: str, key: int | str, value: float | None = None) -> Fact:
    if kind not in _KINDS or (kind in _WITH_VALUE) != isinstance(value, int | float):
        raise ValueError(f"{[kind, key, value]} is nothing that becomes of a trial")
    return kind, key, value

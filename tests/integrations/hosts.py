"""Host: the least that another tool has to keep, for tests."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from botorch_ext.integrations.host_trials import HostTrial
from botorch_ext.integrations.hosted import HostedStrategy


class Host:
    """Trials by their places."""

    def __init__(self) -> None:
        self.trials: list[HostTrial] = []

    def ask(self, hosted: HostedStrategy, context: Any = None) -> HostTrial:
        """Asks, and keeps the answer."""
        hosted.follow(self.trials)
        values, record = hosted.ask(context)
        self.trials.append(HostTrial(len(self.trials), values, context=context, record=record))
        return self.trials[-1]

    def add(self, values: dict[str, Any], value: float | None, **more: Any) -> None:
        """A trial that something else asked."""
        status = "running" if value is None else "told"
        trial = HostTrial(len(self.trials), values, status, value)
        self.trials.append(replace(trial, **more))

    def tell(self, key: int, value: float) -> None:
        self.trials[key] = replace(self.trials[key], status="told", value=value)

    def set(self, key: int, **more: Any) -> None:
        self.trials[key] = replace(self.trials[key], **more)


def objective(values: Mapping[str, Any]) -> float:
    """Some value of numbers and words."""
    total = 0.0
    for place, value in enumerate(values.values()):
        number = float(len(value)) if isinstance(value, str) else float(value)
        total += math.sin(number + place) - 0.01 * number
    return total

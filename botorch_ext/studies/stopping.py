"""Stopping: decides whether a run ends before its last trial."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from botorch_ext.checks import amount, short
from botorch_ext.strategies import Trial
from botorch_ext.studies.failures import takes

#: Called with a trial and its value.
Callback = Callable[[Trial, float], Any]


@dataclass
class Stopping:
    """Ends a run before its last trial.

    Args:
        callback: A function that is called after each trial, and ends the run by returning True.
        time_limit: Seconds after which nothing more is asked.
        target: The value that is good enough, in the sign of the objective.

    Raises:
        ValueError: The callback is no function of two arguments, the time limit is not positive and
            finite, or the target is not finite.
    """

    callback: Callback | None
    time_limit: float | None
    target: float | None
    #: The name of the argument that ended the run; None while the run continues.
    reason: str | None = None
    began: float = field(default_factory=lambda: time.monotonic())

    def __post_init__(self) -> None:
        if self.callback is not None and not (callable(self.callback) and takes(self.callback, 2)):
            raise ValueError(
                "callback must be a function of a trial and its value, or None, got "
                f"{short(self.callback)}"
            )
        if self.time_limit is not None:
            self.time_limit = amount(self.time_limit, "time_limit", "positive and finite")
        if self.target is not None:
            self.target = amount(self.target, "target", "finite")

    @property
    def seconds(self) -> float:
        """How long the run has taken."""
        return time.monotonic() - self.began

    def is_late(self) -> bool:
        """Whether the time limit has passed."""
        if self.time_limit is not None and self.seconds >= self.time_limit:
            self.reason = self.reason or "time_limit"
        return self.reason is not None

    def is_over(self, best: Callable[[], float | None], minimize: bool) -> bool:
        """Whether nothing more is to be asked."""
        if self.reason is None and self.target is not None:
            value = best()
            if value is not None and (value <= self.target if minimize else value >= self.target):
                self.reason = "target"
        return self.is_late()

    def call(self, trial: Trial, value: float) -> None:
        """Calls the callback, if there is one.

        Args:
            trial: The trial.
            value: The value; NaN if the trial was given up.
        """
        if self.callback is None:
            return
        answer = self.callback(trial.copy(), value)  # it may change the trial
        # Comparisons of tensors and of NumPy numbers return their own kinds of bool.
        if isinstance(answer, Tensor | np.ndarray | np.generic) and len(answer.reshape(-1)) == 1:
            answer = answer.item()
        if answer is True:
            self.reason = self.reason or "callback"

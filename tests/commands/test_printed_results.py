"""Results, studies and trials as they are printed: a few lines that people read."""

import re

import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import TrialFailedWarning
from botorch_ext.strategies import RandomSearch

ROWS = bx.FiniteSet([[2.0, -3.0], [2.5, -2.0], [4.0, -1.5]])


def test_a_run_and_its_strategy():
    def fails_at_first(x):
        calls.append(x)
        if len(calls) == 1:
            raise RuntimeError("no signal")
        return float(x.sum())

    calls, strategy = [], RandomSearch(ROWS)
    assert str(strategy).splitlines() == ["RandomSearch", "  trials: 0 told"]
    with pytest.warns(TrialFailedWarning):
        result = bx.run(strategy, fails_at_first, 3, minimize=True, progress=False, target=9.0)
    strategy.ask(2)
    x, trials = calls[1], "  trials: 1 told, 1 failed, 2 pending"
    at = f"{float(x.sum()):.6g} at [{x[0]:.6g}, {x[1]:.6g}]"
    shown = re.sub(r"(?<=seconds: )[\d.e+-]+", "0", str(result)).splitlines()
    best = f"  best value: {at}"
    assert shown == ["RunResult", trials, "  seconds: 0", best, "  stopped by: target"]
    assert str(strategy).splitlines() == ["RandomSearch", trials, f"  best value told: {at}"]


@pytest.mark.parametrize(
    ("trial", "shown"),
    [
        (
            bx.Trial(0, torch.tensor([5.0]), torch.tensor([1 / 3])),
            "Trial 0 at [5] in context [0.333333]",
        ),
        (bx.Trial(0, torch.arange(12.0)), "Trial 0 at [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... of 12]"),
        (bx.Trial(4, None), "Trial 4 at None"),  # about to be refused
    ],
)
def test_a_trial(trial, shown):
    assert repr(trial) == shown

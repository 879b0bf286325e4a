"""Picture of the insured methods: cumulative regret where nothing is wrong, and where it is."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from benchmarks.common.tables import Row
from benchmarks.delayed_feedback.runs import POISSON
from benchmarks.insured.claims import cells
from benchmarks.insured.methods import (
    ALWAYS,
    ARRIVAL,
    BPE_DELAY,
    EC_GP_UCB,
    GP_BUCB,
    GP_UCB,
    INSURED,
    NUGGET,
    SAFE,
    THEORY,
    USEFUL,
)
from benchmarks.insured.tables import SEQUENTIAL
from botorch_ext.plotting import PALETTE

_SHOWN = (
    ("price", "d = 1", SEQUENTIAL),
    ("generic", "d = 2, eps = 0.1", SEQUENTIAL),
    ("worst", "lock-out, d = 2", SEQUENTIAL),
    ("delays", "f1", POISSON[-1]),
)
# The same in all panels; the last, of delays, has methods of its own. Dashed lines may lie upon
# others.
_LOOKS: dict[str, dict[str, Any]] = {
    GP_UCB: {"color": PALETTE[0]},
    GP_BUCB: {"color": PALETTE[0]},
    EC_GP_UCB: {"color": PALETTE[1]},
    BPE_DELAY: {"color": PALETTE[1]},
    ARRIVAL: {"color": PALETTE[1], "linestyle": "--"},
    INSURED: {"color": PALETTE[2]},
    USEFUL: {"color": PALETTE[2]},
    ALWAYS: {"color": PALETTE[3], "linestyle": "--"},
    SAFE: {"color": PALETTE[3], "linestyle": "--"},
    f"{SAFE}, certificates": {"color": PALETTE[4], "linestyle": ":"},
    NUGGET: {"color": PALETTE[6]},
}


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Mean curves over the seeds: of each table that is there one problem in one setting, with
    practical widths."""
    figure, axes = plt.subplots(1, len(_SHOWN), figsize=(15, 3.6), layout="constrained")
    for ax, (table, problem, setting) in zip(axes, _SHOWN, strict=True):
        shown = cells(rows, table=[table], problem=[problem], setting=[setting])
        for name, cell in list(shown.items())[:1]:
            played = dict.fromkeys(row["method"] for row in cell)
            for method in (method for method in played if not method.endswith(THEORY)):
                curves = [row["curve"] for row in cell if row["method"] == method]
                means = [statistics.fmean(values) for values in zip(*curves, strict=True)]
                horizon = cell[0]["horizon"]
                steps = [horizon * i / (len(means) - 1) for i in range(len(means))]
                ax.plot(steps, means, label=method, **_LOOKS[method])
            ax.set(title=name, xlabel="evaluations", ylabel="cumulative regret")
            ax.legend(fontsize="small")
    figure.savefig(folder / "regret.png", dpi=120)
    plt.close(figure)

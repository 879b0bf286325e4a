"""Picture of the certified points growing in one dimension."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.common.pictures import save
from benchmarks.safety.runs import FIRST_SEED, scene_of, strategy_of, tell
from benchmarks.tight.runs import SIGMA, Case, generator_of
from botorch_ext.plotting import PALETTE

# Captions, in the order of the report.
PICTURES = {
    "growth.png": (
        "The set of certified points grows from one seed. The outcome must be at least the dashed "
        "limit; the bounds are those of `mixture`, crosses are results, and green marks are "
        "certified points. The safe points left of the unsafe valley are never reached."
    ),
}
_AFTER = (1, 5, 15, 40)
_SCENE = Case("growth", "d = 1", "mixture", FIRST_SEED - 5, _AFTER[-1])


def draw(folder: Path) -> None:
    """Draws growth.png: the outcome, its bounds, its limit and the certified points after 1, 5, 15
    and 40 trials."""
    import matplotlib.pyplot as plt

    generator = generator_of(_SCENE)
    scene = scene_of(_SCENE, generator)
    noise = SIGMA * torch.randn(_SCENE.horizon, 2, generator=generator, dtype=torch.float64)
    strategy = strategy_of(_SCENE.method, scene)
    order = scene.points[:, 0].argsort()
    x = scene.points[order, 0]
    figure, axes = plt.subplots(
        1, len(_AFTER), figsize=(13, 3.6), sharey=True, layout="constrained"
    )
    rows: list[int] = []
    for ax, num in zip(axes, _AFTER, strict=True):
        while len(rows) < num:
            rows.append(strategy.ask().info["index"])
            tell(strategy, len(rows) - 1, scene, rows[-1], noise[len(rows) - 1])
        lower, upper = (each[order] for each in strategy.outcome_bounds())
        certified = strategy.certified[order]
        ax.fill_between(x, lower, upper, color=PALETTE[0], alpha=0.2, linewidth=0, label="bounds")
        ax.plot(x, scene.outcomes[order], color="0.2", linewidth=1.2, label="outcome")
        ax.axhline(
            scene.limit, color=PALETTE[1], linestyle="dashed", linewidth=1.2, label="least safe"
        )
        results = [
            float(scene.outcomes[row] + own[1]) for row, own in zip(rows, noise, strict=False)
        ]
        ax.plot(scene.points[rows, 0], results, "x", color="0.2", markersize=5, label="results")
        floor = torch.full_like(x[certified], -2.15)
        ax.plot(x[certified], floor, "|", color=PALETTE[2], markersize=9, label="certified")
        share = float((strategy.certified & scene.safe).sum() / scene.safe.sum())
        trials = "1 trial" if num == 1 else f"{num} trials"
        ax.set_title(f"after {trials}: {share:.0%} of the safe points", fontsize="medium")
        ax.set_xlabel("x")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("outcome")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=len(labels), loc="outside lower center", fontsize="small")
    save(figure, folder / "growth.png", 100)
    plt.close(figure)

"""Demo: tuning a support vector classifier with four workers whose results come back late.

    python -m benchmarks.demo

Integrated EI, which is told nothing but the box, beside methods that were given a kernel: GP-UCB
that counts pending points, and its insured form; and random search. Prints a table and writes it,
with a picture. All is kept in demo.db beside them: killed and started again, it goes on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch import Tensor
from tqdm import tqdm

import botorch_ext as bx
from benchmarks.common.pictures import save
from benchmarks.measured.svc import SVCTuning
from botorch_ext.plotting import plot_best_value, plot_posterior_1d
from botorch_ext.strategies import RandomSearch
from botorch_ext.strategies.adaptive.improvement import ImprovementStrategy

WORKERS = 4
# In units of accuracy. The landscape is a ridge beside a plateau where every case is called benign,
# with a step wherever a case changes sides: no smooth kernel expresses that. The steps are taken
# for noise.
NUM_TRIALS = 40
NOISE_STD = 0.005
NOISE_VARIANCE = NOISE_STD**2 * NUM_TRIALS
WIDTH = 1.0
PRIOR_MEAN = 0.8
RKHS_BOUND = 2.0


def kernel() -> ScaleKernel:
    """Accuracies vary by about 0.15 around the prior mean, over about one decade of C or gamma."""
    scaled = ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=2)).double()
    scaled.base_kernel.lengthscale = torch.tensor([[2.0, 1.5]], dtype=torch.float64)
    scaled.outputscale = torch.tensor(0.15**2, dtype=torch.float64)
    return scaled


def prior_mean() -> ConstantMean:
    """A typical accuracy."""
    mean = ConstantMean().double()
    mean.constant.data.fill_(PRIOR_MEAN)
    return mean


def integrated_ei(box: bx.Box, seed: int) -> ImprovementStrategy:
    """The default method, from data alone."""
    return bx.algorithms.integrated_ei(box, seed=seed)


def given() -> dict[str, Any]:
    """What the methods with a kernel are told."""
    return {
        "kernel": kernel(),
        "noise_variance": NOISE_VARIANCE,
        "width": WIDTH,
        "mean": prior_mean(),
        "num_initial": WORKERS,
    }


def gp_ucb(box: bx.Box, seed: int) -> bx.Strategy:
    """GP-UCB that counts pending points."""
    return bx.algorithms.gp_ucb(box, seed=seed, **given())


def insured_ucb(box: bx.Box, seed: int) -> bx.Strategy:
    """The same, insured."""
    return bx.algorithms.insured_ucb(
        box, noise_std=NOISE_STD, rkhs_bound=RKHS_BOUND, seed=seed, **given()
    )


def random_search(box: bx.Box, seed: int) -> bx.Strategy:
    """Random points."""
    return RandomSearch(box, seed=seed)


METHODS: dict[str, Callable[[bx.Box, int], bx.Strategy]] = {
    "integrated EI, from data alone": integrated_ei,
    "GP-UCB": gp_ucb,
    "insured GP-UCB": insured_ucb,
    "random search": random_search,
}


def play(study: bx.Study, problem: SVCTuning, num_trials: int) -> None:
    """Goes on with a study to its end. Whose result is told next is drawn: it depends neither on a
    clock nor on how often the process died."""
    rng = np.random.default_rng(problem.seed)
    told_at = np.arange(num_trials) + rng.uniform(0, 2 * WORKERS, num_trials)
    results: dict[int, Future[float]] = {}
    with ThreadPoolExecutor(WORKERS) as workers:
        while True:
            trials, under_way = study.strategy.history.trials, study.pending
            for id in set(under_way) - set(results):
                results[id] = workers.submit(problem.evaluate, trials[id].x)
            if len(under_way) < WORKERS and len(trials) < num_trials:
                study.ask()
            elif under_way:
                id = min(under_way, key=told_at.__getitem__)
                study.tell(id, results[id].result())
            else:
                return


def picture(
    curves: dict[str, np.ndarray],
    strategy: bx.Strategy,
    problem: SVCTuning,
    num_points: int,
    path: Path,
) -> None:
    """Best value against evaluations, and the posterior along gamma at three times of one study."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(13, 8.5), layout="constrained")
    panels: Any = figure.subfigures(2, 1, height_ratios=[1.15, 1])
    top, bottom = panels
    ax = top.subplots()
    plot_best_value(curves, ax=ax)
    # It asks mostly what GP-UCB asks, whose line is below it.
    ax.lines[list(curves).index("insured GP-UCB")].set_linestyle("--")
    ax.legend()
    num_seeds = len(next(iter(curves.values())))
    ax.set_ylabel(f"best accuracy so far\n(mean ± standard error, {num_seeds} seeds)")
    ax.set_ylim(0.95, 0.99)
    ax.set_title(
        f"Tuning an SVC (breast cancer data) with {WORKERS} workers whose results come back late"
    )

    best, _ = strategy.best()
    told = [event for event in strategy.events if not isinstance(event, bx.strategies.Asked)]
    axes = bottom.subplots(1, 3, sharey=True)
    bottom.suptitle(
        f"Integrated EI, one study: what it believed along log10 C = {best[0]:.1f}, at three times."
        "\nResults far below the best are compressed, since how low a failure was says little"
    )
    for ax, share in zip(axes, (0.15, 0.4, 1.0), strict=True):
        number = max(1, round(share * len(told)))
        events = strategy.events[: strategy.events.index(told[number - 1]) + 1]
        then = integrated_ei(problem.domain, strategy.seed)
        then.replay(events)
        plot_posterior_1d(
            then.posterior.to_botorch(),
            problem.domain,
            ax=ax,
            dim=1,
            slice_at=best,
            truth=problem,
            num_points=num_points,
        )
        ax.set_xlabel("log10 gamma")
        ax.set_title(f"after {number} results")
        ax.set_ylabel("accuracy" if ax is axes[0] else "")
    unfinished = path.with_stem(f"{path.stem}-unfinished")
    save(figure, unfinished, 110)
    unfinished.replace(path)  # at once: that it is there says that all came to its end
    plt.close(figure)


def num_repeats(X: Tensor, box: bx.Box) -> int:
    """How many points lie within 2% of the box of an earlier one."""
    U = (X - box.lower) / (box.upper - box.lower)
    near = torch.cdist(U, U) < 0.02
    return int(near.tril(diagonal=-1).any(dim=1).sum())


def table(curves: dict[str, np.ndarray], repeats: dict[str, list[int]]) -> str:
    """Mean and standard error over the seeds, as Markdown."""
    num_trials = next(iter(curves.values())).shape[1]
    marks = sorted({max(1, num_trials // 4), max(1, num_trials // 2), num_trials})
    head = [f"best after {mark}" for mark in marks]
    lines = [
        "| method | " + " | ".join(head) + " | repeated points |",
        "|---|" + "---|" * (len(head) + 1),
    ]
    for name, values in curves.items():
        best = np.maximum.accumulate(values, axis=1)[:, [mark - 1 for mark in marks]]
        error = best.std(axis=0, ddof=1) / np.sqrt(len(best)) if len(best) > 1 else 0 * best[0]
        cells = [f"{m:.4f} ± {e:.4f}" for m, e in zip(best.mean(axis=0), error, strict=True)]
        points = f"{np.mean(repeats[name]):.0f} of {num_trials}"
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {points} |")
    return "\n".join(lines)


def main() -> None:
    """Runs all studies, prints the table and writes it with the picture."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="a few seconds, to see that it runs")
    parser.add_argument("--output", type=Path, help="folder of study, table and picture")
    arguments = parser.parse_args()
    num_trials, num_seeds = (8, 1) if arguments.smoke else (NUM_TRIALS, 3)
    output = arguments.output or Path("out/benchmarks/demo" if arguments.smoke else "out")
    output.mkdir(parents=True, exist_ok=True)
    place, path = output / "demo.db", output / "demo.png"
    if path.exists():  # this one came to its end: begin anew
        for file in (place, Path(f"{place}-wal"), Path(f"{place}-shm"), path):
            file.unlink(missing_ok=True)

    torch.set_num_threads(1)  # the workers use the cores
    start = time.perf_counter()
    curves: dict[str, list[list[float]]] = {name: [] for name in METHODS}
    repeats: dict[str, list[int]] = {name: [] for name in METHODS}
    strategies: list[bx.Strategy] = []
    studies = [(seed, name) for seed in range(num_seeds) for name in METHODS]
    for seed, name in tqdm(studies, unit="study"):
        problem = SVCTuning("breast_cancer", seed=seed)  # other folds for each seed
        strategy = METHODS[name](problem.domain, seed)
        study = bx.Study(place, strategy, name=f"{name}, seed {seed}")
        play(study, problem, num_trials)
        strategies.append(study.strategy)
        X, Y = strategies[-1].evaluated()
        curves[name].append(Y.tolist())
        repeats[name].append(num_repeats(X, problem.domain))
    arrays = {name: np.array(values) for name, values in curves.items()}
    heading = f"Accuracy, {num_seeds} seeds, {num_trials} evaluations each (mean ± standard error):"
    text = f"{heading}\n\n{table(arrays, repeats)}\n"
    print(f"\n{text}")
    report = f"# Demo\n\n`python -m benchmarks.demo`. {text}\n![The demo](demo.png)\n"
    (output / "report.md").write_text(report)
    shown = SVCTuning("breast_cancer", seed=0)
    picture(arrays, strategies[0], shown, 8 if arguments.smoke else 80, path)
    print(f"Picture: {path}  ({time.perf_counter() - start:.0f} s in all)")
    print(
        f"All trials, until this is run again: {place}, for botorch-ext status, trials and report"
    )


if __name__ == "__main__":
    main()

"""Thompson sampling beside GP-UCB where the model is right, on the functions of this benchmark.

    python -m benchmarks.misspecification.draws [--smoke]

Writes thompson.md: the cumulative regret of 150 steps on 500 candidates, d = 1 and d = 2, means and
standard errors over 10 functions, and the ratio to GP-UCB with the same functions and noise.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

import botorch_ext as bx
from benchmarks.common.command_line import parse_options
from benchmarks.common.tables import Row, markdown_table
from benchmarks.misspecification.runs import NOISE_STD, RKHS_BOUND, generic_problem

# Each method with its name in the table; widths are the published one, of practice, and none.
METHODS: dict[str, Callable[..., bx.Strategy]] = {
    "GP-UCB, theory": lambda *args, **kwargs: bx.algorithms.gp_ucb(
        *args, rkhs_bound=RKHS_BOUND, noise_std=NOISE_STD, **kwargs
    ),
    "GP-UCB, width 2": lambda *args, **kwargs: bx.algorithms.gp_ucb(*args, width=2.0, **kwargs),
    "Thompson sampling": bx.algorithms.thompson_sampling,
}


def measured(dim: int, horizon: int, num_functions: int) -> list[Row]:
    """A row for each method: its regret, and the seconds of an ask and a tell."""
    rows: list[Row] = []
    for name, make in METHODS.items():
        regrets, start = [], time.perf_counter()
        for seed in range(num_functions):
            problem, kernel = generic_problem(dim, 0.0, 0, seed)
            strategy = make(problem.domain, kernel, noise_variance=NOISE_STD**2, seed=seed)
            trace = bx.simulate(strategy, problem, horizon, seed=seed)
            regrets.append(float(trace.regret.sum()))
        seconds = (time.perf_counter() - start) / (num_functions * horizon)
        values = torch.tensor(regrets, dtype=torch.float64)
        error = float(values.std() / num_functions**0.5)
        row: dict[str, Any] = {"d": dim, "method": name, "mean": float(values.mean())}
        rows.append(row | {"error": error, "ms per step": 1000 * seconds})
    return rows


def main(argv: list[str] | None = None) -> None:
    """Runs both experiments and writes the table."""
    options = parse_options("misspecification", "Thompson sampling beside GP-UCB.", argv)
    torch.set_num_threads(1)
    horizon, num_functions = (10, 2) if options.smoke else (150, 10)
    rows = [row for dim in (1, 2) for row in measured(dim, horizon, num_functions)]
    lines = []
    for row in rows:
        of_ucb = next(r for r in rows if r["d"] == row["d"] and r["method"] == "GP-UCB, width 2")
        lines.append(
            {
                "d": row["d"],
                "method": row["method"],
                f"regret of {horizon} steps": f"{row['mean']:.1f} ± {row['error']:.1f}",
                "of that of GP-UCB, width 2": f"{row['mean'] / of_ucb['mean']:.2f}",
                "ms per step": f"{row['ms per step']:.1f}",
            }
        )
    text = "# Thompson sampling beside GP-UCB\n\n`python -m benchmarks.misspecification.draws`: "
    text += f"{num_functions} functions of RKHS norm {RKHS_BOUND}, "
    text += f"noise {NOISE_STD}, 500 candidates.\n\n"
    (options.output / "thompson.md").write_text(text + markdown_table(lines) + "\n")


if __name__ == "__main__":
    main()

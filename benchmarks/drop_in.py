"""The drop-in acquisition function, with four evaluations under way at once.

    python -m benchmarks.drop_in [--smoke | --full]

Each decision fits a SingleTaskGP and chooses four points, which are evaluated together. Methods:

- *EnlargedUpperConfidenceBound*: points already chosen count as pending.
- *UpperConfidenceBound*: BoTorch's, which takes no pending points: four maximisations in a row.
- *qUpperConfidenceBound*: BoTorch's Monte Carlo bound of a batch.
- *Sobol*: quasi-random points.

Every bound has width 2 (beta = 4). Writes drop_in.md and .csv.
"""

from __future__ import annotations

import statistics
import time
import warnings
from dataclasses import dataclass

import torch
from botorch.acquisition import UpperConfidenceBound, qUpperConfidenceBound
from botorch.exceptions import BotorchWarning
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.test_functions import Ackley, Branin, Hartmann
from botorch.test_functions.synthetic import SyntheticTestFunction
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks._harness import (
    Row,
    describe_machine,
    in_processes,
    markdown_table,
    parse_options,
    write_csv,
)
from benchmarks._statistics import column, difference, standard_error
from botorch_ext.acquisition import EnlargedUpperConfidenceBound

_OURS = "EnlargedUpperConfidenceBound"
_PLAIN = "UpperConfidenceBound"
_MONTE_CARLO = "qUpperConfidenceBound"
_RANDOM = "Sobol"
_METHODS = (_OURS, _PLAIN, _MONTE_CARLO, _RANDOM)
_WIDTH = 2.0
_WORKERS = 4


@dataclass(frozen=True)
class _Case:
    problem: str
    method: str
    seed: int
    num_initial: int
    num_batches: int
    num_restarts: int
    raw_samples: int


def main(argv: list[str] | None = None) -> None:
    """Runs the comparison and writes its two files."""
    options = parse_options(
        "Four points at a time, with and without counting what is pending.",
        argv,
        full="20 seeds, 20 batches",
        processes=True,
    )
    num_seeds, num_batches, restarts, raw = 6, 10, 4, 128
    if options.smoke:
        num_seeds, num_batches, restarts, raw = 2, 1, 2, 16
    elif options.full:
        num_seeds, num_batches, restarts, raw = 20, 20, 8, 256
    cases = [
        _Case(problem, method, options.seed + i, 8, num_batches, restarts, raw)
        for problem in _problems()
        for i in range(num_seeds)
        for method in _METHODS
    ]
    processes = 1 if options.smoke else options.processes
    rows = in_processes(_play, cases, processes, "drop-in")
    text = _report(rows, cases[0], num_seeds)
    print(text)
    (options.output / "drop_in.md").write_text(text)
    write_csv(options.output / "drop_in.csv", rows)


def _problems() -> dict[str, SyntheticTestFunction]:
    return {
        "Hartmann6": Hartmann(dim=6, negate=True),
        "Branin": Branin(negate=True),
        "Ackley4": Ackley(dim=4, bounds=[(-5.0, 10.0)] * 4, negate=True),
    }


def _play(case: _Case) -> Row:
    problem = _problems()[case.problem].to(torch.float64)
    bounds = problem.bounds
    total = case.num_initial + case.num_batches * _WORKERS
    torch.manual_seed(case.seed)
    start = time.perf_counter()
    X = draw_sobol_samples(bounds, total, 1, seed=case.seed).squeeze(1)
    if case.method != _RANDOM:
        X = X[: case.num_initial]
        for _ in range(case.num_batches):
            X = torch.cat([X, _choose(case, X, problem(X).unsqueeze(-1), bounds)])
    values = problem(X)
    return {
        "problem": case.problem,
        "method": case.method,
        "seed": case.seed,
        "regret": float(problem.optimal_value - values.max()),
        "initial_regret": float(problem.optimal_value - values[: case.num_initial].max()),
        "closest": _closest(X[case.num_initial :], bounds),
        "seconds": time.perf_counter() - start,
    }


def _choose(case: _Case, X: Tensor, Y: Tensor, bounds: Tensor) -> Tensor:
    """The next points, from a model that is fitted to all values so far."""
    model = SingleTaskGP(X, Y, input_transform=Normalize(X.shape[-1], bounds=bounds))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        if case.method == _OURS:
            acquisition = EnlargedUpperConfidenceBound(model, width=_WIDTH)
        elif case.method == _MONTE_CARLO:
            sampler = SobolQMCNormalSampler(torch.Size([128]), seed=case.seed)
            acquisition = qUpperConfidenceBound(model, beta=_WIDTH**2, sampler=sampler)
        else:
            acquisition = UpperConfidenceBound(model, beta=_WIDTH**2)
        takes_pending = case.method in (_OURS, _MONTE_CARLO)
        repeats = _WORKERS if case.method == _PLAIN else 1
        return torch.cat(
            [
                optimize_acqf(
                    acquisition,
                    bounds,
                    q=_WORKERS if takes_pending else 1,
                    num_restarts=case.num_restarts,
                    raw_samples=case.raw_samples,
                    sequential=takes_pending,
                )[0]
                for _ in range(repeats)
            ]
        )


def _closest(X: Tensor, bounds: Tensor) -> float:
    """How far the second of two points of a batch is at least from the first, as the median over
    the batches, in sides of the box."""
    batches = ((X - bounds[0]) / (bounds[1] - bounds[0])).reshape(-1, _WORKERS, X.shape[-1])
    return statistics.median(float(torch.pdist(batch).min()) for batch in batches)


def _report(rows: list[Row], case: _Case, num_seeds: int) -> str:
    total = case.num_initial + case.num_batches * _WORKERS
    text = (
        "# The drop-in acquisition function, four evaluations at once\n\n"
        f"Simple regret (maximum minus best value seen) after {total} evaluations, "
        f"{case.num_initial} of them Sobol points: mean ± standard error of {num_seeds} seeds. "
        "A SingleTaskGP is fitted before each decision; width 2 for every bound; no noise. "
        "*Closest*: the least distance of two points of a batch, in sides of the box, median over "
        "batches and seeds.\n\n"
    )
    table, pairs = [], []
    for problem in _problems():
        of_problem = [row for row in rows if row["problem"] == problem]
        for method in _METHODS:
            regret = column(of_problem, "regret", method=method)
            closest = statistics.median(column(of_problem, "closest", method=method))
            seconds = statistics.fmean(column(of_problem, "seconds", method=method))
            table.append(
                {
                    "problem": problem,
                    "method": method,
                    "regret": f"{statistics.fmean(regret):.3f} ± {standard_error(regret):.3f}",
                    "median": statistics.median(regret),
                    "closest": closest,
                    "seconds a run": seconds,
                }
            )
        for other in _METHODS[1:]:
            mean, error = difference(of_problem, "regret", _OURS, other)
            ours, theirs = (column(of_problem, "regret", method=m) for m in (_OURS, other))
            wins = sum(a < b for a, b in zip(ours, theirs, strict=True))
            pairs.append(
                {
                    "problem": problem,
                    f"{_OURS} minus": other,
                    "difference": f"{mean:+.3f} ± {error:.3f}",
                    "less in": f"{wins} of {num_seeds}",
                }
            )
    text += markdown_table(table) + "\nPaired differences of the regret:\n\n"
    text += markdown_table(pairs)
    return text + f"\n`python -m benchmarks.drop_in` on {describe_machine()}.\n"


if __name__ == "__main__":
    main()

"""The runs of the comparison: one method on one problem, with one seed."""

from __future__ import annotations

import statistics
import time
import warnings
from dataclasses import dataclass

import torch
from botorch.acquisition import AcquisitionFunction, UpperConfidenceBound, qUpperConfidenceBound
from botorch.acquisition.logei import qLogExpectedImprovement, qLogNoisyExpectedImprovement
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

from benchmarks.common.tables import Row
from botorch_ext.acquisition import EnlargedUpperConfidenceBound

OURS = "EnlargedUpperConfidenceBound"
PLAIN = "UpperConfidenceBound"
MONTE_CARLO = "qUpperConfidenceBound"
IMPROVEMENT = "qLogExpectedImprovement"
NOISY_IMPROVEMENT = "qLogNoisyExpectedImprovement"
RANDOM = "Sobol"
METHODS = (OURS, IMPROVEMENT, NOISY_IMPROVEMENT, MONTE_CARLO, PLAIN, RANDOM)
WIDTH = 2.0
WORKERS = 4


@dataclass(frozen=True)
class Case:
    """One run.

    Args:
        problem: Its name.
        method: Likewise.
        seed: Of the Sobol points and of everything random.
        num_initial: Sobol points that are evaluated first.
        num_batches: Decisions, each of four points.
        num_restarts: Of the maximisation.
        raw_samples: Likewise.
    """

    problem: str
    method: str
    seed: int
    num_initial: int
    num_batches: int
    num_restarts: int
    raw_samples: int


def problems() -> dict[str, SyntheticTestFunction]:
    """The functions, to be maximised."""
    return {
        "Hartmann6": Hartmann(dim=6, negate=True),
        "Branin": Branin(negate=True),
        "Ackley4": Ackley(dim=4, bounds=[(-5.0, 10.0)] * 4, negate=True),
    }


def play(case: Case) -> Row:
    """The regret of a run, and how close the points of its batches lie."""
    problem = problems()[case.problem].to(torch.float64)
    bounds = torch.as_tensor(problem.bounds)
    total = case.num_initial + case.num_batches * WORKERS
    torch.manual_seed(case.seed)
    start = time.perf_counter()
    X = draw_sobol_samples(bounds, total, 1, seed=case.seed).squeeze(1)
    if case.method != RANDOM:
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


def _choose(case: Case, X: Tensor, Y: Tensor, bounds: Tensor) -> Tensor:
    """The next points, from a model that is fitted to all values so far."""
    model = SingleTaskGP(X, Y, input_transform=Normalize(X.shape[-1], bounds=bounds))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchWarning)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = _acquisition(case, model, X, Y)
        takes_pending = case.method != PLAIN
        repeats = 1 if takes_pending else WORKERS
        return torch.cat(
            [
                optimize_acqf(
                    acquisition,
                    bounds,
                    q=WORKERS if takes_pending else 1,
                    num_restarts=case.num_restarts,
                    raw_samples=case.raw_samples,
                    sequential=takes_pending,
                )[0]
                for _ in range(repeats)
            ]
        )


def _acquisition(case: Case, model: SingleTaskGP, X: Tensor, Y: Tensor) -> AcquisitionFunction:
    """What the method maximises."""
    sampler = SobolQMCNormalSampler(torch.Size([128]), seed=case.seed)
    if case.method == OURS:
        return EnlargedUpperConfidenceBound(model, width=WIDTH)
    if case.method == PLAIN:
        return UpperConfidenceBound(model, beta=WIDTH**2)
    if case.method == MONTE_CARLO:
        return qUpperConfidenceBound(model, beta=WIDTH**2, sampler=sampler)
    if case.method == IMPROVEMENT:
        return qLogExpectedImprovement(model, best_f=Y.max(), sampler=sampler)
    return qLogNoisyExpectedImprovement(model, X_baseline=X, sampler=sampler, prune_baseline=True)


def _closest(X: Tensor, bounds: Tensor) -> float:
    """How far the second of two points of a batch is at least from the first, as the median over
    the batches, in sides of the box."""
    batches = ((X - bounds[0]) / (bounds[1] - bounds[0])).reshape(-1, WORKERS, X.shape[-1])
    return statistics.median(float(torch.pdist(batch).min()) for batch in batches)

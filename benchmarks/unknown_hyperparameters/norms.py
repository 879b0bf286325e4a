"""Norms that a candidate model needs to express a function: which norm bounds are honest."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_ext.problems import HyperparameterProblem

# How close to the function counts as expressing it, in its units.
CLOSE = (0.3, 0.1, 0.01)
_LEAST_RIDGE = 1e-12


@torch.no_grad()
def needed_norms(problem: HyperparameterProblem) -> list[list[float]]:
    """The norm of a function in the RKHS of a candidate that comes as close to the problem's, at
    every point of its finite set, as each of `CLOSE`: of the smoothest ridge regression that does.

    It is an upper bound on the least such norm, and at most the norm of the problem's function
    where the RKHS has it.

    Returns:
        A list for each candidate; infinity where no ridge above 1e-12 comes so close.
    """
    models, points = problem.candidates(noise_variance=1.0), problem.domain.like
    y = problem(points)
    norms = []
    for position in range(models.num_models):
        K = models.single(position).kernel_function(points, points)
        eigenvalues, vectors = torch.linalg.eigh(K)
        eigenvalues = eigenvalues.clamp_min(0)
        norms.append([_norm(eigenvalues, vectors, y, close) for close in CLOSE])
    return norms


def _norm(eigenvalues: Tensor, vectors: Tensor, y: Tensor, close: float) -> float:
    along = vectors.mT @ y

    def weights(log_ridge: float) -> Tensor:
        return along / (eigenvalues + math.exp(log_ridge))

    def is_close(log_ridge: float) -> bool:
        error = y - vectors @ (eigenvalues * weights(log_ridge))
        return float(error.abs().max()) <= close

    low, high = math.log(_LEAST_RIDGE), math.log(1e4)
    if not is_close(low):
        return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if is_close(middle) else (low, middle)
    return float((eigenvalues * weights(low).square()).sum().sqrt())

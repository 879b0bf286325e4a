"""TuRBO-1 as BoTorch's tutorial writes it, with its numbers, one question at a time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import torch
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.generation import MaxPosteriorSampling
from botorch.models import SingleTaskGP
from botorch.utils.sampling import draw_sobol_samples
from gpytorch import settings
from gpytorch.constraints import Interval
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks.real.spaces import Parameter, Params

_LENGTH, _SHORTEST, _LONGEST = 0.8, 0.5**7, 1.6
_SUCCESSES, _FEWEST_FAILURES = 10, 4


class Turbo:
    """One trust region around the best point, Thompson sampling in it, and a new start when it has
    become small.

    The original paper takes 3 successes for the tutorial's 10; the tutorial ends where the paper
    starts anew.

    Source: Eriksson et al. 2019.

    Args:
        parameters: The inputs of the task, real numbers all.
        seed: Seeds everything that is random.
        evaluations: How many the run has.
    """

    def __init__(self, parameters: Sequence[Parameter], seed: int, evaluations: int) -> None:
        torch.manual_seed(seed)
        warnings.simplefilter("ignore")
        self._parameters, self._seed = parameters, seed
        self._start()

    def ask(self) -> Params:
        """The next setting."""
        n = len(self._Y)
        x = self._initial[n] if n < len(self._initial) else self._sampled()
        self._X.append(x)
        return {
            p.name: p.value(low + float(u) * (high - low))
            for p, (low, high), u in zip(
                self._parameters, (p.ends for p in self._parameters), x, strict=True
            )
        }

    def tell(self, params: Params, loss: float) -> None:
        """Its loss."""
        self._Y.append(-loss)
        n = len(self._Y)
        if n == len(self._initial):
            self._best = max(self._Y)
        if n <= len(self._initial):
            return
        if -loss > self._best + 1e-3 * abs(self._best):
            self._num_successes, self._num_failures = self._num_successes + 1, 0
        else:
            self._num_successes, self._num_failures = 0, self._num_failures + 1
        if self._num_successes == _SUCCESSES:
            self._length, self._num_successes = min(2 * self._length, _LONGEST), 0
        elif self._num_failures == max(_FEWEST_FAILURES, len(self._parameters)):
            self._length, self._num_failures = self._length / 2, 0
        self._best = max(self._best, -loss)
        if self._length < _SHORTEST:
            self._start()

    def best(self) -> None:
        """Nothing: its users take the least value seen."""

    def _start(self) -> None:
        d = len(self._parameters)
        bounds = torch.tensor([[0.0], [1.0]], dtype=torch.float64).expand(2, d)
        self._initial = draw_sobol_samples(bounds, 2 * d, q=1, seed=self._seed).squeeze(1)
        self._seed += 1000
        self._X: list[Tensor] = []
        self._Y: list[float] = []
        self._length, self._best = _LENGTH, -math.inf
        self._num_successes = self._num_failures = 0

    def _sampled(self) -> Tensor:
        d, X = len(self._parameters), torch.stack(self._X)
        Y = torch.tensor(self._Y, dtype=torch.float64).unsqueeze(-1)
        Y = (Y - Y.mean()) / Y.std()
        kernel = ScaleKernel(
            MaternKernel(nu=2.5, ard_num_dims=d, lengthscale_constraint=Interval(0.005, 4.0))
        )
        likelihood = GaussianLikelihood(noise_constraint=Interval(1e-8, 1e-3))
        model = SingleTaskGP(
            X, Y, covar_module=kernel, likelihood=likelihood, outcome_transform=None
        )
        with settings.max_cholesky_size(float("inf")):  # pyright: ignore[reportArgumentType]
            try:
                fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            except ModelFittingError:  # as it was made
                model.eval()
            center = X[Y.argmax()]
            lengthscales = kernel.base_kernel.lengthscale.squeeze().detach()
            weights = lengthscales / lengthscales.mean()
            weights = weights / weights.prod().pow(1 / d)
            lower = (center - weights * self._length / 2).clamp(0, 1)
            upper = (center + weights * self._length / 2).clamp(0, 1)
            num = min(5000, max(2000, 200 * d))
            seed = int(torch.randint(2**31, ()))
            points = SobolEngine(d, scramble=True, seed=seed).draw(num, dtype=torch.float64)
            points = lower + (upper - lower) * points
            moved = torch.rand(num, d) <= min(20 / d, 1.0)
            (still,) = (~moved.any(dim=-1)).nonzero(as_tuple=True)
            moved[still, torch.randint(0, d, (len(still),))] = True
            candidates = torch.where(moved, points, center)
            sampling = MaxPosteriorSampling(model=model, replacement=False)
            with torch.no_grad():
                return sampling(candidates, num_samples=1).squeeze(0)

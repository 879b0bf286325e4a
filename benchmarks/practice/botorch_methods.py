"""BoTorch's methods, as its tutorials write them: a model fitted at every question."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from botorch.acquisition import (
    AcquisitionFunction,
    PosteriorMean,
    UpperConfidenceBound,
    qLogNoisyExpectedImprovement,
    qUpperConfidenceBound,
)
from botorch.exceptions import BotorchWarning, ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor

# Evaluated points that the search for the largest mean starts from.
_NUM_STARTS = 5


@dataclass(frozen=True)
class Effort:
    """How hard an acquisition function is maximised.

    Args:
        restarts: Of the maximisation.
        raw_samples: That the starts are chosen from.
        draws: Of the posterior, in Monte Carlo acquisition functions.
    """

    restarts: int = 10
    raw_samples: int = 512
    draws: int = 128


def fitted(X: Tensor, Y: Tensor, box: Tensor, *, matern: bool = False) -> SingleTaskGP:
    """BoTorch's default model of ``n x d`` points and ``n`` values, fitted; with ``matern`` its
    kernel is Matern 5/2 with a lengthscale for each input and the same prior."""
    dim = X.shape[-1]
    kernel = None
    if matern:
        kernel = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim, use_rbf_kernel=False)
    model = SingleTaskGP(
        X,
        Y.unsqueeze(-1),
        covar_module=kernel,
        input_transform=Normalize(dim, bounds=box),
        outcome_transform=Standardize(1),
    )
    with quiet():
        try:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        except ModelFittingError:  # as it was made: with the modes of its priors
            model.eval()
    return model


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings about data, searches and matrices within."""
    with warnings.catch_warnings():
        for category in (BotorchWarning, NumericalWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
        yield


def best_mean(model: SingleTaskGP, X: Tensor) -> int:
    """The row of the point with the largest posterior mean."""
    with torch.no_grad(), quiet():
        return int(model.posterior(X).mean.argmax())


# Of a model, the evaluated points, those whose results are missing, and the effort.
Acquire = Callable[[SingleTaskGP, Tensor, Tensor | None, Effort, int], AcquisitionFunction]


def noisy_improvement(
    model: SingleTaskGP, X: Tensor, pending: Tensor | None, effort: Effort, seed: int
) -> AcquisitionFunction:
    """qLogNEI."""
    return qLogNoisyExpectedImprovement(
        model,
        X_baseline=X,
        sampler=SobolQMCNormalSampler(torch.Size([effort.draws]), seed=seed),
        prune_baseline=True,
        X_pending=pending,
    )


def confidence_bound(
    model: SingleTaskGP, X: Tensor, pending: Tensor | None, effort: Effort, seed: int
) -> AcquisitionFunction:
    """The upper confidence bound of width 2; with pending points the one by Monte Carlo."""
    if pending is None:
        return UpperConfidenceBound(model, beta=4.0)
    sampler = SobolQMCNormalSampler(torch.Size([effort.draws]), seed=seed)
    return qUpperConfidenceBound(model, beta=4.0, sampler=sampler, X_pending=pending)


class BoTorchLoop:
    """Ask and tell around an acquisition function of BoTorch.

    Failed points stay among those that count as pending, as Ax keeps the abandoned ones: else the
    same point would be asked again and again.

    Args:
        box: ``2 x d`` bounds.
        initial: ``m x d`` points that are asked first.
        seed: Of everything random.
        acquire: Makes the acquisition function.
        matern: Whether the kernel is Matern 5/2 instead of BoTorch's default.
        effort: Of the maximisation.
    """

    def __init__(
        self,
        box: Tensor,
        initial: Tensor,
        seed: int,
        acquire: Acquire,
        matern: bool = False,
        effort: Effort | None = None,
    ) -> None:
        torch.manual_seed(seed)  # BoTorch's searches draw from the global generator
        self._box, self._initial, self._seed = box, initial, seed
        self._acquire, self._matern, self._effort = acquire, matern, effort or Effort()
        self._asked: list[Tensor] = []
        self._values: dict[int, float] = {}
        self._model: SingleTaskGP | None = None

    def ask(self) -> Tensor:
        """The next ``d``-dim point."""
        step = len(self._asked)
        if step < len(self._initial):
            x = self._initial[step]
        else:
            missing = [x for i, x in enumerate(self._asked) if i not in self._values]
            pending = torch.stack(missing) if missing else None
            with quiet():
                x = optimize_acqf(
                    self._acquire(
                        self._current(), self._told(), pending, self._effort, self._seed + step
                    ),
                    self._box,
                    q=1,
                    num_restarts=self._effort.restarts,
                    raw_samples=self._effort.raw_samples,
                )[0][0]
        self._asked.append(x)
        return x

    def tell(self, which: int, value: float) -> None:
        """The result of the question of that number."""
        self._values[which] = value
        self._model = None

    def abandon(self, which: int) -> None:
        """No result of that question will come."""

    def evaluated(self) -> Tensor:
        """The evaluated point with the largest posterior mean."""
        X = self._told()
        return X[best_mean(self._current(), X)]

    def recommended(self) -> Tensor:
        """The point of the box with the largest posterior mean, by climbing from the five best
        evaluated ones."""
        model, X = self._current(), self._told()
        with torch.no_grad(), quiet():
            means = model.posterior(X).mean.squeeze(-1)
        starts = X[means.topk(min(_NUM_STARTS, len(X))).indices].unsqueeze(1)
        with quiet():
            x, _ = optimize_acqf(
                PosteriorMean(model),
                self._box,
                q=1,
                num_restarts=len(starts),
                batch_initial_conditions=starts,
                retry_on_optimization_warning=False,  # some start is a maximum already
            )
        return x[0]

    def _told(self) -> Tensor:
        return torch.stack([self._asked[which] for which in self._values])

    def _current(self) -> SingleTaskGP:
        if self._model is None:
            X = self._told()
            Y = X.new_tensor(list(self._values.values()))
            self._model = fitted(X, Y, self._box, matern=self._matern)
        return self._model

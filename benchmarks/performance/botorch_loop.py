"""BoTorch's qLogNEI, as its tutorials write it: a model fitted at every question."""

from __future__ import annotations

import warnings

import torch
from botorch.acquisition import qLogNoisyExpectedImprovement
from botorch.exceptions import BotorchWarning, ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from gpytorch.mlls import ExactMarginalLogLikelihood
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor


class BoTorchLoop:
    """Ask and tell around qLogNEI of BoTorch's default model.

    Args:
        bounds: ``2 x d``.
        X: ``n x d`` points that were evaluated before.
        Y: ``n x 1`` values there.
        seed: Of everything random.
    """

    def __init__(self, bounds: Tensor, X: Tensor, Y: Tensor, seed: int) -> None:
        torch.manual_seed(seed)  # BoTorch's searches draw from the global generator
        self._bounds, self._X, self._Y, self._seed = bounds, X, Y, seed

    def ask(self) -> Tensor:
        """The next ``d``-dim point."""
        with warnings.catch_warnings():
            for category in (BotorchWarning, NumericalWarning):
                warnings.simplefilter("ignore", category)
            warnings.filterwarnings("ignore", "Optimization failed", RuntimeWarning)
            improvement = qLogNoisyExpectedImprovement(
                self._fitted(),
                X_baseline=self._X,
                sampler=SobolQMCNormalSampler(torch.Size([128]), seed=self._seed + len(self._X)),
                prune_baseline=True,
            )
            found, _ = optimize_acqf(
                improvement, self._bounds, q=1, num_restarts=10, raw_samples=512
            )
        return found[0]

    def tell(self, x: Tensor, value: float) -> None:
        """The value at a ``d``-dim point."""
        self._X = torch.cat([self._X, x[None]])
        self._Y = torch.cat([self._Y, self._Y.new_tensor([[value]])])

    def _fitted(self) -> SingleTaskGP:
        model = SingleTaskGP(
            self._X,
            self._Y,
            input_transform=Normalize(self._X.shape[-1], bounds=self._bounds),
            outcome_transform=Standardize(1),
        )
        try:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        except ModelFittingError:  # as it was made: with the modes of its priors
            model.eval()
        return model

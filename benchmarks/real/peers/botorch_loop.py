"""BoTorch's qLogNEI, in a loop as its tutorials write it."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from botorch.acquisition import qLogNoisyExpectedImprovement
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models import MixedSingleTaskGP, SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf, optimize_acqf_mixed
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks.real.spaces import Parameter, Params

_NUM_INITIAL, _MOST_COMBINATIONS = 8, 32


class BoTorchLoop:
    """A `SingleTaskGP` on the unit cube, or a `MixedSingleTaskGP` where there are choices, fitted
    at every question; qLogNEI is maximised by `optimize_acqf`, or by `optimize_acqf_mixed` over all
    combinations of choices. Whole numbers are relaxed and rounded.

    Args:
        parameters: The inputs of the task.
        seed: Seeds everything that is random.
        evaluations: How many the run has.
    """

    def __init__(self, parameters: Sequence[Parameter], seed: int, evaluations: int) -> None:
        torch.manual_seed(seed)  # BoTorch's searches draw from the global generator
        warnings.simplefilter("ignore")
        self._parameters, self._seed = parameters, seed
        self._choices = [i for i, p in enumerate(parameters) if p.kind == "choice"]
        self._bounds = torch.tensor(
            [p.ends if p.kind == "choice" else (0.0, 1.0) for p in parameters], dtype=torch.float64
        ).T.contiguous()
        codes = torch.tensor([p.kind == "choice" for p in parameters])
        wide = self._bounds + 0.4999 * codes * torch.tensor([[-1.0], [1.0]])  # as many of each code
        initial = draw_sobol_samples(wide, _NUM_INITIAL, q=1, seed=seed).squeeze(1)
        self._initial = [self._rounded(x) for x in initial]
        self._X: list[Tensor] = []
        # The negative loss; for `benchmarks.limits` a tuple of it and the outcomes.
        self._Y: list[Any] = []

    def ask(self) -> Params:
        """The next setting."""
        n = len(self._Y)
        x = self._initial[n] if n < len(self._initial) else self._rounded(self._maximizer())
        self._X.append(x)
        return self._params(x)

    def tell(self, params: Params, loss: float) -> None:
        """Its loss."""
        self._Y.append(-loss)

    def best(self) -> Params:
        """The evaluated setting with the largest posterior mean."""
        X, model = torch.stack(self._X), self._fitted()
        with torch.no_grad():
            return self._params(X[model.posterior(X).mean.argmax()])

    def _fitted(self) -> SingleTaskGP:
        X = torch.stack(self._X)
        Y = torch.tensor(self._Y, dtype=torch.float64).view(len(X), -1)
        scale = Standardize(Y.shape[-1])
        if self._choices:
            model = MixedSingleTaskGP(X, Y, self._choices, outcome_transform=scale)
        else:
            model = SingleTaskGP(X, Y, outcome_transform=scale)
        try:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        except ModelFittingError:  # as it was made: with the modes of its priors
            model.eval()
        return model

    def _improvement(self, **more: Any) -> qLogNoisyExpectedImprovement:
        return qLogNoisyExpectedImprovement(
            self._fitted(),
            X_baseline=torch.stack(self._X),
            sampler=SobolQMCNormalSampler(torch.Size([128]), seed=self._seed),
            prune_baseline=True,
            **more,
        )

    def _maximizer(self) -> Tensor:
        improvement = self._improvement()
        how = {"bounds": self._bounds, "q": 1, "num_restarts": 10, "raw_samples": 512}
        if not self._choices:
            return optimize_acqf(improvement, **how)[0].squeeze(0)
        places = [range(len(self._parameters[i].choices)) for i in self._choices]
        combinations = [
            dict(zip(self._choices, map(float, codes), strict=True))
            for codes in itertools.product(*places)
        ]
        if len(combinations) > _MOST_COMBINATIONS:
            some = torch.randperm(len(combinations))[:_MOST_COMBINATIONS].tolist()
            combinations = [combinations[i] for i in some]
        how |= {"num_restarts": 4, "raw_samples": 64}  # of each combination
        found = optimize_acqf_mixed(improvement, fixed_features_list=combinations, **how)
        return found[0].squeeze(0)

    def _params(self, x: Tensor) -> Params:
        found = {}
        for p, number in zip(self._parameters, x.tolist(), strict=True):
            low, high = p.ends
            found[p.name] = p.value(number if p.kind == "choice" else low + number * (high - low))
        return found

    def _rounded(self, x: Tensor) -> Tensor:
        """The point of what can be set."""
        params, numbers = self._params(x), []
        for p in self._parameters:
            low, high = p.ends
            scaled = p.scaled(params[p.name])
            numbers.append(scaled if p.kind == "choice" else (scaled - low) / (high - low))
        return torch.tensor(numbers, dtype=torch.float64)

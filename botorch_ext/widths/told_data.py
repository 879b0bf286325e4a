"""The told data, and the test whether they refute what a confidence width assumes."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

from torch import Tensor

from botorch_ext.models.norm_bounds import gram_and_residuals, squared_norm_bound
from botorch_ext.models.posterior import GrowingPosterior
from botorch_ext.widths.composed import Assumptions


class ToldData(NamedTuple):
    """The told data as a model sees them.

    Args:
        K: The kernel matrix of the observed points, ``n x n``, in float64.
        y: The observations minus the prior mean, ``n``, in float64.
        ridge: The noise variance of the model.
        total_precision: As for `squared_norm_bound`.
    """

    K: Tensor
    y: Tensor
    ridge: float
    total_precision: float | None = None

    @classmethod
    def of(cls, posterior: GrowingPosterior, rows: list[int] | None = None) -> Self:
        """The data of some rows of a single model; None for all rows that are not pending."""
        ridge = float(posterior.noise_variance)
        return cls(*gram_and_residuals(posterior, rows), ridge, posterior.total_precision(rows))

    def norm_bound(self, assumed: Assumptions) -> float:
        """The certified lower bound of the RKHS norm of f; 0 without data."""
        if not len(self.y):
            return 0.0
        numbers = assumed.ridges, assumed.noise_std, assumed.delta, assumed.misspecification
        data = self.K, self.y, self.ridge
        return math.sqrt(squared_norm_bound(*data, *numbers, self.total_precision))

    def refute(self, assumed: Assumptions) -> bool:
        """Whether the lower bound of the RKHS norm exceeds the upper bound that is assumed."""
        return exceeds(self.norm_bound(assumed), assumed)


def exceeds(bound: float, assumed: Assumptions) -> bool:
    """Whether a lower bound of the RKHS norm exceeds the upper bound that is assumed."""
    return bound > assumed.rkhs_bound * (1 + 1e-9)

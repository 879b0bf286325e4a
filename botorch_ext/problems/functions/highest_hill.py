"""Experiment (d) of Ziomek et al. 2024: a draw from a Gaussian process whose prior mean is known
except for one number."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from gpytorch.means import Mean
from torch import Tensor

from botorch_ext.domains import FiniteSet, host
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.problems.base import KnownFunction
from botorch_ext.problems.functions.unknown_hyperparameters import common_arguments, rbf_kernel

_NUM_HILLS = 10
# Half of the width of a hill, in units of the distance of neighbouring hills.
_HALF_WIDTH = 0.3


class HillMean(Mean):
    """A prior mean with ten hills on [0, 10].

    It is h_i cos^2(pi (x - i + 1/2) / 0.6) within 0.3 of i - 1/2, i = 1, ..., 10, and 0 elsewhere.

    Args:
        heights: The h_i, ``*batch x 10``.

    Raises:
        ValueError: If there are not ten heights.
    """

    heights: Tensor

    def __init__(self, heights: Tensor | Sequence[float]) -> None:
        super().__init__()
        heights = torch.as_tensor(heights, dtype=torch.float64, device="cpu")
        if heights.shape[-1:] != (_NUM_HILLS,):
            raise ValueError(
                f"heights must be {_NUM_HILLS} numbers, got shape {tuple(heights.shape)}"
            )
        self.register_buffer("heights", heights.clone())
        self.batch_shape = heights.shape[:-1]

    def forward(self, x: Tensor) -> Tensor:
        """The prior mean at points.

        Args:
            x: Points, ``... x n x 1``.

        Returns:
            The means, ``... x n``, broadcast against the batch shape.
        """
        centers = torch.arange(_NUM_HILLS, dtype=x.dtype, device=x.device) + 0.5
        distance = (x - centers).abs()  # (..., n, 10)
        shape = (math.pi / (2 * _HALF_WIDTH) * distance).cos().square()
        shape = torch.where(distance < _HALF_WIDTH, shape, torch.zeros_like(shape))
        return (shape @ self.heights.unsqueeze(-1)).squeeze(-1)


class HighestHill(KnownFunction):
    """Problem (d): a draw from a GP whose prior mean has ten hills, an unknown one of them higher.

    f is the prior mean plus a sample of a GP with zero mean and an RBF kernel of lengthscale 0.3;
    the higher hill is drawn at random too. The candidates are "hill 1" to "hill 10", and "none".

    The paper shows its mean as a picture without numbers. By default the higher hill exceeds the
    others by 8. That is more than the Bayesian width of 500 points at any of 100 steps (6.2 at
    delta = 0.05), so a wrong model can be rejected at its first evaluation. With a difference of 2
    the hill cannot be told from the sample.

    Source: Ziomek et al. 2024, section 7 and appendix J.4.

    Args:
        seed: The seed of the sample and of the choice of the higher hill.
        domain: A `FiniteSet`; None for 500 equally spaced points of [0, 10]. A box is refused,
            since the sample is drawn at the points.
        noise_std: The standard deviation of the observation noise, in units of f.
        height: The height of the higher hill.
        other_height: The height of the other hills.

    Raises:
        ValueError: If the domain is not a finite set of dimension 1, or ``height`` is not above
            ``other_height``.
    """

    lengthscale: float = 0.3
    names = (*(f"hill {i}" for i in range(1, _NUM_HILLS + 1)), "none")

    def __init__(
        self,
        seed: int,
        domain: FiniteSet | None = None,
        noise_std: float = 0.05,
        height: float = 10.0,
        other_height: float = 2.0,
    ) -> None:
        if domain is None:
            domain = FiniteSet(host.linspace(0, 10, 500, dtype=torch.float64).unsqueeze(-1))
        if not isinstance(domain, FiniteSet) or domain.dim != 1:
            raise ValueError(f"domain must be a FiniteSet of dimension 1, got {domain!r}")
        super().__init__(domain, noise_std)
        self._points: FiniteSet = domain
        if not other_height < height < math.inf:
            raise ValueError(f"height must be above other_height={other_height}, got {height}")
        self.height: float = float(height)
        self.other_height: float = float(other_height)
        generator = torch.Generator().manual_seed(seed)
        self.true_model = int(host.randint(_NUM_HILLS, (), generator=generator))
        points = domain.points.to("cpu", torch.float64)
        normal = host.randn(len(points), dtype=torch.float64, generator=generator)
        with torch.no_grad():
            eigenvalues, vectors = torch.linalg.eigh(
                rbf_kernel(self.lengthscale)(points).to_dense()
            )
            # The symmetric root does not depend on the signs of the eigenvectors.
            roots = eigenvalues.clamp_min(0).sqrt()
            sample = vectors @ (roots * (vectors.mT @ normal))
            values = self.mean(self.true_model)(points) + sample
        self._values = values.to(domain.points)

    def mean(self, position: int) -> HillMean:
        """The prior mean of a candidate.

        Args:
            position: The position of the candidate in `names`.

        Returns:
            The mean.
        """
        heights = host.full((_NUM_HILLS,), self.other_height, dtype=torch.float64)
        heights[position : position + 1] = self.height  # nothing for "none", the last position
        return HillMean(heights)

    def _evaluate(self, X: Tensor) -> Tensor:
        return self._values[self._points.index(self._points.require_contains(X))]

    def candidates(
        self, noise_variance: float | None = None, order: Sequence[int] | None = None
    ) -> CandidateModels:
        """The candidate models; arguments as for `HyperparameterProblem.candidates`."""
        positions, common = common_arguments(self, noise_variance, order)
        means = [self.mean(i) for i in positions]
        names = [self.names[i] for i in positions]
        return CandidateModels(rbf_kernel(self.lengthscale), means=means, names=names, **common)

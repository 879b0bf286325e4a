"""A draw from a Gaussian process whose prior mean is known but for one number: experiment (d) of
Ziomek et al. 2024."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from gpytorch.means import Mean
from torch import Tensor

from botorch_ext.domains import FiniteSet
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.problems.base import KnownFunction
from botorch_ext.problems.functions.unknown_hyperparameters import common_arguments, rbf_kernel

_NUM_HILLS = 10
# Half of the width of a hill, in the distance of two neighbours.
_HALF_WIDTH = 0.3


class HillMean(Mean):
    """A prior mean of ten hills on [0, 10]: h_i cos^2(pi (x - i + 1/2) / 0.6) within 0.3 of i -
    1/2, i = 1, ..., 10, and 0 elsewhere.

    Args:
        heights: ``*batch x 10``, the h_i.

    Raises:
        ValueError: Not ten heights.
    """

    heights: Tensor

    def __init__(self, heights: Tensor | Sequence[float]) -> None:
        super().__init__()
        heights = torch.as_tensor(heights, dtype=torch.float64)
        if heights.shape[-1:] != (_NUM_HILLS,):
            raise ValueError(
                f"heights must be {_NUM_HILLS} numbers, got shape {tuple(heights.shape)}"
            )
        self.register_buffer("heights", heights.clone())
        self.batch_shape = heights.shape[:-1]

    def forward(self, x: Tensor) -> Tensor:
        """``... x n x 1`` to ``... x n``, broadcast against the batch shape."""
        centers = torch.arange(_NUM_HILLS, dtype=x.dtype, device=x.device) + 0.5
        distance = (x - centers).abs()  # (..., n, 10)
        shape = (math.pi / (2 * _HALF_WIDTH) * distance).cos().square()
        shape = torch.where(distance < _HALF_WIDTH, shape, torch.zeros_like(shape))
        return (shape @ self.heights.unsqueeze(-1)).squeeze(-1)


class HighestHill(KnownFunction):
    """(d): a draw from a GP whose prior mean has ten hills, one of them higher, nobody knows which.

    f = mean + sample of a GP with zero mean and an RBF kernel of lengthscale 0.3; the higher hill
    is drawn as well. Candidates: "hill 1" to "hill 10", and "none". The paper shows its mean
    as a picture without numbers. By default the higher hill stands out by 8: more than the Bayesian
    width of 500 points at any of 100 steps (6.2 at delta = 0.05), so that a wrong model can be
    rejected at its first play; by 2 it is lost in the sample.

    Source: Ziomek et al. 2024, section 7 and appendix J.4.

    Args:
        seed: Of the sample and of the number of the higher hill.
        domain: A `FiniteSet`; None for 500 equally spaced points of [0, 10]. A box is refused: the
            sample is drawn at the points.
        noise_std: Of the observations.
        height: Of the higher hill.
        other_height: Of the others.
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
            domain = FiniteSet(torch.linspace(0, 10, 500, dtype=torch.float64).unsqueeze(-1))
        if not isinstance(domain, FiniteSet) or domain.dim != 1:
            raise ValueError(f"domain must be a FiniteSet of dimension 1, got {domain!r}")
        super().__init__(domain, noise_std)
        self._points: FiniteSet = domain
        if not other_height < height < math.inf:
            raise ValueError(f"height must be above other_height={other_height}, got {height}")
        self.height: float = float(height)
        self.other_height: float = float(other_height)
        generator = torch.Generator().manual_seed(seed)
        self.true_model = int(torch.randint(_NUM_HILLS, (), generator=generator))
        points = domain.points.to("cpu", torch.float64)
        normal = torch.randn(len(points), dtype=torch.float64, generator=generator)
        with torch.no_grad():
            eigenvalues, vectors = torch.linalg.eigh(
                rbf_kernel(self.lengthscale)(points).to_dense()
            )
            # The symmetric root: the same whatever signs the eigenvectors have.
            roots = eigenvalues.clamp_min(0).sqrt()
            sample = vectors @ (roots * (vectors.mT @ normal))
            values = self.mean(self.true_model)(points) + sample
        self._values = values.to(domain.points)

    def mean(self, position: int) -> HillMean:
        """The prior mean of a candidate, from its position in `names`."""
        heights = torch.full((_NUM_HILLS,), self.other_height, dtype=torch.float64)
        heights[position : position + 1] = self.height  # nothing for "none", the last position
        return HillMean(heights)

    def _evaluate(self, X: Tensor) -> Tensor:
        return self._values[self._points.index(self._points.require_contains(X))]

    def candidates(
        self, noise_variance: float | None = None, order: Sequence[int] | None = None
    ) -> CandidateModels:
        """See `HyperparameterProblem.candidates`."""
        positions, common = common_arguments(self, noise_variance, order)
        means = [self.mean(i) for i in positions]
        names = [self.names[i] for i in positions]
        return CandidateModels(rbf_kernel(self.lengthscale), means=means, names=names, **common)

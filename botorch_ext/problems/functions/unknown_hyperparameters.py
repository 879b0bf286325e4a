"""Problems (a) to (c) with unknown hyperparameters of Ziomek et al. 2024, section 7 and appendix J.

Each is a `HyperparameterProblem`. Problem (d) is `HighestHill`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import torch
from gpytorch.kernels import Kernel, PeriodicKernel, RBFKernel
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet, host
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.problems.base import KnownFunction, Problem
from botorch_ext.problems.functions.rkhs import RKHSFunction


class HyperparameterProblem(Problem, Protocol):
    """The protocol of problems with unknown hyperparameters: a function and its candidate models.

    Attributes:
        names: The names of the candidates, in the paper's order.
        true_model: The position of the true model in `names`; None if no model is true.
    """

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def true_model(self) -> int | None: ...

    def candidates(
        self, noise_variance: float | None = None, order: Sequence[int] | None = None
    ) -> CandidateModels:
        """Make the candidate models, without data, in the dtype and on the device of the domain.

        Args:
            noise_variance: The ridge of all models; None takes the square of `noise_std`.
            order: A permutation of the positions in `names`; None for the paper's order.

        Returns:
            The models, in this order.

        Raises:
            ValueError: If the order is not a permutation, or no noise variance is given and the
                noise is 0.
        """
        ...


def common_arguments(
    problem: HyperparameterProblem, noise_variance: float | None, order: Sequence[int] | None
) -> tuple[list[int], dict[str, Any]]:
    """The arguments that the candidates of all problems share.

    Args:
        problem: The problem.
        noise_variance: The ridge of all models; None takes the square of `noise_std`.
        order: A permutation of the positions in ``names``; None for the paper's order.

    Returns:
        The positions of the candidates in their order, and the keyword arguments that every
        constructor of `CandidateModels` takes.

    Raises:
        ValueError: If the order is not a permutation.
    """
    count = len(problem.names)
    positions = list(range(count)) if order is None else list(order)
    if sorted(positions) != list(range(count)):
        raise ValueError(f"order must be a permutation of 0 to {count - 1}, got {positions}")
    like = problem.domain.like
    return positions, {
        "noise_variance": problem.noise_std**2 if noise_variance is None else noise_variance,
        "dtype": like.dtype,
        "device": like.device,
    }


class LengthscalePeak(KnownFunction):
    """Problem (a): a trend with a peak, 0.6 x + 0.8 N(x; 0.2, s) on [0, 1], where N is a normal
    density.

    The candidates are RBF kernels of lengthscale 0.3, 0.4, 0.5, 0.7 and 1. The RKHS of an RBF
    kernel of lengthscale l contains bumps of standard deviation above l / sqrt(2). With the paper's
    s = 0.08 the peak lies in the RKHS of none of the candidates; with variance 0.08, s =
    sqrt(0.08), only in that of lengthscale 0.3. The trend lies in none of them, as no polynomial
    does (Minh 2010), but functions of modest norm come arbitrarily close to it.

    Source: Berkenkamp et al. 2019, figure 2; Ziomek et al. 2024, eq. 13.

    Args:
        domain: The domain, of dimension 1; None for 500 equally spaced points of [0, 1].
        noise_std: The standard deviation of the observation noise, in units of f.
        peak_std: s, the standard deviation of the peak.
    """

    def __init__(
        self, domain: Domain | None = None, noise_std: float = 0.05, peak_std: float = 0.08
    ) -> None:
        super().__init__(_on_line(domain, 0.0, 1.0), noise_std)
        if not 0 < peak_std < math.inf:
            raise ValueError(f"peak_std must be positive and finite, got {peak_std}")
        self.peak_std: float = float(peak_std)
        self.lengthscales: tuple[float, ...] = (0.3, 0.4, 0.5, 0.7, 1.0)
        self.names = [f"lengthscale {value:g}" for value in self.lengthscales]
        holds = [value < math.sqrt(2) * peak_std for value in self.lengthscales]
        self.true_model = holds.index(True) if any(holds) else None

    def _evaluate(self, X: Tensor) -> Tensor:
        x = X[:, 0]
        height = 0.8 / (self.peak_std * math.sqrt(2 * math.pi))
        return 0.6 * x + height * (-0.5 * ((x - 0.2) / self.peak_std) ** 2).exp()

    def _near_maxima(self) -> Tensor | None:
        points = self.domain.like.new_tensor([[0.2], [1.0]])
        return points[self.domain.contains(points)]

    def candidates(
        self, noise_variance: float | None = None, order: Sequence[int] | None = None
    ) -> CandidateModels:
        """The candidate models; arguments as for `HyperparameterProblem.candidates`."""
        positions, common = common_arguments(self, noise_variance, order)
        values = [self.lengthscales[i] for i in positions]
        return CandidateModels.lengthscales(RBFKernel(), values, **common)


class RepeatedSignal(KnownFunction):
    """Problem (b): two periods of a signal of period 1 that consists of four sine waves, each with
    its own period.

    sin(8 pi (x - 1/8)) on [0, 1/4); 1.5 sin(8 pi (x - 1/4)) on [1/4, 1/2); 1.2 sin(28/3 pi (x -
    11/28)) on [1/2, 5/7); 0.8 sin(7 pi (x - 5/7)) on [5/7, 1). The paper prints the frequencies
    permuted and a factor short; this reading keeps its phases and is continuous.

    The candidates are periodic kernels. Their periods and lengthscales maximise the marginal
    likelihood for the whole signal (the true model), or for one of the four pieces, with noise
    variance 0.05^2 and noiseless values at 200 equally spaced points of [0, 2), or 100 of the
    piece. The lengthscale is GPyTorch's, exp(-2 sin^2(pi r / period) / lengthscale).

    Source: Ziomek et al. 2024, eq. 14. The paper does not say whether only the period or also the
    lengthscale differs between its candidates.

    Args:
        domain: The domain, of dimension 1; None for 500 equally spaced points of [0, 2].
        noise_std: The standard deviation of the observation noise, in units of f.
        shared_lengthscale: Whether all candidates have the lengthscale of the whole signal.
    """

    edges: tuple[float, ...] = (0.0, 0.25, 0.5, 5 / 7, 1.0)
    fits: tuple[tuple[float, float], ...] = (
        (1.000, 0.04060),
        (0.2500, 8.646),
        (0.2500, 4.887),
        (0.2143, 6.723),
        (0.2858, 11.64),
    )
    names = ("whole signal", "piece 1", "piece 2", "piece 3", "piece 4")
    true_model = 0

    def __init__(
        self,
        domain: Domain | None = None,
        noise_std: float = 0.05,
        shared_lengthscale: bool = False,
    ) -> None:
        super().__init__(_on_line(domain, 0.0, 2.0), noise_std)
        self.shared_lengthscale: bool = shared_lengthscale

    def _evaluate(self, X: Tensor) -> Tensor:
        x = X[:, 0] % 1.0
        pieces = [
            (1.0, 8.0, 1 / 8),
            (1.5, 8.0, 1 / 4),
            (1.2, 28 / 3, 11 / 28),
            (0.8, 7.0, 5 / 7),
        ]
        values = torch.zeros_like(x)
        for (height, frequency, phase), (start, end) in zip(
            pieces, pairwise(self.edges), strict=True
        ):
            wave = height * (frequency * math.pi * (x - phase)).sin()
            values = torch.where((start <= x) & (x < end), wave, values)
        return values

    def _near_maxima(self) -> Tensor | None:
        points = self.domain.like.new_tensor([[5 / 16], [21 / 16]])
        return points[self.domain.contains(points)]

    def candidates(
        self, noise_variance: float | None = None, order: Sequence[int] | None = None
    ) -> CandidateModels:
        """The candidate models; arguments as for `HyperparameterProblem.candidates`."""
        positions, common = common_arguments(self, noise_variance, order)
        like = self.domain.like
        kernel = PeriodicKernel(batch_shape=torch.Size([len(positions)])).to(like)
        values = like.new_tensor([self.fits[i] for i in positions])
        if self.shared_lengthscale:
            values[:, 1] = self.fits[self.true_model][1]
        kernel.period_length = values[:, 0, None, None]
        kernel.lengthscale = values[:, 1, None, None]
        names = [f"{self.names[i]}, period {self.fits[i][0]:.3g}" for i in positions]
        return CandidateModels(kernel, names=names, **common)


class CorrelatedMode(KnownFunction):
    """Problem (c): a function of three variables that is additive in the first two except in one
    corner, and does not depend on the third.

    Two ridges, around x1 = 0.3 and x2 = 0.3, add up to a local maximum of 1 where they cross. The
    global maximum is a mode of height 1.5 on the diagonal of the first two variables, near the
    corner (1, 1); no sum of functions of one variable has such a mode. The function is an expansion
    in the RBF kernel of the first two variables, so its norm for the true model is known: in the
    RKHS of (k(x12) + k(x3)) / 2 it is sqrt(2) times the norm for k(x12).

    The function is our own, with the structure of Ziomek et al. 2024, figure 5; the paper shows its
    function only as a picture. The candidates are the decompositions {1|2|3}, {12|3} (true), {1|23}
    and {2|13}, with RBF kernels of lengthscale 0.2.

    Args:
        domain: The domain, of dimension 3; None for a grid of 12 x 12 x 12 points of [0, 1]^3.
        noise_std: The standard deviation of the observation noise, in units of f.

    Attributes:
        norm: The norm of the function in the RKHS of the true model.
    """

    lengthscale: float = 0.2
    decompositions: tuple[tuple[tuple[int, ...], ...], ...] = (
        ((0,), (1,), (2,)),
        ((0, 1), (2,)),
        ((0,), (1, 2)),
        ((1,), (0, 2)),
    )
    names = ("{1|2|3}", "{12|3}", "{1|23}", "{2|13}")
    true_model = 1

    def __init__(self, domain: Domain | None = None, noise_std: float = 0.05) -> None:
        if domain is None:
            axis = host.linspace(0, 1, 12, dtype=torch.float64)
            domain = FiniteSet(torch.cartesian_prod(axis, axis, axis))
        _require_dim(domain, 3)
        super().__init__(domain, noise_std)
        like, scale = domain.like, self.lengthscale
        # Bumps one lengthscale apart add up to a constant, to 1e-8: a ridge of finite norm.
        along = host.arange(-6, 12, dtype=torch.float64) * scale
        across = torch.full_like(along, 0.3)
        ridges = torch.cat([torch.stack([across, along], -1), torch.stack([along, across], -1)])
        ridge_weight = 0.5 / math.sqrt(2 * math.pi)
        mode = host.tensor([[0.80, 0.80], [0.95, 0.95]], dtype=torch.float64)
        # Half way between the two bumps, each one has the height exp(-0.15^2 / 4 / 0.2^2).
        mode_weight = 1.5 / (2 * math.exp(-(0.15**2) / (4 * scale**2)))
        weights = [ridge_weight] * len(ridges) + [mode_weight] * len(mode)
        plane = Box([[0.0, 0.0], [1.0, 1.0]], dtype=like.dtype, device=like.device)
        centers = torch.cat([ridges, mode]).to(like)
        self._plane = RKHSFunction(rbf_kernel(scale), centers, weights, plane)
        self.norm: float = math.sqrt(2) * self._plane.norm

    def _evaluate(self, X: Tensor) -> Tensor:
        return self._plane(X[:, :2])

    def candidates(
        self, noise_variance: float | None = None, order: Sequence[int] | None = None
    ) -> CandidateModels:
        """The candidate models; arguments as for `HyperparameterProblem.candidates`."""
        positions, common = common_arguments(self, noise_variance, order)
        groups = [list(self.decompositions[i]) for i in positions]
        return CandidateModels.additive(rbf_kernel(self.lengthscale), groups, dim=3, **common)


def rbf_kernel(lengthscale: float) -> Kernel:
    """An RBF kernel in float64 with exactly this lengthscale.

    Args:
        lengthscale: The lengthscale, in units of the inputs.
    """
    kernel = RBFKernel().to(torch.float64)
    # GPyTorch would round a float to float32.
    kernel.lengthscale = host.tensor(lengthscale, dtype=torch.float64)
    return kernel


def _on_line(domain: Domain | None, start: float, end: float) -> Domain:
    if domain is None:
        return FiniteSet(host.linspace(start, end, 500, dtype=torch.float64).unsqueeze(-1))
    _require_dim(domain, 1)
    return domain


def _require_dim(domain: Domain, dim: int) -> None:
    if domain.dim != dim:
        raise ValueError(f"domain must have dimension {dim}, got {domain.dim}")

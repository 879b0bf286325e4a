"""Breadthwise exploration with adaptive discretisation."""

from __future__ import annotations

from gpytorch.kernels import Kernel

from botorch_ext.algorithms.argument_checks import checked_names, make_model, published_width
from botorch_ext.domains import Box
from botorch_ext.kernel_functions.smoothness import HolderConstants
from botorch_ext.models.checks import PriorMean
from botorch_ext.strategies.fixed_design.breadthwise import BreadthwiseExploration
from botorch_ext.widths import AnytimeFixedDesign, Width


@checked_names
def breadthwise_exploration(
    domain: Box,
    kernel: Kernel,
    *,
    noise_variance: float,
    horizon: int,
    rkhs_bound: float,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    mean: PriorMean | float | None = None,
    holder: HolderConstants | tuple[float, float] | None = None,
    max_cells: int = 2**13,
    seed: int = 0,
) -> BreadthwiseExploration:
    """Breadthwise exploration: a tree of cells that is refined a level at a time, where the maximum
    can be; cheaper than the worst case where the maximum is sharp.

    The width is `AnytimeFixedDesign`. Source: Shekhar and Javidi 2022, algorithm 1, corrected.

    Args:
        domain: Where to maximise: a `Box` or its bounds, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f.
        horizon: T, the number of trials.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed also where ``width`` is
            given, since it says how far f can move within a cell.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1).
        width: A width, or a number, in place of the published one; ``noise_std`` and ``delta`` then
            count for nothing.
        mean: The prior mean, a GPyTorch `Mean` that is constant. None: zero.
        holder: The Hoelder constants of a kernel that is no RBF or Matern kernel nor made of such,
            see `BreadthwiseExploration`.
        max_cells: How many active cells there may be at most. With 8192 a step takes about 4 ms,
            and all steps 1.5 GiB of memory, 0.5 of them for the covariance of the cells.
        seed: Of nothing: the method is deterministic.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    name = "breadthwise_exploration"
    if rkhs_bound is None:
        raise ValueError(f"{name}(): rkhs_bound must be given, also where width is, got None")
    return BreadthwiseExploration(
        domain,
        make_model(domain, kernel, noise_variance, mean),
        published_width(name, AnytimeFixedDesign, width, rkhs_bound, noise_std, delta),
        horizon,
        rkhs_bound=rkhs_bound,
        holder=holder,
        max_cells=max_cells,
        seed=seed,
    )

"""Breadthwise exploration with adaptive discretisation."""

from __future__ import annotations

from typing import Unpack

from gpytorch.kernels import Kernel

from botorch_ext.algorithms.arguments import (
    Common,
    make_model,
    published_width,
    refuse_ignored,
    refuse_unknown,
)
from botorch_ext.domains import Box
from botorch_ext.kernel_functions.smoothness import HolderConstants
from botorch_ext.strategies.fixed_design.breadthwise import BreadthwiseExploration
from botorch_ext.widths import AnytimeFixedDesign


def breadthwise_exploration(
    domain: Box,
    kernel: Kernel,
    *,
    noise_variance: float,
    horizon: int,
    holder: HolderConstants | tuple[float, float] | None = None,
    max_cells: int = 2**13,
    **options: Unpack[Common],
) -> BreadthwiseExploration:
    """Breadthwise exploration: a tree of cells that is refined a level at a time, where the maximum
    can be; cheaper than the worst case where the maximum is sharp (Shekhar and Javidi 2022,
    algorithm 1, corrected).

    The width is `AnytimeFixedDesign`. ``rkhs_bound`` is needed also where ``width`` is given, since
    it says how far f can move within a cell.

    Args:
        domain: A `Box`.
        horizon: T, the number of trials.
        holder: The Hoelder constants of a kernel that is no RBF or Matern kernel nor made of such,
            see `BreadthwiseExploration`.
        max_cells: How many active cells there may be at most. With 8192 a step takes about 4 ms,
            and all steps 1.5 GiB of memory, 0.5 of them for the covariance of the cells.
        options: The arguments all methods share, described with the package; ``mean`` must be
            constant.
    """
    refuse_ignored(options)
    refuse_unknown(options, Common)
    rkhs_bound = options.get("rkhs_bound")
    if rkhs_bound is None:
        raise ValueError("rkhs_bound must be given, also where width is, got None")
    return BreadthwiseExploration(
        domain,
        make_model(domain, kernel, noise_variance, options),
        published_width(AnytimeFixedDesign, options),
        horizon,
        rkhs_bound=rkhs_bound,
        holder=holder,
        max_cells=max_cells,
        seed=options.get("seed", 0),
    )

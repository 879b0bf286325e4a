"""Quasi-Newton steps of many starts in the unit cube, each with a dense BFGS matrix of its own."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.search.elimination import solved

# Share of the predicted gain that a step must reach (Armijo).
SUFFICIENT = 1e-4
MAX_HALVINGS = 25
# In a race a start gives up where so many times the gain that its quadratic model promises would
# leave it below the best so far; not in the first steps, when that model is a guess.
HOPE, HEAD_START = 4.0, 4


def free_coordinates(x: Tensor, g: Tensor) -> Tensor:
    """The coordinates that are not held at a face."""
    return ~(((x <= 0) & (g < 0)) | ((x >= 1) & (g > 0)))


def newton_step(free: Tensor, reduced: Tensor, B: Tensor, eye: Tensor) -> Tensor:
    """The quasi-Newton steps of the free coordinates, of a gradient that is zero in the others."""
    # The Newton system of the free coordinates alone; the identity for the others, which stay.
    both = free.unsqueeze(-1) & free.unsqueeze(-2)
    system, right = torch.where(both, B, eye), reduced.unsqueeze(-1)
    if B.is_cuda:  # what libraries do with small batches there may wait for the device
        step = solved(system, right, eye).squeeze(-1)
    else:
        factor, _ = torch.linalg.cholesky_ex(system)
        step = torch.cholesky_solve(right, factor).squeeze(-1)
    # B is positive definite; this only catches rounding.
    uphill = (step * reduced).sum(dim=-1) > 0
    return torch.where(uphill[:, None], step, reduced)


def promised_gain(step: Tensor, reduced: Tensor) -> Tensor:
    """What quasi-Newton steps promise to gain."""
    return 0.5 * (step * reduced).sum(dim=-1)


def first_matrix(g: Tensor, eye: Tensor) -> Tensor:
    """The first step is a tenth of the cube along the steepest coordinate."""
    return 10 * eye * g.abs().amax(dim=-1).clamp_min(1e-300)[:, None, None]


def updated_matrix(
    B: Tensor, fresh: Tensor, s: Tensor, y: Tensor, eye: Tensor
) -> tuple[Tensor, Tensor]:
    """The BFGS update of the Hessian of minus f, where the curvature is positive."""
    curvature = (s * y).sum(dim=-1)
    squared = y.square().sum(dim=-1)
    good = curvature > 1e-10 * (s.square().sum(dim=-1) * squared).sqrt()
    curvature = torch.where(good, curvature, 1)[:, None, None]
    # Before the first update: the scale of the curvature seen (Nocedal and Wright, eq. 6.20).
    first = (fresh & good)[:, None, None]
    B = torch.where(first, squared[:, None, None] / curvature * eye, B)
    Bs = (B @ s.unsqueeze(-1)).squeeze(-1)
    quadratic = torch.where(good, (s * Bs).sum(dim=-1), 1)[:, None, None]
    updated = (
        B
        - Bs.unsqueeze(-1) * Bs.unsqueeze(-2) / quadratic
        + y.unsqueeze(-1) * y.unsqueeze(-2) / curvature
    )
    return torch.where(good[:, None, None], updated, B), fresh & ~good

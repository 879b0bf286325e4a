"""What a test problem offers, and how its maximum on a box is found."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from botorch.acquisition import AcquisitionFunction
from botorch.exceptions.warnings import OptimizationWarning
from botorch.generation.gen import gen_candidates_scipy
from scipy.spatial import KDTree
from torch import Tensor

from botorch_ext.domains import Box, Domain, as_points


class Problem(Protocol):
    """A function to maximise, with what is known about it.

    Attributes:
        domain: Where its points live.
        noise_std: The standard deviation of the observation noise, in units of the function.
        optimal_value: The largest noiseless value on the domain; None where nobody knows it.
        optimizer: A ``d``-dim point that attains it; None where nobody knows it.
    """

    @property
    def domain(self) -> Domain: ...

    @property
    def noise_std(self) -> float: ...

    @property
    def optimal_value(self) -> float | None: ...

    @property
    def optimizer(self) -> Tensor | None: ...

    def __call__(self, X: Tensor) -> Tensor:
        """The ``n`` noiseless values at ``n x d`` points, or the scalar at one point."""
        ...


def pointwise(
    function: Callable[[Tensor], Tensor],
    X: Tensor | Sequence[float] | Sequence[Sequence[float]],
    domain: Domain,
    inside: bool = False,
) -> Tensor:
    """Checks points at the door and evaluates a function of ``n x d`` points on them.

    Args:
        function: From ``n x d`` to ``n``.
        X: ``n x d``, or one ``d``-dim point.
        domain: Gives the dimension, dtype and device.
        inside: Whether points outside the domain are refused.

    Returns:
        ``n`` values, or a scalar tensor for one point.

    Raises:
        ValueError: ``X`` has the wrong shape, dtype or device, is not finite, or lies outside.
    """
    like = domain.bounds if isinstance(domain, Box) else domain.points
    points = domain.require_contains(X) if inside else as_points(X, domain.dim, like)
    values = function(points)  # (n,)
    one_point = X.ndim == 1 if isinstance(X, Tensor) else not isinstance(X[0], Sequence)
    return values.squeeze(0) if one_point else values


def require_noise_std(noise_std: float) -> float:
    """``noise_std`` as a float, or a ValueError unless it is finite and at least 0."""
    if not 0.0 <= noise_std < float("inf"):
        raise ValueError(f"noise_std must be finite and at least 0, got {noise_std}")
    return float(noise_std)


def maximize_on_box(
    function: Callable[[Tensor], Tensor],
    box: Box,
    seed: int,
    num_raw: int = 4096,
    num_starts: int = 32,
    extra: Tensor | None = None,
) -> tuple[Tensor, float]:
    """The maximum of a deterministic function on a box, by multi-start refinement.

    Sobol points and the points of ``extra`` are screened; the best of those that beat their
    nearest neighbours are refined together by BoTorch's batched L-BFGS-B. Good to 1e-9 of the
    function's spread where the function is smooth and one of its screened points lies in the basin
    of the maximum; this is a search, not a certificate.

    Args:
        function: Noiseless, from ``n x d`` to ``n``, differentiable by autograd.
        box: Where to search.
        seed: Of the Sobol points.
        num_raw: How many Sobol points are screened; 0 where ``extra`` is enough.
        num_starts: How many points are refined, besides the best ``num_starts`` rows of ``extra``.
        extra: ``m x d`` points of the box to screen as well: corners, centres, known maximisers.

    Returns:
        A ``d``-dim maximiser and its value.

    Raises:
        ValueError: No point to start from, or the function is not finite on the box.
    """
    if num_raw < 0 or num_starts < 1:
        raise ValueError(
            f"num_raw must be at least 0 and num_starts at least 1, got {num_raw} and {num_starts}"
        )
    given = (
        box.bounds.new_empty(0, box.dim) if extra is None else box.require_contains(extra, "extra")
    )
    if num_raw == 0 and len(given) == 0:
        raise ValueError("num_raw must be positive where extra holds no point, got 0")
    raw = torch.cat([given, box.sample(num_raw, seed)]) if num_raw > 0 else given
    side = box.upper - box.lower
    with torch.no_grad():
        values = function(raw)
    if not bool(torch.isfinite(values).all()):
        x = raw[~torch.isfinite(values)][0].tolist()
        raise ValueError(f"function must be finite on the box, got NaN or infinity at {x}")
    best = int(values.argmax())
    spread = float(values.max() - values.min())
    magnitude = float(values.abs().max())
    if spread <= 1e-9 * magnitude or magnitude == 0.0:
        spread = magnitude or 1.0

    unit = (raw - box.lower) / side
    rows = _local_maxima(unit, values)[:num_starts]
    rows = torch.cat([rows, values[: len(given)].topk(min(num_starts, len(given))).indices])
    starts = unit[rows.unique()].unsqueeze(-2)  # (s, 1, d)

    # Values in units of 1e-4 of the spread, counted from the best screened one: L-BFGS-B stops at a
    # gradient of 1e-5 and a relative change of 2e-9, and there is no option for these that both
    # BoTorch's batched form and the plain form it falls back to accept.
    top = values[best]
    scaled = _Scaled(lambda X: (function(box.lower + side * X) - top) / (1e-4 * spread))
    with warnings.catch_warnings(record=True) as caught:
        refined, _ = gen_candidates_scipy(starts, scaled, 0.0, 1.0, options={"maxiter": 500})
    # At this accuracy line searches end in rounding errors, as wanted; BoTorch reports them through
    # any filter.
    for warning in caught:
        if not issubclass(warning.category, OptimizationWarning):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    found = torch.minimum(box.lower + side * refined.squeeze(-2), box.upper)
    candidates = torch.cat([raw[best : best + 1], found])
    with torch.no_grad():
        x = candidates[int(function(candidates).argmax())].clone()
        # Alone: the rounding of many points evaluated together can differ.
        return x, float(function(x.unsqueeze(0)))


class _Scaled(AcquisitionFunction):
    """A function of points as what `gen_candidates_scipy` takes: ``b x 1 x d`` to ``b``."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        torch.nn.Module.__init__(self)
        self._function = function

    def forward(self, X: Tensor) -> Tensor:
        if X.requires_grad:
            # At a cusp autograd may give NaN or infinity; a zero gradient ends that start there.
            X.register_hook(lambda gradient: gradient.nan_to_num(0.0, 0.0, 0.0))
        return self._function(X.squeeze(-2))


def _local_maxima(unit: Tensor, values: Tensor) -> Tensor:
    """Rows none of whose 2d + 1 nearest neighbours is better, best first."""
    num_points, dim = unit.shape
    num_neighbors = min(2 * dim + 2, num_points)
    if num_neighbors < 2:
        return torch.arange(num_points, device=unit.device)
    positions = unit.detach().cpu().numpy()
    _, neighbors = KDTree(positions).query(positions, k=num_neighbors)
    nearby = values[torch.as_tensor(neighbors, device=unit.device)]  # (num_points, num_neighbors)
    rows = (nearby.amax(dim=-1) <= values).nonzero().squeeze(-1)
    return rows[values[rows].argsort(descending=True)]

"""The worst case of an upper confidence bound over a ball of perturbations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from torch import Tensor

from botorch_ext.acquisition.alternatives import AlternativeBounds, Widths
from botorch_ext.acquisition.input_checks import (
    as_batch,
    checked_fixed,
    checked_limits,
    checked_steps,
    columns_of,
    require_within,
)
from botorch_ext.domains import Box
from botorch_ext.domains.points import require_finite
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.box_balls import BoxBalls, Norm
from botorch_ext.search.objectives import FunctionObjective, Objective
from botorch_ext.search.own_bounds import OwnBounds
from botorch_ext.search.perturbations import Perturbations
from botorch_ext.search.ridges import along_ridges

# The numbers of steps of an ascent and of the descents on its way, and the least gain of a step of
# an ascent, relative to the values.
_STEPS, _HASTY, _TOLERANCE = 30, 8, 1e-6


class StableUCB(AlternativeBounds):
    """The worst case of an upper confidence bound: its minimum over x + delta, for delta in a ball
    that is cut off at the bounds. With several models it is the largest such minimum.

    The maximiser is a point where the function may still be high after any small perturbation. The
    minimum is found by a search from the best of many perturbations, and is not certified: a valley
    that is narrow for the radius may be missed, so that the value is too high.

    Gradients are those at the worst point (envelope theorem). If two points are equally bad, which
    is common at the maximiser, there is a kink; there `gen_candidates` finds higher values in less
    time than BoTorch's L-BFGS-B. Source: Bogunovic et al. 2018, algorithm 1 (StableOpt); Ziomek et
    al. 2024, algorithm 2.

    The other arguments are those of `OptimisticModelUCB`.

    Args:
        model: A single-output BoTorch model, or models as for `OptimisticModelUCB`.
        radius: The radius of the ball, in the units of the coordinates; or d radii, one for each
            coordinate.
        norm: The norm of the ball: "l2" or "linf".
        bounds: The ``2 x d`` bounds, inside which perturbed points stay.
        maximize: Whether f is maximised. False gives the worst case over the ball for minimisation,
            that of ``-mean + width * std``.

    Raises:
        ValueError: If `OptimisticModelUCB` raises it, or if the radius, the norm or the bounds are
            impossible. An evaluation raises it if points lie outside the bounds.

    Example:
        >>> import torch
        >>> from botorch_ext import KernelGP
        >>> from botorch_ext.acquisition import StableUCB
        >>> from gpytorch.kernels import RBFKernel
        >>> model = KernelGP(RBFKernel(), noise_variance=0.01, dtype=torch.float64)
        >>> X = torch.tensor([[0.0], [0.5], [1.0]], dtype=torch.float64)
        >>> model.add(X, torch.tensor([1.0, 0.5, 0.0], dtype=torch.float64))
        >>> acqf = StableUCB(model, width=0.0, radius=0.2, bounds=[[0.0], [1.0]])
        >>> [round(value, 2) for value in acqf([[[0.2]], [[0.6]]]).tolist()]  # means at 0.4, 0.8
        [0.63, 0.16]
    """

    def __init__(
        self,
        model: Any,
        width: Widths,
        radius: float | Sequence[float] | Tensor,
        norm: Norm = "l2",
        *,
        bounds: Tensor | Sequence[Sequence[float]],
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
        X_pending: Tensor | None = None,
    ) -> None:
        self.perturbations = Perturbations(radius, norm)
        box = Box(bounds)
        balls = self.perturbations.on(box)
        self.box = box
        self._balls = balls
        super().__init__(model, width, posterior_transform, maximize)
        columns = columns_of(self._told_model)
        if columns not in (None, box.dim):
            raise ValueError(
                f"bounds must have {columns} columns, one for each input of the model, "
                f"got {box.dim}"
            )
        self.set_X_pending(X_pending)

    @property
    def _dim(self) -> int:
        return self.box.dim

    def _values(self, X: Tensor) -> Tensor:
        batch, d = X.shape[:-2], X.shape[-1]
        if self.width.dtype != X.dtype or self.width.device != X.device:
            self.to(X)  # as BoTorch's analytic acquisition functions do
        balls, points = self._balls_like(X), X.reshape(-1, 1, d)
        require_within(points, self.box, "X")
        bounds = self._own_bounds()
        if isinstance(bounds, OwnBounds):
            return _WorstCase.apply(points.squeeze(1), bounds, balls).view(batch)
        # Every model has its own worst point: n x m x d.
        centers = points.expand(-1, self.num_models, d)
        _, worst = balls.quick_worst_case(bounds, centers)
        bounds = self._upper_bounds(balls.follow(centers, worst))
        return bounds.max(dim=-1).values.view(batch)

    def _moments_in_turn(self, X: Tensor) -> None:
        return None  # every point has worst points of its own

    def gen_candidates(
        self,
        initial_conditions: Tensor,
        acquisition_function: Any,
        lower_bounds: float | Sequence[float] | Tensor | None = None,
        upper_bounds: float | Sequence[float] | Tensor | None = None,
        options: Mapping[str, Any] | None = None,
        fixed_features: Mapping[int, float | Tensor | None] | None = None,
        timeout_sec: float | None = None,
        **constraints: Any,
    ) -> tuple[Tensor, Tensor]:
        """Maximises the acquisition function by ascents along ridges, where two perturbations are
        equally bad and maximisers lie.

        Pass it on: ``optimize_acqf(acqf, ..., gen_candidates=acqf.gen_candidates)``. A few steps of
        linear programmes find higher values than hundreds of steps of L-BFGS-B.

        Args:
            initial_conditions: The ``n x 1 x d`` points at which ascents start.
            acquisition_function: This acquisition function.
            lower_bounds: A number, or ``d`` numbers, cut off at the bounds of the perturbations.
                None: these bounds.
            upper_bounds: As ``lower_bounds``.
            options: A dict with ``maxiter``, the number of steps of an ascent, 30 by default; other
                entries are ignored.
            fixed_features: A dict from columns to fixed values: a number, one for each start, or
                None for that of the start.
            timeout_sec: Ignored, since an ascent is short.
            constraints: Must be None.

        Returns:
            The ``n x 1 x d`` candidates and their ``n`` values, none below that of its start.

        Raises:
            ValueError: If another acquisition function is given; if there are no starts, several
                points in a start, or NaN; if bounds, fixed features or options are impossible, or
                fixed features lie outside the bounds of the perturbations; or if there are
                constraints.
        """
        given = [name for name, value in constraints.items() if value is not None]
        if given:
            raise ValueError(f"{given[0]} must be None: climbs along ridges are in a box")
        if acquisition_function is not self:
            raise ValueError(
                "acquisition_function must be the one whose gen_candidates is called, "
                f"got a {type(acquisition_function).__name__}"
            )
        starts = as_batch(initial_conditions, self._told_model, "initial_conditions", self._dim)
        starts = starts.detach()
        if starts.ndim != 3 or starts.shape[1] != 1:
            raise ValueError(
                "initial_conditions must have shape (n, 1, d), one point at a time as with "
                f"sequential=True, got {tuple(starts.shape)}"
            )
        if not len(starts):
            raise ValueError("initial_conditions must have at least one point, got none")
        require_finite({"initial_conditions": starts})
        box = self._balls_like(starts).box
        low, high = checked_limits(lower_bounds, upper_bounds, box)
        num_steps = checked_steps(options, _STEPS)
        X = torch.minimum(torch.maximum(starts.squeeze(1), low), high)
        fixed = low == high
        for column, value in checked_fixed(fixed_features, X, box).items():
            X[:, column] = value
            fixed[column] = True
        self.to(X)
        ends = self._climbed(X, low, high, ~fixed, num_steps)
        with torch.no_grad():
            both = torch.stack([X, ends])
            values = self(both.unsqueeze(-2))
        better = values[1] > values[0]
        ends = torch.where(better.unsqueeze(-1), ends, X)
        return ends.unsqueeze(-2), torch.where(better, values[1], values[0])

    def _climbed(
        self, X: Tensor, low: Tensor, high: Tensor, free: Tensor, num_steps: int
    ) -> Tensor:
        """The ``n x d`` ends of ascents along the ridges, each for the model with the largest worst
        case at its start; the ends are not compared with the starts.

        Args:
            X: The ``n x d`` starts.
            low: The ``d`` lower limits of the centres.
            high: The ``d`` upper limits of the centres.
            free: A mask of the ``d`` columns that move.
            num_steps: The number of steps of each ascent.
        """
        if not bool(free.any()):
            return X
        bounds, balls = self._own_bounds(), self._balls_like(X)
        centers = X.unsqueeze(1).expand(-1, self.num_models, -1)
        values, which = balls.quick_worst_case(bounds, centers)[0].max(dim=-1)
        tolerance = _TOLERANCE * float(values.abs().max())
        box, hasty = Box(torch.stack([low, high])[:, free]), balls.searched(_HASTY)
        ends = X.clone()
        # Starts with the same model and the same fixed columns ascend together.
        kinds = torch.cat([which.unsqueeze(-1).to(X), X[:, ~free]], dim=-1)
        for kind in kinds.unique(dim=0):
            rows = (kinds == kind).all(dim=-1).nonzero().flatten()
            cuts = _Cuts(bounds, hasty, int(kind[0]), self.num_models, X[rows[0]], free)
            _, found = along_ridges(cuts, box, X[rows][:, free].cpu().numpy(), tolerance, num_steps)
            moved = X[rows]
            moved[:, free] = torch.from_numpy(found).to(X)
            ends[rows] = moved
        return ends

    def _own_bounds(self) -> OwnBounds | FunctionObjective:
        """The upper bounds of the models as they are now, each model at its own points."""
        return closed_bounds(self) or FunctionObjective(self._upper_bounds)

    def _balls_like(self, X: Tensor) -> BoxBalls:
        if X.dtype != self.box.dtype or X.device != self.box.device:
            self.box = self.box.to(X.dtype, X.device)
            self._balls = self.perturbations.on(self.box)
        return self._balls


class _Cuts:
    """The bounds of one model at several perturbed points, and their gradients by the free columns
    of the centre; the smallest of them is the worst case.

    Args:
        bounds: The bounds of m models, each at its own points.
        balls: The balls of perturbed points.
        model: The position of the model.
        num_models: m.
        x: The ``d`` coordinates that fixed columns have.
        free: A mask of the ``d`` columns that move.
    """

    def __init__(
        self,
        bounds: Objective,
        balls: BoxBalls,
        model: int,
        num_models: int,
        x: Tensor,
        free: Tensor,
    ) -> None:
        self._bounds, self._balls = bounds, balls
        self._model, self._num_models = model, num_models
        self._x, self._free = x, free

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The values, ``s x r``, and gradients, ``s x r x f``, at ``r x f`` free columns."""
        centers = self._x.repeat(len(X), 1)
        centers[:, self._free] = X
        num_models = self._num_models
        values, Z = self._balls.local_worst_cases(
            self._bounds, centers.unsqueeze(1).expand(-1, num_models, -1)
        )
        _, gradients = self._bounds.value_and_gradient(Z.flatten(0, 1))
        Z, gradients = Z[..., self._model, :], gradients.view(Z.shape)[..., self._model, :]
        slopes = self._balls.pulled_back(centers.expand_as(Z), Z, gradients)
        return values[..., self._model], slopes[..., self._free]


class _WorstCase(torch.autograd.Function):
    """The largest worst case of several models, with its gradient."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, bounds: OwnBounds, balls: BoxBalls) -> Tensor:  # pyright: ignore
        centers = X.unsqueeze(1).expand(-1, bounds.num_models, -1)
        values, worst = balls.quick_worst_case(bounds, centers)
        best, which = values.max(dim=-1)
        if ctx.needs_input_grad[0]:
            _, gradients = bounds.value_and_gradient(worst)
            rows = torch.arange(len(X), device=X.device)
            ctx.save_for_backward(balls.pulled_back(X, worst[rows, which], gradients[rows, which]))
        return best

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # pyright: ignore
        (slopes,) = ctx.saved_tensors
        return gradient.unsqueeze(-1) * slopes, None, None


def closed_bounds(acqf: AlternativeBounds) -> OwnBounds | None:
    """The upper bounds of an acquisition function as it is now, with gradients in closed form; None
    if there is no closed form."""
    if acqf.posterior_transform is not None:
        return None
    alternatives: Any = acqf.model
    own_models, start = [], 0
    for model, count in zip(alternatives.models, alternatives.counts, strict=True):
        known = isinstance(model, KernelGP) and model.num_observations > 0
        if not known or not model.has_closed_form_gradient:
            return None
        own_models.append((model, acqf.positions[start : start + count]))
        start += count
    return OwnBounds(own_models, acqf.width, acqf.offset, 1.0 if acqf.maximize else -1.0)

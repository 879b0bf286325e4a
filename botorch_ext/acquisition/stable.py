"""Stable: the worst case of an upper confidence bound over a ball of perturbations."""

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
from botorch_ext.robust.box_balls import BoxBalls, Norm
from botorch_ext.robust.own_bounds import OwnBounds
from botorch_ext.robust.perturbations import Perturbations
from botorch_ext.robust.ridges import along_ridges
from botorch_ext.search.objectives import FunctionObjective, Objective

# Steps of a climb and of the descents on the way, and what a step of a climb must gain relative to
# the values.
_STEPS, _HASTY, _TOLERANCE = 30, 8, 1e-6


class StableUCB(AlternativeBounds):
    """min over delta of the upper bound at x + delta, delta in a ball cut off at the bounds; of
    several models the largest such minimum.

    The minimum is searched for, from the best of many perturbations, and not certified: a valley
    that is narrow for the radius may be missed, and the value is then too high.

    Its maximiser is where the function may still be high whatever small perturbation comes.
    Gradients are those of the worst point (envelope theorem); where two points are equally bad,
    which is common at the maximiser, there is a kink: there `gen_candidates` climbs faster and
    higher than BoTorch's L-BFGS-B. Source: Bogunovic et al. 2018, algorithm 1
    (StableOpt); Ziomek et al. 2024, algorithm 2.

    Args:
        model: A single-output BoTorch model, or models as for `OptimisticModelUCB`.
        width: As for `OptimisticModelUCB`.
        radius: The radius of the ball, in the units of the coordinates; or one radius for each
            coordinate.
        norm: "l2" or "linf".
        bounds: ``2 x d``: perturbed points stay inside.
        posterior_transform: As in BoTorch, applied to every model.
        maximize: False for a function to be minimised: the worst case over the ball of
            ``-mean + width * std``.
        X_pending: ``n x d`` points that are asked and not yet told; they are hallucinated for every
            model.

    Raises:
        ValueError: As for `OptimisticModelUCB`; a radius, a norm or bounds that are none; at an
            evaluation, points outside the bounds.
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
        """Climbs along ridges, where two perturbations are equally bad and the maximisers lie:
        ``optimize_acqf(acqf, ..., gen_candidates=acqf.gen_candidates)``. A few steps of linear
        programmes find more than the hundreds of L-BFGS-B.

        Args:
            initial_conditions: ``n x 1 x d``, where climbs start.
            acquisition_function: This one.
            lower_bounds: A number or ``d``; those of the perturbations if None, as where they are
                further in.
            upper_bounds: Likewise.
            options: ``maxiter``, the steps of a climb, 30 unless given; others are ignored.
            fixed_features: For some columns a number, or one for each start; None for that of the
                start.
            timeout_sec: Not heeded: a climb is short.
            constraints: None of them is taken.

        Returns:
            ``n x 1 x d`` candidates and their ``n`` values, none below its start.

        Raises:
            ValueError: Another acquisition function, no points or several at once, starts with NaN,
                limits, fixed features or options that are none, fixed features outside the bounds
                of the perturbations, or constraints.
        """
        self._refresh()
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
        """Where climbs along the ridges from ``n x d`` points end, each under the model that counts
        at its start, ``n x d``; the ends are not compared with the starts.

        Args:
            X: Where they start.
            low: ``d``: limits of the centres.
            high: ``d``: limits of the centres.
            free: ``d``: which columns move.
            num_steps: Of each climb.
        """
        if not bool(free.any()):
            return X
        bounds, balls = self._own_bounds(), self._balls_like(X)
        centers = X.unsqueeze(1).expand(-1, self.num_models, -1)
        values, which = balls.quick_worst_case(bounds, centers)[0].max(dim=-1)
        tolerance = _TOLERANCE * float(values.abs().max())
        box, hasty = Box(torch.stack([low, high])[:, free]), balls.searched(_HASTY)
        ends = X.clone()
        # Starts of one model and with the same fixed columns climb together.
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
        """The upper bounds of the models as they are now, each at points of its own."""
        return closed_bounds(self) or FunctionObjective(self._upper_bounds)

    def _balls_like(self, X: Tensor) -> BoxBalls:
        if X.dtype != self.box.dtype or X.device != self.box.device:
            self.box = self.box.to(X.dtype, X.device)
            self._balls = self.perturbations.on(self.box)
        return self._balls


class _Cuts:
    """Bounds of one model at several perturbed points, and how they change as free columns of the
    centre move; the least of them is the worst case.

    Args:
        bounds: Of m models, each at points of its own.
        balls: What is within reach.
        model: Which of the models.
        num_models: m.
        x: ``d``: the columns that are not free.
        free: ``d``.
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
        """``r x f`` free columns to ``s x r`` values and ``s x r x f`` gradients."""
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
    """The upper bounds of an acquisition function as it is now, with gradients that need no
    autograd; None where they have no closed form."""
    if acqf.posterior_transform is not None:
        return None
    alternatives: Any = acqf.model
    parts, start = [], 0
    for model, count in zip(alternatives.models, alternatives.counts, strict=True):
        known = isinstance(model, KernelGP) and model.num_observations > 0
        if not known or not model.has_closed_form_gradient:
            return None
        parts.append((model, acqf.positions[start : start + count]))
        start += count
    return OwnBounds(parts, acqf.width, acqf.offset, 1.0 if acqf.maximize else -1.0)

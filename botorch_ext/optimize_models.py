"""The argmax over (point, model) pairs on a box: the upper confidence bounds of many models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_ext.ascent import projected_bfgs
from botorch_ext.domains import Box
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.optimize import on_unit_cube, screening_points, spread_best

# Numbers in the largest intermediate tensor of a screening, to bound memory.
_MAX_ENTRIES = 2**24
# Models that are screened more closely and polished, and the starts of each.
_NUM_MODELS = 8
_NUM_STARTS = 6
_FIRST_STEPS=4
_D2=3
_K2=2
_CLOSER=2
_NUM_RAW=512


@dataclass(frozen=True, eq=False)
class UpperBounds:
    """mean + width * std + offset of each of several models.

    Args:
        models: m models.
        widths: ``m``.
        offsets: ``m``.
    """

    models: CandidateModels
    widths: Tensor
    offsets: Tensor

    @torch.no_grad()
    def values(self, X: Tensor) -> Tensor:
        """``m x n`` values at ``n x d`` points, a part of them at a time."""
        rows = max(self.models.num_observations, 1) * self.models.num_models
        chunks = X.split(max(_MAX_ENTRIES // rows, 16))
        return torch.cat([self._values(chunk) for chunk in chunks], dim=-1)

    def _values(self, X: Tensor) -> Tensor:
        mean, std = self.models.mean_and_std(X)
        return mean + self.widths[:, None] * std + self.offsets[:, None]

    def select(self, positions: Sequence[int]) -> UpperBounds:
        """Those of some of the models."""
        rows = torch.as_tensor(positions, device=self.widths.device)
        return UpperBounds(self.models.select(positions), self.widths[rows], self.offsets[rows])


class AverageBound:
    """The average of upper confidence bounds, an `Objective`.

    Args:
        bounds: Of m models.
        probabilities: ``m``.
    """

    def __init__(self, bounds: UpperBounds, probabilities: Tensor) -> None:
        # What weighs less than rounding does is left out: most models, after a while.
        kept = (probabilities > torch.finfo(probabilities.dtype).eps).nonzero().flatten().tolist()
        self.bounds = bounds.select(kept)
        self.probabilities = probabilities[kept]

    def value(self, X: Tensor) -> Tensor:
        return self.probabilities @ self.bounds.values(X)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        m = len(self.probabilities)
        climber = _Climber(self.bounds, X.shape[0])
        values, gradients = climber.value_and_gradient(X.repeat(m, 1))
        weights = self.probabilities[climber.positions]
        return weights @ values.view(m, -1), (
            weights[:, None, None] * gradients.view(m, *X.shape)
        ).sum(dim=0)


class _Climber:
    """Upper bounds at points that each belong to one model: s points for each of m models.

    Points are in the order of `positions`: all of a model's together.
    """

    def __init__(self, bounds: UpperBounds, num_points: int) -> None:
        self._parts: list[tuple[KernelGP, Tensor, Tensor]] = []
        self._num_points = num_points
        self.positions: list[int] = []
        for part in bounds.models.parts:
            self.positions += part.positions
            rows = torch.as_tensor(part.positions, device=bounds.widths.device)
            self._parts.append((part.model, bounds.widths[rows], bounds.offsets[rows]))

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``(m s) x d`` points to ``m s`` values and ``(m s) x d`` gradients."""
        values, gradients, start = [], [], 0
        for model, widths, offsets in self._parts:
            stop = start + len(widths) * self._num_points
            points = X[start:stop].view(len(widths), self._num_points, -1)
            value, gradient = _value_and_gradient(model, points, widths[:, None])
            values.append((value + offsets[:, None]).flatten())
            gradients.append(gradient.flatten(0, 1))
            start = stop
        return torch.cat(values), torch.cat(gradients)


def _value_and_gradient(model: KernelGP, X: Tensor, widths: Tensor) -> tuple[Tensor, Tensor]:
    """Of ``m`` models at ``s`` points each: ``m x s x d`` to ``m x s`` and ``m x s x d``."""
    if model.has_closed_form_gradient and model.num_observations:
        with torch.no_grad():
            mean, std, mean_gradient, std_gradient = model.mean_std_and_gradients(X)
            return mean + widths * std, mean_gradient + widths.unsqueeze(-1) * std_gradient
    with torch.enable_grad():
        X = X.detach().requires_grad_()
        mean, std = model.mean_and_std(X)
        values = mean + widths * std
        if not values.requires_grad:  # constant, such as the prior of a stationary kernel
            return values, torch.zeros_like(X)
        (gradient,) = torch.autograd.grad(values.sum(), X, materialize_grads=True)
    return values.detach(), gradient.nan_to_num(0.0, 0.0, 0.0)


def maximize_over_models(
    bounds: UpperBounds,
    box: Box,
    seed: int,
    num_raw: int = 0,
    extra: Tensor | None = None,
    tolerance: float = 1e-9,
) -> tuple[Tensor, int]:
    """The point and the model with the highest upper confidence bound.

    All models are screened on the same points. Those few whose best is highest are screened on
    twice as many more, and their best points are polished together, each under its own model.

    Args:
        bounds: Of m models.
        box: Where.
        seed: Seeds the screening points.
        num_raw: Points that all models are screened on.
        extra: ``n x d`` more points to screen, such as the best so far.
        tolerance: A polish ends when a step gains less than this, relative to the spread of the
            screened values.

    Returns:
        The ``d``-dim point and the position of its model.
    """
    num_raw = num_raw or _NUM_RAW
    screen = screening_points(box, (1 + _CLOSER) * num_raw, seed)
    # Screening points are ordered: Sobol points first, then those moved to faces.
    mixed = torch.randperm(len(screen), generator=torch.Generator().manual_seed(seed))
    screen = screen[mixed.to(screen.device)]
    first = screen[:num_raw] if extra is None else torch.cat([extra, screen[:num_raw]])
    values = bounds.values(first)  # (m, n)
    chosen = values.amax(dim=-1).topk(min(_NUM_MODELS, len(values))).indices
    closer = bounds.select(chosen.tolist())
    X = torch.cat([first, screen[num_raw:]])
    values = torch.cat([values[chosen], closer.values(screen[num_raw:])], dim=-1)
    starts = torch.stack([X[spread_best(row, X, box, _NUM_STARTS)] for row in values])
    climber = _Climber(closer, starts.shape[1])
    ends, heights = _climb(climber, box, values, starts[climber.positions].flatten(0, 1), tolerance, _FIRST_STEPS)
    # per model keep best K2 of top D2 models
    m = len(closer.widths)
    own = heights.view(m, -1)
    best_models = own.amax(dim=-1).topk(min(_D2, m)).indices
    pos=[climber.positions[i] for i in best_models.tolist()]
    k2=min(_K2, own.shape[1])
    rows = own[best_models].topk(k2, dim=-1).indices
    pts = ends.view(m, own.shape[1], -1)[best_models[:,None], rows]
    final = closer.select(pos)
    climber2 = _Climber(final, k2)
    ends, heights = _climb(climber2, box, values, pts[climber2.positions].flatten(0,1), tolerance, 200)
    best = int(heights.argmax())
    return ends[best], int(chosen[pos[climber2.positions[best // k2]]])


def _climb(climber, box, values, starts, tolerance, max_iterations):
    def own(points: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        # All of them each time: a batch of models is not cut to those that still climb.
        everywhere = starts.index_copy(0, rows, points)
        value, gradient = climber.value_and_gradient(everywhere)
        return value[rows], gradient[rows]

    polished, _ = projected_bfgs(
        on_unit_cube(own, box, values),
        box.to_unit(starts),
        0.3 * tolerance**0.5,
        tolerance,
        max_iterations,
        with_rows=True,
    )
    ends = box.from_unit(polished)
    return ends, climber.value_and_gradient(ends)[0]

"""Constraints on points by functions of named values: texts, and Python functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains.linear_constraints import TOLERANCES
from botorch_ext.domains.scales import Scales
from botorch_ext.state import Immutable, shallow

if TYPE_CHECKING:
    from botorch_ext.domains.written_constraints import Comparison

#: A function of values by name that returns True or False, or a number that is at least 0 where the
#: values are allowed.
ParamsFunction = Callable[[dict[str, Any]], Any]

# The number of rounds in which points are moved towards constraints.
_NUM_ROUNDS = 8
_TINY = 1e-30


class FunctionConstraints(Immutable):
    """Constraints by functions. Linear ones beside them are comparisons too.

    Args:
        comparisons: The comparisons of expressions.
        lines: The column of each parameter in them, and (a, b) where its value is a + b times the
            number of the column.
        called: The names of Python functions with the functions.
        params_of: A function from a point, ``d``, to its values by name.
    """

    _scales: Scales

    def __init__(
        self,
        comparisons: Sequence[Comparison],
        lines: Mapping[str, tuple[int, float, float]],
        called: Sequence[tuple[str, ParamsFunction]],
        params_of: Callable[[Tensor], dict[str, Any]],
    ) -> None:
        self.comparisons, self.lines = comparisons, lines
        self.called, self.params_of = called, params_of

    def within(self, scales: Scales) -> FunctionConstraints:
        """The same constraints on the points of a box with some scales."""
        new = shallow(self)
        new._scales = scales
        return new

    def without_called(self) -> FunctionConstraints | None:
        """The constraints without Python functions; None if there are no others."""
        if not self.comparisons:
            return None
        return FunctionConstraints(self.comparisons, self.lines, (), self.params_of)

    @property
    def names(self) -> list[str]:
        """The texts of the comparisons and the names of the functions."""
        return [each.text for each in self.comparisons] + [name for name, _ in self.called]

    @property
    def columns(self) -> list[int]:
        """The columns that a constraint may use."""
        if self.called:
            return list(range(self._scales.ends.shape[1]))
        return sorted({column for column, _, slope in self.lines.values() if slope})

    def hold(self, X: Tensor) -> Tensor:
        """Which points satisfy all constraints, comparisons with a small tolerance.

        Args:
            X: Points, ``n x d``.

        Returns:
            A boolean tensor of ``n`` entries.

        Raises:
            ValueError: If a Python function raises an error or returns something else.
        """
        return (self.violations(X) == 0).all(dim=-1)

    def violations(self, X: Tensor) -> Tensor:
        """How far points violate each constraint, from 0, where it holds, to 1.

        Python functions are called only at points of the box where all comparisons hold, and count
        1 elsewhere.

        Args:
            X: Points, ``n x d``.

        Returns:
            ``n x m``.
        """
        own = X.new_ones(len(X), len(self.called))
        slack, size = self._compared(X)
        share = torch.where(slack.isinf(), slack.sign(), slack / size.clamp_min(_TINY))
        compared = (-share - _tolerance(X)).clamp_min(0).nan_to_num(1.0)
        if self.called:
            low, high = self._scales.ends
            inside = ((X >= low) & (X <= high) & self._scales.admits(X)).all(dim=-1)
            (rows,) = (inside & (compared == 0).all(dim=-1)).nonzero(as_tuple=True)
            found = [self._called_at(x) for x in X[rows].cpu()]
            own[rows] = X.new_tensor(found).view(len(rows), len(self.called))
        return torch.cat([compared, own], dim=-1)

    def broken_by(self, x: Tensor) -> str:
        """The text or the name of the first constraint that a point, ``d``, violates."""
        return self.names[int((self.violations(x[None])[0] > 0).to(torch.uint8).argmax())]

    @torch.enable_grad()  # even if the caller has switched it off
    def slack_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How far points are inside each of the k comparisons.

        Args:
            X: Points, ``n x d``.

        Returns:
            The differences of the two sides, ``n x k``; the sums of the absolute terms in them,
            ``n x k``; and the gradients of the differences, ``n x k x d``.
        """
        X = X.detach().requires_grad_()
        slack, size = self._compared(X)
        totals = [slack[:, k].sum() for k in range(len(self.comparisons))]
        gradients = [torch.autograd.grad(each, X, retain_graph=True)[0] for each in totals]
        gradient = torch.stack(gradients, dim=1).nan_to_num(0.0, 0.0, 0.0)
        return slack.detach(), size.detach(), gradient

    def nearby(self, targets: Tensor, otherwise: Tensor) -> Tensor:
        """Move points until the constraints hold, as `Box.nearby` does.

        Args:
            targets: Points within the bounds, ``n x d``.
            otherwise: Feasible points, ``n x d``, for targets near which none is found.

        Returns:
            Feasible points, ``n x d``.
        """
        stepped, kept, found = list(self._scales.stepped), targets.clone(), otherwise.clone()
        kept[:, stepped] = otherwise[:, stepped]
        rows = torch.arange(len(found), device=found.device)
        for start in (targets, kept) if stepped else (targets,):
            moved = self.moved(start[rows])
            holds = (moved == otherwise[rows]).all(dim=-1)
            holds[~holds] = self.hold(moved[~holds])
            found[rows[holds]] = moved[holds]
            rows = rows[~holds]
        return found

    def moved(self, X: Tensor) -> Tensor:
        """Round points, and move their continuous columns by Newton's steps in the unit cube until
        the comparisons hold, where that is possible.

        Args:
            X: Points within the bounds, ``n x d``.

        Returns:
            Points within the bounds, ``n x d``, which may violate constraints.
        """
        scales = self._scales
        X = scales.snapped(X)
        for _ in range(_NUM_ROUNDS):
            (rows,) = (self._compared(X)[0] < 0).any(dim=-1).nonzero(as_tuple=True)
            if not len(rows):
                break
            slack, size, gradient = self.slack_and_gradient(X[rows])
            worst = (slack / size.clamp_min(_TINY)).nan_to_num(0.0).argmin(dim=-1, keepdim=True)
            # To the middle of the tolerance, so that rounding leaves no violation.
            short = (0.5 * _tolerance(X) * size - slack).gather(1, worst)
            slope = gradient.take_along_dim(worst.unsqueeze(-1), dim=1).squeeze(1)
            slope = slope * scales.stretch(X[rows])
            length = slope.square().sum(dim=-1, keepdim=True)
            step = torch.where(length > 0, short / length * slope, 0)
            X[rows] = scales.from_unit((scales.to_unit(X[rows]) + step).clamp(0, 1))
        return X

    def _compared(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """How far points are inside each comparison, ``n x k``, and the sums of absolute terms."""
        values = {name: a + b * X[:, j] for name, (j, a, b) in self.lines.items()}
        # Texts of no parameter, or of parameters with one value, have a single number.
        zero = 0 * X[:, 0]
        pairs = [
            torch.stack([own + zero for own in each.slack(values)]) for each in self.comparisons
        ]
        both = torch.stack(pairs, dim=-1) if pairs else X.new_zeros(2, len(X), 0)
        return both[0], both[1]

    def _called_at(self, x: Tensor) -> list[float]:
        """How far a point, ``d``, violates each Python function, from 0 to 1."""
        found = []
        for name, function in self.called:
            params = self.params_of(x)
            try:
                result = function(dict(params))
                result = result.item() if hasattr(result, "item") else result
                if isinstance(result, bool):
                    result = 0.0 if result else -math.inf
                number = one_number(result, "the result")
                if math.isnan(number):
                    raise ValueError("the result is NaN")
            except Exception as error:
                raise ValueError(
                    f"constraint {name} must return True, False or a number at each point, got "
                    f"{error!r} at {params}"
                ) from error
            found.append(0.0 if number >= 0 else max(1 / (1 - 1 / number), _TINY))
        return found


def _tolerance(X: Tensor) -> float:
    return TOLERANCES.get(X.dtype, 1e-2)

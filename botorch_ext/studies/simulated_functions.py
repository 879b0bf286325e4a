"""Functions and tables of values as problems that are simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Box, Domain, FiniteSet, Space
from botorch_ext.problems import ContextualProblem, KnownFunction, Problem, tabulated
from botorch_ext.studies.failures import checked_result, require_taken

# The step of a difference quotient, in lengths of a side.
_STEP = 1e-5


def as_problem(
    given: Any, domain: Domain, outcomes: Sequence[str] = ()
) -> Problem | ContextualProblem:
    """The problem that a user gave to `simulate`, which may be a function or a table.

    Args:
        given: A problem; or a function as for `run`, from a ``d``-dim point, in a `Space` a dict of
            values by name, to a number; or, on a `FiniteSet`, the value of each point.
        domain: The domain of the strategy.
        outcomes: The names of the outcomes that a function returns with its number.

    Raises:
        ValueError: It is none of these, or values are not finite or not as many as the points.
        ObjectiveError: The function takes no point, or returns no number.
    """
    if callable(given) and isinstance(getattr(given, "domain", None), Box | FiniteSet):
        return cast(Problem, given)
    if hasattr(given, "domain") or not isinstance(domain, Box | FiniteSet):
        raise ValueError(f"problem must be a Problem with a domain, got {short(given)}")
    if callable(given):
        require_taken(given, 1)
        return _Called(partial(_one_by_one, given, domain, outcomes), domain)
    if not isinstance(domain, FiniteSet):
        raise ValueError(
            f"problem must be a Problem, or a function of a point, got {short(given)}; a value for "
            "each point is taken on a FiniteSet"
        )
    try:
        return _Known(tabulated(domain, given), domain)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            "problem must be a Problem, a function of a point, or one finite value for each of the "
            f"{domain.num_points} points, got {short(given)}"
        ) from None


def _one_by_one(
    function: Callable[[Any], Any], domain: Domain, outcomes: Sequence[str], X: Tensor
) -> list[tuple[float, dict[str, float]]]:
    """The ``n`` values of a function of one point, with their outcomes, at ``n x d`` points."""
    named = domain.params_of if isinstance(domain, Space) else torch.clone
    return [checked_result(function(named(x)), outcomes) for x in X.detach()]


class _Known(KnownFunction):
    """A function that need not be one that PyTorch differentiates.

    Args:
        values: From ``n x d`` points to their ``n`` values.
        domain: The domain.
    """

    def __init__(self, values: Callable[[Tensor], Tensor], domain: Domain) -> None:
        super().__init__(domain)
        self.values = values

    def _evaluate(self, X: Tensor) -> Tensor:
        return _Quotients.apply(X, self.values, self.domain)


class _Called(_Known):
    """A function that returns a number, or a number and its outcomes.

    Args:
        results: From ``n x d`` points to their ``n`` values, each with its outcomes by name.
        domain: The domain.
    """

    def __init__(
        self, results: Callable[[Tensor], list[tuple[float, dict[str, float]]]], domain: Domain
    ) -> None:
        super().__init__(lambda X: X.new_tensor([value for value, _ in results(X)]), domain)
        self.results = results

    def outcomes(self, x: Tensor) -> dict[str, float]:
        """The outcomes at a ``d``-dim point."""
        return self.results(x.unsqueeze(0))[0][1]


class _Quotients(torch.autograd.Function):
    """Values of a function with the gradients of difference quotients."""

    @staticmethod
    def forward(
        ctx: Any, X: Tensor, values: Callable[[Tensor], Tensor], domain: Box | FiniteSet
    ) -> Tensor:
        ctx.save_for_backward(X)
        ctx.values, ctx.domain = values, domain
        return values(X)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (X,), (weights,), box = ctx.saved_tensors, grads, ctx.domain
        gradient = torch.zeros_like(X)
        # A search moves the others by their steps.
        steady = {*box.integer, *box.steps, *box.categories}
        for j in {*range(X.shape[-1])} - steady:
            ends = []
            for sign in (1, -1):  # inside the box, where the function is known
                moved = X.clone()
                moved[:, j] += sign * _STEP * (box.upper[j] - box.lower[j])
                ends.append(torch.minimum(torch.maximum(moved, box.lower), box.upper))
            rise = ctx.values(ends[0]) - ctx.values(ends[1])
            gradient[:, j] = rise / (ends[0] - ends[1])[:, j]
        return weights.unsqueeze(-1) * gradient, None, None

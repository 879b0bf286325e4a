"""Functions and tables of values as problems that are simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Box, Domain, FiniteSet, Space
from botorch_ext.problems import ContextualProblem, Function, Problem, tabulated
from botorch_ext.studies.failures import checked_result, require_taken


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
        return Function(domain, tabulated(domain, given))
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            "problem must be a Problem, a function of a point, or one finite value for each of the "
            f"{domain.num_points} points, got {short(given)}"
        ) from None


def same_points(one: Domain, other: Domain) -> bool:
    """Whether two domains have the same points, in the same dtype and on the same device."""
    if not (isinstance(one, FiniteSet) and isinstance(other, FiniteSet)):
        return one == other
    X, Y = one.points, other.points
    return X is Y or ((X.dtype, X.device) == (Y.dtype, Y.device) and torch.equal(X, Y))


def _one_by_one(
    function: Callable[[Any], Any], domain: Domain, outcomes: Sequence[str], X: Tensor
) -> list[dict[str, Any]]:
    """The ``n`` results of a function of one point at ``n x d`` points, as `checked_result`."""
    named = domain.params_of if isinstance(domain, Space) else torch.clone
    return [checked_result(function(named(x)), outcomes) for x in X.detach()]


class _Called(Function):
    """A function that returns a number, or a number and its outcomes.

    Args:
        results: From ``n x d`` points to their ``n`` results, as of `checked_result`.
        domain: The domain.
    """

    def __init__(self, results: Callable[[Tensor], list[dict[str, Any]]], domain: Domain) -> None:
        super().__init__(domain, self._numbers)
        self.results = results

    def _numbers(self, X: Tensor) -> Tensor:
        return X.new_tensor([result["value"] for result in self.results(X)])

    def outcomes(self, x: Tensor) -> dict[str, float]:
        """The outcomes at a ``d``-dim point."""
        return self.results(x.unsqueeze(0))[0]["outcomes"]

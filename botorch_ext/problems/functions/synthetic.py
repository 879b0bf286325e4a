"""BoTorch's test functions as maximisation problems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import cast

from botorch.test_functions.base import ConstrainedBaseTestProblem
from botorch.test_functions.synthetic import SyntheticTestFunction
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.problems.base import global_maximum, pointwise, require_noise_std


class SyntheticProblem:
    """A BoTorch test function as a maximisation problem on its box.

    The function is negated unless it is to be maximised already (``negate=True``, or a function
    such as Cosine8 whose optimum is a maximum).

    Example:
        >>> from botorch.test_functions import Hartmann
        >>> from botorch_ext.problems import SyntheticProblem
        >>> problem = SyntheticProblem(Hartmann(dim=6))
        >>> round(problem.optimal_value, 4)
        3.3224

    Args:
        test_function: A test function with a single objective, without constraints, continuous and
            with a known optimum.
        noise_std: The standard deviation of the observation noise; None takes that of the test
            function, or 0 if it has none.

    Raises:
        ValueError: If the test function is not of this kind.
    """

    def __init__(
        self, test_function: SyntheticTestFunction, noise_std: float | None = None
    ) -> None:
        name = type(test_function).__name__
        if not isinstance(test_function, SyntheticTestFunction) or isinstance(
            test_function, ConstrainedBaseTestProblem
        ):
            raise ValueError(
                "test_function must be a BoTorch SyntheticTestFunction without constraints, "
                f"got {name}"
            )
        if test_function.discrete_inds or test_function.categorical_inds:
            raise ValueError(f"test_function must be continuous in every coordinate, got {name}")
        if noise_std is None:
            noise_std = _own_noise_std(test_function)
        self.test_function: SyntheticTestFunction = test_function
        self.domain: Box = Box(cast(Tensor, test_function.bounds))
        self.noise_std: float = require_noise_std(noise_std)
        self._sign: float = -1.0 if test_function.is_minimization_problem else 1.0
        try:
            self._stated_optimum: float = self._sign * test_function.optimal_value
        except NotImplementedError as error:
            raise ValueError(f"test_function must have a known optimum, got {name}") from error

    def __call__(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """The noiseless values; larger is better.

        Args:
            X: Points of the box, ``n x d``, or one point, ``d``.

        Returns:
            The values, ``n``, or a 0-dim tensor for one point; differentiable where the function
            is.

        Raises:
            ValueError: If ``X`` does not fit the box or lies outside it.
        """
        return pointwise(self._evaluate, X, self.domain, inside=True)

    def _evaluate(self, X: Tensor) -> Tensor:
        return self._sign * self.test_function(X, noise=False)

    @property
    def optimal_value(self) -> float:
        """The maximum: the optimum that BoTorch states, refined if BoTorch states its location.

        BoTorch rounds the optimum to four to six digits, too few for a regret on a log axis.
        """
        return self._optimum[1]

    @property
    def optimizer(self) -> Tensor | None:
        """A point that attains the maximum, ``d``; None if BoTorch states none."""
        return self._optimum[0]

    @cached_property
    def _optimum(self) -> tuple[Tensor | None, float]:
        stated = getattr(self.test_function, "optimizers", None)
        if stated is None:
            return None, self._stated_optimum
        stated = stated.to(self.domain.bounds)
        # With custom bounds some optimizers may lie outside.
        stated = stated[self.domain.contains(stated)]
        return global_maximum(
            self._evaluate, self.domain, seed=0, num_raw=512, num_starts=8, extra=stated
        )

    def __repr__(self) -> str:
        return f"SyntheticProblem({type(self.test_function).__name__}, domain={self.domain!r})"


def _own_noise_std(test_function: SyntheticTestFunction) -> float:
    own = test_function.noise_std
    if own is None:
        return 0.0
    if isinstance(own, list):
        raise ValueError(f"test_function must have one noise_std, got {own}")
    return float(own)

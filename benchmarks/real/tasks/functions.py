"""Functions that the default was first developed on, two of them the tuning of a learner: in their
own units, all to be maximised. With noise, Gaussian and the same everywhere, they are tasks.

Numbers of the default were chosen on the first six. Those from Beale on came last.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from benchmarks.real.spaces import Params, real
from benchmarks.real.tasks.task import Kind, Objective, Task

if TYPE_CHECKING:  # the environment of the other tasks has no torch
    from torch import Tensor

# Standard deviations of the noise, in ranges.
NOISES = (0.005, 0.05)
_NUM_SOBOL_POINTS = 8192
# A regret counts as at least so many ranges.
_FLOOR = 1e-6
# The functions of BoTorch that take no dimension.
_OF_ONE_SIZE = (
    *("Branin", "SixHumpCamel", "Cosine8"),
    *("Beale", "ThreeHumpCamel", "DropWave", "Shekel"),
)
# BoTorch does not say it; the same from 20 starts of Nelder-Mead.
_OF_HARTMANN4 = 3.1344941447601555
_OF_BOOSTING = ((-2.5, 0.0), (0.7, 2.0), (0.3, 1.0), (0.1, 1.0), (0.0, 2.0))
# Where the six inputs of Hartmann6 are among twenty.
_COLUMNS = [1, 4, 8, 11, 15, 18]


@dataclass(frozen=True)
class Function:
    """A function over a box.

    Args:
        name: As it is called in the tables.
        kind: The name of one of BoTorch, or a function of ``n x d`` points.
        bounds: A pair of lower and upper bound for each input. Where the maximum is the centre of
            BoTorch's box, where a method may look by chance, they are others.
        largest: Its largest value over the box, or the largest one known; None for the one that
            BoTorch says.
        spread: Its range, where each value takes long.
    """

    name: str
    kind: str | Callable[[Tensor], Tensor]
    bounds: tuple[tuple[float, float], ...]
    largest: float | None = None
    spread: float | None = None

    def __call__(self, X: Tensor) -> Tensor:
        """The ``n`` values of ``n x d`` points, without noise."""
        return self._made(X)

    @property
    def evaluations(self) -> int:
        """How many a run has."""
        dim = len(self.bounds)
        return 40 if dim <= 2 else 50 if dim <= 6 else 60

    @cached_property
    def best(self) -> float:
        """The largest value over the box, or the largest one known."""
        return float(self._made.optimal_value) if self.largest is None else self.largest

    @cached_property
    def width(self) -> float:
        """The largest minus the least value of a Sobol sample of the box: what is called the
        range."""
        if self.spread is not None:
            return self.spread
        import torch
        from botorch.utils.sampling import draw_sobol_samples

        box = torch.tensor(self.bounds, dtype=torch.float64).T
        values = self(draw_sobol_samples(box, _NUM_SOBOL_POINTS, 1, seed=0).squeeze(1))
        return float(values.max() - values.min())

    def regret(self, value: float) -> float:
        """The regret of a value without noise, at least the floor."""
        return max(self.best - value, _FLOOR * self.width)

    @cached_property
    def _made(self) -> Any:
        return self.kind if callable(self.kind) else _of_botorch(self.kind, self.bounds)


def _of_botorch(kind: str, bounds: tuple[tuple[float, float], ...]) -> Any:
    import torch
    from botorch import test_functions

    options: dict[str, Any] = {} if kind in _OF_ONE_SIZE else {"dim": len(bounds)}
    negate = kind != "Cosine8"  # the others are to be minimised
    made = getattr(test_functions, kind)(negate=negate, bounds=list(bounds), **options)
    return made.to(torch.float64)


def _embedded(X: Tensor) -> Tensor:
    return FUNCTIONS["Hartmann6"](X[:, _COLUMNS])


def _schwefel(X: Tensor) -> Tensor:
    return (X * X.abs().sqrt().sin()).sum(dim=-1) - 418.9828872724338 * X.shape[-1]


def _alpine(X: Tensor) -> Tensor:
    return -(X * X.sin() + 0.1 * X).abs().sum(dim=-1)


def _zakharov(X: Tensor) -> Tensor:
    weighted = sum(0.5 * (i + 1) * x for i, x in enumerate(X.unbind(dim=-1)))
    return -(X.square().sum(dim=-1) + weighted**2 + weighted**4)


def _trid(X: Tensor) -> Tensor:
    return (X[:, 1:] * X[:, :-1]).sum(dim=-1) - (X - 1).square().sum(dim=-1)


def _goldstein_price(X: Tensor) -> Tensor:
    x, y = X.unbind(dim=-1)
    first = 19 - 14 * x + 3 * x**2 - 14 * y + 6 * x * y + 3 * y**2
    second = 18 - 32 * x + 12 * x**2 + 48 * y - 36 * x * y + 27 * y**2
    return -(1 + (x + y + 1) ** 2 * first) * (30 + (2 * x - 3 * y) ** 2 * second)


def _svc(X: Tensor) -> Tensor:
    from benchmarks.measured.svc import SVCTuning

    return SVCTuning()(X)


def _boosting(X: Tensor) -> Tensor:
    """Minus the cross-validated error of gradient-boosted trees on scikit-learn's diabetes data:
    the root mean squared error, of three fixed folds and a fixed seed. About 0.06 s a point.

    A point is log10 of the learning rate, log10 of the number of trees, the share of the data and
    the share of the inputs that a tree sees, and log10 of the least number of data in a leaf.
    """
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_score

    def score(x: list[float]) -> float:
        trees = GradientBoostingRegressor(
            learning_rate=10 ** x[0],
            n_estimators=round(10 ** x[1]),
            subsample=x[2],
            max_features=x[3],
            min_samples_leaf=round(10 ** x[4]),
            random_state=0,
        )
        folds = KFold(3, shuffle=True, random_state=0)
        scoring = "neg_root_mean_squared_error"
        return float(cross_val_score(trees, *data, cv=folds, scoring=scoring).mean())

    data = load_diabetes(return_X_y=True)
    return X.new_tensor([score(x) for x in X.tolist()])


def _cube(dim: int, lower: float, upper: float) -> tuple[tuple[float, float], ...]:
    return ((lower, upper),) * dim


FUNCTIONS = {
    function.name: function
    for function in (
        Function("Branin", "Branin", ((-5.0, 10.0), (0.0, 15.0))),
        Function("Hartmann6", "Hartmann", _cube(6, 0.0, 1.0)),
        Function("Ackley5", "Ackley", _cube(5, -5.0, 10.0)),
        Function("Levy4", "Levy", _cube(4, -10.0, 10.0)),
        Function("Rosenbrock4", "Rosenbrock", _cube(4, -5.0, 10.0)),
        Function("Hartmann6 in 20", _embedded, _cube(20, 0.0, 1.0), 3.32237),
        Function("Six-hump camel", "SixHumpCamel", ((-3.0, 3.0), (-2.0, 2.0))),
        Function("Rosenbrock2", "Rosenbrock", _cube(2, -5.0, 10.0)),
        Function("Goldstein-Price", _goldstein_price, _cube(2, -2.0, 2.0), -3.0),
        Function("Ackley2", "Ackley", _cube(2, -5.0, 10.0)),
        Function("Hartmann3", "Hartmann", _cube(3, 0.0, 1.0)),
        Function("Hartmann4", "Hartmann", _cube(4, 0.0, 1.0), _OF_HARTMANN4),
        Function("Styblinski-Tang4", "StyblinskiTang", _cube(4, -5.0, 5.0)),
        Function("Griewank5", "Griewank", _cube(5, -400.0, 600.0)),
        Function("Michalewicz5", "Michalewicz", _cube(5, 0.0, math.pi)),
        Function("Cosine8", "Cosine8", _cube(8, -0.7, 1.0)),
        Function("Levy10", "Levy", _cube(10, -10.0, 10.0)),
        Function("Ackley10", "Ackley", _cube(10, -5.0, 10.0)),
        Function("Ackley20", "Ackley", _cube(20, -5.0, 10.0)),
        # The largest values are those that random and then local searches found.
        Function("SVC", _svc, ((-2.0, 4.0), (-6.0, 1.0)), 0.9859338612016767, 0.3567613724576928),
        Function("Boosting", _boosting, _OF_BOOSTING, -54.66113797321134, 111.60176596007335),
        Function("Beale", "Beale", _cube(2, -4.5, 4.5)),
        Function("Three-hump camel", "ThreeHumpCamel", _cube(2, -4.0, 5.0)),
        Function("DropWave", "DropWave", _cube(2, -4.0, 5.12)),
        Function("Schwefel2", _schwefel, _cube(2, -500.0, 500.0), 0.0),
        Function("Alpine3", _alpine, _cube(3, -8.0, 11.0), 0.0),
        Function("Powell4", "Powell", _cube(4, -4.0, 5.0)),
        Function("Dixon-Price4", "DixonPrice", _cube(4, -10.0, 10.0)),
        Function("Shekel4", "Shekel", _cube(4, 0.0, 10.0)),
        Function("Zakharov5", _zakharov, _cube(5, -5.0, 10.0), 0.0),
        Function("Trid6", _trid, _cube(6, -36.0, 36.0), 50.0),
    )
}


@dataclass(frozen=True)
class _Noisy:
    """The regret of a function, seen with noise.

    Args:
        function: Of which it is.
        noise: Its standard deviation, in ranges.
    """

    function: Function
    noise: float

    def true(self, params: Params) -> float:
        """The regret."""
        import torch

        x = torch.tensor([list(params.values())], dtype=torch.float64)
        return self.function.regret(float(self.function(x)))

    def seen(self, params: Params, seed: int) -> float:
        """One evaluation."""
        noise = self.noise * self.function.width * random.Random(seed).gauss()
        return self.true(params) + noise


def _task(function: Function, noise: float) -> Task:
    make: Callable[[], Objective] = partial(_Noisy, function, noise)
    sides = tuple(real(f"x{i}", *ends) for i, ends in enumerate(function.bounds))
    name = f"{function.name} with {100 * noise:g} % noise"
    kind: Kind = "noisy" if function.spread is None else "tuning"
    return Task(
        name, kind, "develop", sides, function.evaluations, make, 0.0, environment="library"
    )


TASKS = tuple(_task(function, noise) for noise in NOISES for function in FUNCTIONS.values())

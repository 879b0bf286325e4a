"""Tasks of many inputs with many evaluations. They are a half of their own, played by the peers
that are made for them. The default was developed on other functions, but its first points were
changed after its first runs on these tasks.

Four functions, whose optima are not in the centre: Rosenbrock's (BBOB f8), Ackley's, Levy's, and
Hartmann's of six of 50 inputs. Two tasks of learners, on data of which all inputs are kept: a Lasso
with a penalty for each of the 64 features of the diabetes data (ten inputs, their squares and
products: Efron et al. 2004; the kind of task of LassoBench, Sehic et al. 2022), and a support
vector regression with a weight for each input of star98.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks.real.spaces import Parameter, Params, real
from benchmarks.real.tasks.bbob import exact
from benchmarks.real.tasks.task import Exact, Kind, Objective, Task
from benchmarks.real.tasks.tuning import standardised

# Evaluations of a run, and the seconds of one core after which it ends.
_BUDGETS = ((300, 3600.0), (1000, 7200.0))
_NUM_FOLDS = 5

Function = Callable[[Sequence[float]], float]


def ackley(z: Sequence[float]) -> float:
    """Ackley's function, with its minimum 0 at 0."""
    square = sum(x * x for x in z) / len(z)
    wave = sum(math.cos(2 * math.pi * x) for x in z) / len(z)
    return 20 - 20 * math.exp(-0.2 * math.sqrt(square)) + math.e - math.exp(wave)


def levy(z: Sequence[float]) -> float:
    """Levy's function, with its minimum 0 at 0."""
    w = [1 + x / 4 for x in z]
    middle = sum((x - 1) ** 2 * (1 + 10 * math.sin(math.pi * x + 1) ** 2) for x in w[:-1])
    last = (w[-1] - 1) ** 2 * (1 + math.sin(2 * math.pi * w[-1]) ** 2)
    return math.sin(math.pi * w[0]) ** 2 + middle + last


_HEIGHTS = (1.0, 1.2, 3.0, 3.2)
_WEIGHTS = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
_CENTERS = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)
_HARTMANN = 3.322368011391339


def hartmann(x: Sequence[float]) -> float:
    """Hartmann's function of six inputs in [0, 1], plus its largest value."""
    hills = (
        height
        * math.exp(-sum(a * (u - c) ** 2 for a, u, c in zip(weights, x, center, strict=True)))
        for height, weights, center in zip(_HEIGHTS, _WEIGHTS, _CENTERS, strict=True)
    )
    return _HARTMANN - sum(hills)


def _shifted(function: Function, dim: int, lower: float, upper: float) -> Objective:
    """The optimum is in the middle four fifths of each side."""
    rng = random.Random(dim)
    best = [lower + (upper - lower) * (0.1 + 0.8 * rng.random()) for _ in range(dim)]

    def loss(params: Params) -> float:
        return function([x - b for x, b in zip(params.values(), best, strict=True)])

    return Exact(loss)


def _embedded(function: Function, num: int, dim: int) -> Objective:
    """A function of some of the inputs."""
    rows = sorted(random.Random(dim).sample(range(dim), num))

    def loss(params: Params) -> float:
        x = list(params.values())
        return function([x[row] for row in rows])

    return Exact(loss)


def _lasso() -> Objective:
    import numpy as np
    from sklearn.linear_model import Lasso
    from sklearn.preprocessing import scale

    X, y = standardised("diabetes")
    # The sex has two values: its square says nothing.
    pairs = [(i, j) for i in range(10) for j in range(i, 10) if (i, j) != (1, 1)]
    products = np.stack([X[:, i] * X[:, j] for i, j in pairs], axis=1)
    X = scale(np.concatenate([X, products], axis=1))

    def loss(params: Params) -> float:
        learner = Lasso(alpha=1.0, max_iter=5000)
        return _cross_validated(learner, X / np.array(list(params.values())), y)

    return Exact(loss)


def _svr() -> Objective:
    import numpy as np
    from sklearn.svm import SVR

    X, y = standardised("star98")
    X = X[:, X.std(axis=0) > 0]

    def loss(params: Params) -> float:
        C, epsilon, *weights = params.values()
        return _cross_validated(SVR(C=C, epsilon=epsilon, gamma=1.0), X * np.array(weights), y)

    return Exact(loss)


def _cross_validated(learner: Any, X: Any, y: Any) -> float:
    """The mean squared error."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import KFold, cross_val_score

    folds = KFold(_NUM_FOLDS, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = cross_val_score(learner, X, y, scoring="neg_mean_squared_error", cv=folds)
    return -float(scores.mean())


def _box(dim: int, lower: float, upper: float, **more: Any) -> tuple[Parameter, ...]:
    return tuple(real(f"x{i}", lower, upper, **more) for i in range(dim))


def _tasks(
    name: str,
    kind: Kind,
    parameters: tuple[Parameter, ...],
    make: Callable[[], Objective],
    least: float | None = 0.0,
) -> list[Task]:
    return [
        Task(
            f"{name}, d = {len(parameters)}, {evaluations} evaluations",
            kind,
            "large",
            parameters,
            evaluations,
            make,
            least,
            seconds=seconds,
        )
        for evaluations, seconds in _BUDGETS
    ]


_SVR_SPACE = (
    real("C", 1e-2, 1e3, log=True),
    real("epsilon", 1e-3, 1.0, log=True),
    *_box(20, 1e-3, 1.0, log=True),
)

TASKS = (
    *_tasks("BBOB f8", "smooth", _box(20, -5.0, 5.0), partial(exact, "bbob", 8, 20)),
    *_tasks(
        "Ackley",
        "multimodal",
        _box(50, -32.768, 32.768),
        partial(_shifted, ackley, 50, -32.768, 32.768),
    ),
    *_tasks(
        "Levy", "multimodal", _box(100, -10.0, 10.0), partial(_shifted, levy, 100, -10.0, 10.0)
    ),
    *_tasks("Hartmann of 6", "multimodal", _box(50, 0.0, 1.0), partial(_embedded, hartmann, 6, 50)),
    *_tasks("Lasso on diabetes", "tuning", _box(64, 1e-3, 1.0, log=True), _lasso, None),
    *_tasks("SVR on star98", "tuning", _SVR_SPACE, _svr, None),
)

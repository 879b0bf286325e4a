"""Sliding ascent against constrained maxima that are known."""

import pytest
import torch

from botorch_ext import Box
from botorch_ext.search.objectives import FunctionObjective
from botorch_ext.search.sliding import sliding_ascent

BOX = Box([[2.0, -3.0], [5.0, -1.0]])
CENTER = [3.0, -2.0]
SCALE = torch.tensor([1.5, 1.0], dtype=torch.float64)


def hill(X):
    """A smooth hill with its top outside the box."""
    return 3 + (-0.1 * (X - X.new_tensor([6.0, 0.5])).square().sum(dim=-1))


def disc(X):
    return 0.9 - (X - X.new_tensor(CENTER)).norm(dim=-1)


def below(X):
    return -1.8 - X[:, 1] + 0.2 * torch.sin(3 * X[:, 0])


def climb(constraints, starts, objective=hill, num_steps=10):
    met = [FunctionObjective(constraint) for constraint in constraints]

    def feasible(X):
        return torch.stack([m.value(X) >= 0 for m in met]).all(dim=0)

    return sliding_ascent(
        FunctionObjective(objective),
        [m.value_and_gradient for m in met],
        feasible if met else None,
        BOX,
        torch.tensor(starts, dtype=torch.float64),
        SCALE,
        num_steps,
    )


def dense_maximum(constraints, objective=hill):
    """The largest value on a fine grid, refined twice around its best point."""
    lower, upper = BOX.lower, BOX.upper
    for _ in range(4):
        axes = [
            torch.linspace(float(a), float(b), 801).double()
            for a, b in zip(lower, upper, strict=True)
        ]
        X = torch.cartesian_prod(*axes)
        for constraint in constraints:
            X = X[constraint(X) >= 0]
        best = X[objective(X).argmax()]
        width = (upper - lower) / 40
        lower, upper = (best - width).maximum(BOX.lower), (best + width).minimum(BOX.upper)
    return float(objective(X).max())


CASES = {
    "the box alone": [],
    "one constraint": [disc],
    "the tip of two": [disc, below],
    "a tip on a face": [lambda X: X[:, 0] - 2.2, lambda X: -1.4 - X[:, 1] + 0.1 * X[:, 0].sin()],
}


@pytest.mark.parametrize("case", CASES)
def test_the_constrained_maximum_is_reached(case):
    constraints = CASES[case]
    starts = [[2.6, -2.4], [3.2, -2.6], [2.5, -2.3]]
    ends, values = climb(constraints, starts)
    best = dense_maximum(constraints)
    assert float(values.max()) == pytest.approx(best, rel=1e-5)
    assert torch.equal(values, hill(ends))
    assert bool(BOX.contains(ends).all())
    for constraint in constraints:
        assert bool((constraint(ends) >= 0).all())
    assert bool((values >= hill(torch.tensor(starts, dtype=torch.float64))).all())


def test_a_climb_does_not_end_where_whole_steps_would_leave():
    # All whole steps leave a disc much smaller than the scale: without parts of them it is .94.
    def small(X):
        return 0.1 - (X - X.new_tensor(CENTER)).norm(dim=-1)

    _, values = climb([small], [[3.0, -2.025]], num_steps=8)
    assert float(values.max()) >= 0.999 * dense_maximum([small])
    # Where nothing else is feasible, a start stays.
    ends, _ = climb([lambda X: -(X - X.new_tensor(CENTER)).abs().sum(dim=-1)], [CENTER])
    assert ends.tolist() == [CENTER]

"""Columns of steps: what a box with them has, against the definition in decimals."""

import itertools
import random
from decimal import Decimal

import pytest
import torch

import botorch_ext as bx
from botorch_ext.domains.steps import Steps
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.search.box import maximize_on_box
from botorch_ext.search.objectives import FunctionObjective

BOUNDS = [(20.0, 80.0), (-0.35, 1.2), (1.0, 9.0), (0.2, 30.0)]


def stepped(**options):
    given = {"steps": {0: 0.5, 1: 0.1, 3: 0.2}, "integer": [2], "log": [3]}
    return bx.Box(BOUNDS, **{**given, **options})


def of_decimals(low, high, step):
    """All values of a column as Python reads their decimals."""
    low, high, step = (Decimal(repr(number)) for number in (low, high, step))
    return [float(low + k * step) for k in range(int((high - low) / step) + 1)]


@pytest.mark.parametrize("seed", range(50))
def test_values_are_what_python_reads_from_decimals(seed):
    draw = random.Random(seed)
    digits = draw.randint(0, 6)
    step = round(draw.choice((1, 2, 5, 3, 25)) * 10.0**-digits, digits)
    low = round(draw.uniform(-50, 50), draw.randint(0, 4))
    high = low + step * draw.uniform(1, 300)
    steps, expected = Steps.between(low, high, step), of_decimals(low, high, step)
    assert [steps.value(k) for k in range(steps.num + 1)] == expected
    assert [round(steps.place(number)) for number in expected] == list(range(len(expected)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_samples_have_steps_alone(dtype):
    box = stepped(dtype=dtype)
    values = [of_decimals(*BOUNDS[0], 0.5), of_decimals(*BOUNDS[1], 0.1), range(1, 10)]
    values.append(of_decimals(*BOUNDS[3], 0.2))
    X = box.sample(3000, seed=1)
    for j, of_column in enumerate(values):
        allowed = torch.tensor([*of_column], dtype=dtype)
        assert torch.equal(X[:, j].unique(), allowed[torch.isin(allowed, X[:, j])])
        assert torch.equal(box._scales.values(j), allowed)
        assert box._scales.num_values(j) == len(allowed)
    assert torch.equal(box.from_unit(box.to_unit(X)), X)
    assert bool(box.contains(X).all())
    # Logarithmic steps: as many points below the geometric middle as above.
    assert abs(float((X[:, 3] < (0.1 * 30.1) ** 0.5).double().mean()) - 0.5) < 0.05


def test_what_can_be_read_of_a_box_with_steps():
    box = stepped()
    assert box.steps == {0: 0.5, 1: 0.1, 3: 0.2} and box.integer == (2,)
    assert box.distances == {2: 1.0, 0: 0.5, 1: 0.1, 3: 0.2}
    assert box.stepped == (0, 1, 2, 3) and not box.is_filled and not box.is_plain
    assert box.ends.tolist() == [[20.0, -0.35, 1.0, 0.2], [80.0, 1.15, 9.0, 30.0]]
    assert "steps={0: 0.5, 1: 0.1, 3: 0.2}" in repr(box)
    assert box.to(torch.float32).steps == box.steps
    free = box.without_steps()
    assert not free.stepped and free.log == (3,)
    assert free.lower.tolist() == pytest.approx([19.75, -0.4, 0.5, 0.1])
    assert free.upper.tolist() == pytest.approx([80.25, 1.2, 9.5, 30.1])


def test_a_number_that_misses_a_step_by_rounding_is_that_step():
    box = bx.Box([(0.0, 1.0), (5.0, 6.0)], steps={0: 0.1})
    X = box.require_contains([[0.1 * 3, 5.2], [1 - 1e-12, 5.3]])
    assert X.tolist() == [[0.3, 5.2], [1.0, 5.3]]
    assert not bool(box.contains([0.3001, 5.2]))
    with pytest.raises(OutsideDomainError, match=r"have 0\.0 and steps of 0\.1 in column 0"):
        box.require_contains([0.25, 5.2])


def test_whole_steps_are_whole_numbers():
    with_steps = bx.Box([(2.0, 9.0), (-3.0, 40.0)], steps={0: 1.0, 1: 1})
    whole = bx.Box([(2.0, 9.0), (-3.0, 40.0)], integer=[0, 1])
    U = torch.rand(500, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    X = whole.from_unit(U)
    assert torch.equal(with_steps.from_unit(U), X)
    assert torch.equal(with_steps.to_unit(X), whole.to_unit(X))
    assert torch.equal(with_steps.listed, whole.listed)


@pytest.mark.parametrize("seed", range(8))
def test_constraints_and_conditions_hold_with_steps(seed):
    draw = random.Random(seed)
    low, step = round(draw.uniform(-9, 9), 2), draw.choice((0.05, 0.3, 1.5, 0.7))
    bounds = [(low, low + 4 * step), (0.5, 2.0), (0.0, 3.0)]
    b = draw.uniform(low + 0.5, low + 2)
    box = bx.Box(
        bounds,
        steps={0: step, 1: 0.25},
        constraints=([[1.0, 1.0, 0.0]], [b]) if b > low + 0.5 else None,
        conditions={2: (1, [0.5, 1.25])} if seed % 2 else None,
    )
    grid = [of_decimals(*bounds[0], step), of_decimals(*bounds[1], 0.25)]
    allowed = {pair for pair in itertools.product(*grid) if sum(pair) <= b + 1e-9}
    X = box.sample(300, seed)
    assert {(x[0], x[1]) for x in X.tolist()} <= allowed
    near = box.nearby(box.lower + (box.upper - box.lower) * torch.rand(50, 3).double(), X[:50])
    assert {(x[0], x[1]) for x in near.tolist()} <= allowed
    if seed % 2:
        off = ~torch.isin(X[:, 1], torch.tensor([0.5, 1.25], dtype=torch.float64))
        assert bool((X[off, 2] == 1.5).all())
        assert torch.equal(box.active(X)[:, 2], ~off)


@pytest.mark.parametrize("slope", [-1.0, 1.0, 0.3])
def test_a_search_finds_the_best_of_all_steps(slope):
    box = bx.Box([(20.0, 30.0), (0.1, 0.9), (-5.0, 0.0)], steps={0: 0.5, 1: 0.05, 2: 0.25})
    assert box.listed is None
    grid = torch.cartesian_prod(*(box._scales.values(j) for j in range(3)))

    def function(X):
        quadratic = -((X[..., 0] - 26.3) ** 2) - 40 * (X[..., 1] - 0.33) ** 2 - X[..., 2] ** 2
        return quadratic + slope * X[..., 0] * X[..., 1] - X[..., 0] * X[..., 2] / 5

    x, value = maximize_on_box(FunctionObjective(function), box, seed=0)
    assert float(value) == float(function(grid).max())
    assert bool(box.contains(x).all())


def test_impossible_steps_are_refused():
    for steps, message in (
        ({4: 0.1}, "steps must name columns from 0 to 3"),
        ({0: 0.0}, "steps of column 0: step must be positive and finite, got 0.0"),
        ({0: 1e-30}, "steps of column 0: step must be larger"),
        ({0: "a"}, "step of column 0 must be one number"),
        ({2: 0.5}, "steps must not name a column that integer names, got column 2"),
        ({3: 0.4}, "steps of column 3 must be less than twice its lower bound on a logarithmic"),
        ([0], "steps must map columns to numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            stepped(steps=steps)
    with pytest.raises(
        ValueError, match="steps must not name a column that categories name, got column 0"
    ):
        stepped(steps={0: 0.5}, categories={0: [20, 21]})
    with pytest.raises(ValueError, match="conditions of column 1 must be values of column 0"):
        stepped(conditions={1: (0, [20.25])})

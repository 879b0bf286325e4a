"""Batches planned in step: on the CPU, by dense algebra and beside those of the other form; on a
device, without waiting for it."""

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.common.pretend_cuda import PretendCUDA, no_stops
from botorch_ext import Box, KernelGP, Region, plan
from botorch_ext.regions import planning_in_step
from botorch_ext.regions.planning_in_step import _Batch, cells, plan_in_step
from tests.helpers import tolerance
from tests.regions.shared import two_rounds
from tests.regions.test_planning import (
    MODELS,
    NOISE,
    TOL,
    box,
    cut_disc,
    data,
    dense_std,
    discs,
    gain_of,
    kernel,
    model_with,
    points_of_the_cut_disc,
)


def planned(region, model, q, seed=0, population=None):
    """``q x d`` points and their standard deviations, chosen in step."""
    if population is None:
        population = region.population(2048, seed).points
    with torch.no_grad():
        X, variance = plan_in_step(region, model, q, population)
    return X, variance.clamp_min(0).sqrt()


@pytest.mark.parametrize("name", MODELS)
def test_every_path_agrees_with_dense_variances(name):
    model, k, seen, unit = MODELS[name]()
    if not isinstance(model, KernelGP):
        model = KernelGP.from_botorch(model)
    X, std = planned(Region(box()), model, 20)
    assert bool(box().contains(X).all())
    screen = unit(torch.cat([box().sample(512, seed=1), box().bounds]))
    for x, s in zip(X, std, strict=True):
        scores = dense_std(k, seen, torch.cat([unit(x)[None], screen]))
        assert_close(s, scores[0], **TOL)
        assert scores.max() <= (1 + 1e-3) * scores[0]
        seen = torch.cat([seen, unit(x)[None]])


@pytest.mark.parametrize("kind", ["rbf", "matern"])
def test_nearly_every_point_of_a_region_has_nearly_the_largest_std(kind):
    # Climbs of one step for each point are not always at their end.
    region, screen, short = cut_disc(), points_of_the_cut_disc(), []
    for seed in range(3):
        X, std = planned(region, KernelGP(kernel(kind), NOISE), 12, seed)
        assert bool(region.contains(X).all())
        for i in range(1, len(X)):
            assert_close(std[i], dense_std(kernel(kind), X[:i], X[i : i + 1])[0], **TOL)
            largest = max(dense_std(kernel(kind), X[:i], Z).max() for Z in screen.split(1000))
            short.append(float(1 - std[i] / largest))
    assert max(short) <= 1e-3
    assert sum(s > 1e-4 for s in short) <= len(short) // 20


REGIONS = {
    "box": lambda: Region(box()),
    "two discs": discs,
    "two rounds": lambda: two_rounds()[0],
}


@pytest.mark.parametrize("name", REGIONS)
def test_batches_are_as_good_as_those_of_the_other_form(name):
    region, model = REGIONS[name](), model_with(4)
    for seed in range(3):
        X, std = planned(region, model, 30, seed)
        assert bool(region.contains(X).all())
        gain = 0.5 * (std.square() / NOISE).log1p().sum().item()
        assert gain == pytest.approx(gain_of(kernel(), data(4)[0], X), rel=1e-8)
        assert gain >= (1 - 1e-3) * plan(region, model, 30, seed=seed).information_gain


def test_climbers_never_come_lower():
    region, model = two_rounds()[0], model_with(9)
    batch = _Batch(region, model, 20, region.population(300, 1).points)
    batch.look_at(29)
    with torch.no_grad():
        for _ in range(20):
            rows = batch.variance.view(batch.num_cells, -1).argmax(dim=1) + batch.corner
            before = batch.variances.value(batch.population[rows])
            ends, values, columns = batch._climbed(batch.population[rows])
            assert bool((values >= before).all())
            assert bool(region.contains(ends).all())
            expected = batch.variances.value_and_columns(ends)
            assert_close(values, expected[0], **TOL)
            assert_close(columns, expected[1], **TOL)
            batch.step()
            # What is kept for the population is what it is worth now.
            assert_close(batch.variance, batch.variances.value(batch.population), **TOL)


@pytest.mark.parametrize("num_data", [0, 9])
def test_where_shapes_change_makes_no_difference(num_data, monkeypatch):
    region, model = Region(box()), model_with(num_data)
    X, std = planned(region, model, 20)
    monkeypatch.setattr(planning_in_step, "_BUCKET", 7)
    again = planned(region, model, 20)
    assert_close(again[0], X, rtol=0, atol=1e-6)  # to rounding, the same climbs
    assert_close(again[1], std, **TOL)


def test_the_first_point_of_an_empty_model_is_the_first_of_the_population():
    points = box().sample(100, seed=1)
    X, std = planned(Region(box()), KernelGP(kernel(), NOISE), 1, population=points)
    assert torch.equal(X, points[:1])
    assert std.tolist() == [1.0]


@pytest.mark.parametrize("num", [1, 2, 3, 65])
def test_few_points_to_start_from(num):
    points = box().sample(num, seed=1)
    X, std = planned(Region(box()), model_with(9), 6, population=points)
    seen = data(9)[0]
    assert std[0] >= dense_std(kernel(), seen, points).max()
    for x, s in zip(X, std, strict=True):
        assert_close(s, dense_std(kernel(), seen, x[None])[0], **TOL)
        seen = torch.cat([seen, x[None]])


class _Operations(TorchDispatchMode):
    """What is called, with which shapes and strides."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        tensors = [x for x in args if isinstance(x, torch.Tensor)]
        self.seen.append((str(func), [(x.shape, x.stride()) for x in tensors]))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("with_constraints", [False, True])
def test_every_step_is_the_same_operations_and_waits_for_nothing(with_constraints):
    with PretendCUDA(), torch.no_grad():
        region, _ = two_rounds("cuda")
        region = region if with_constraints else Region(region.box)
        model = KernelGP(kernel().to("cuda"), NOISE, device="cuda")
        model.add(*(part.to("cuda") for part in data(9)))
        batch = _Batch(region, model, 6, region.population(300, 1).points)
        assert batch.landscape.is_recordable
        batch.look_at(15)
        steps = []
        for _ in range(6):
            with no_stops("a step"), _Operations() as operations:
                batch.step()
            steps.append(operations.seen)
    assert len(steps[0]) > 50
    assert all(step == steps[0] for step in steps)


def test_what_a_function_of_python_constrains_is_not_recorded():
    region = discs()
    assert not _Batch(
        region, model_with(9), 6, region.population(300, 1).points
    ).landscape.is_recordable


def test_a_batch_on_devices(device):
    region, _ = two_rounds(device)
    model = KernelGP(kernel().to(device), NOISE, device=device)
    model.add(*(part.to(device) for part in data(9)))
    batch = plan(region, model, 8, seed=2)
    assert batch.X.device.type == device.type
    assert bool(region.contains(batch.X).all())
    here, seen = batch.X.cpu(), data(9)[0]
    for x, s in zip(here, batch.std.cpu(), strict=True):
        assert_close(s, dense_std(kernel(), seen, x[None])[0], **TOL)
        seen = torch.cat([seen, x[None]])


def test_float32():
    small = Box([[2.0, -3.0], [5.0, -1.5]], dtype=torch.float32)
    model = KernelGP(kernel(), NOISE, dtype=torch.float32)
    X, std = planned(Region(small), model, 10)
    assert X.dtype == torch.float32 and bool(small.contains(X).all())
    wide, seen = X.double(), X[:0].double()
    for x, s in zip(wide, std, strict=True):
        expected = dense_std(kernel(), seen, x[None])[0]
        assert_close(s.double(), expected, **tolerance(torch.float32))
        seen = torch.cat([seen, x[None]])


@pytest.mark.parametrize(("m", "num", "shape"), [(64, 8, (8, 8)), (50, 8, (8, 7)), (3, 8, (2, 2))])
def test_cells_hold_neighbours_and_every_point(m, num, shape):
    X = box().sample(m, seed=2)
    rows = cells(X, num)
    assert rows.shape == shape
    assert set(rows.flatten().tolist()) == set(range(m))
    # Halved along the first coordinate, then along the second.
    first, second = X[rows[: len(rows) // 2], 0], X[rows[len(rows) // 2 :], 0]
    assert first.max() <= second.min()
    if num == 8 and m > 3:
        assert X[rows[:2], 1].max() <= X[rows[2:4], 1].min()

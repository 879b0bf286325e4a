import math
import pickle
import time

import numpy as np
import pytest
import torch
from torch.quasirandom import SobolEngine

from botorch_ext.domains import Box, FiniteSet, finite_set
from botorch_ext.exceptions import OutsideDomainError

LOWER, UPPER = [2.0, -3.0, 100.0], [5.0, -1.0, 100.5]
NAN, INF = math.nan, math.inf


def grid(dtype=torch.float64, device="cpu"):
    x = torch.linspace(2.0, 5.0, 4, dtype=dtype)
    y = torch.linspace(-3.0, -1.0, 3, dtype=dtype)
    return FiniteSet(torch.cartesian_prod(x, y), device=device)


# --- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([[0.0, 1.0]], r"bounds must have shape \(2, d\).*got \(1, 2\)"),
        ([[0.0], [1.0], [2.0]], r"bounds must have shape \(2, d\).*got \(3, 1\)"),
        ([0.0, 1.0], r"bounds must have shape \(2, d\).*got \(2,\)"),
        ([[], []], r"bounds must have shape \(2, d\).*got \(2, 0\)"),
        (torch.zeros(1, 2, 3), r"bounds must have shape \(2, d\).*got \(1, 2, 3\)"),
        ([[2.0, -1.0], [5.0, -3.0]], r"bounds must have lower < upper .*got \[\[2.0, -1.0\]"),
        ([[2.0, -1.0], [5.0, -1.0]], "bounds must have lower < upper"),
        ([[NAN, 0.0], [1.0, 1.0]], "bounds must be finite, got .*nan"),
        ([[0.0, -INF], [1.0, 1.0]], "bounds must be finite, got .*-inf"),
        ([[0.0, 1.0], [2.0]], r"bounds must be .* one shape, got \[\[0.0, 1.0\], \[2.0\]\]"),
        ("unit", "bounds must be .* numbers .*got 'unit'"),
        (None, "bounds must be .* numbers .*got None"),
    ],
)
def test_a_bad_box_is_refused(bounds, message):
    with pytest.raises(ValueError, match=message):
        Box(bounds)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([2.0, 3.0], r"points must have shape \(N, d\).*got \(2,\)"),
        (torch.zeros(0, 2), r"points must have shape \(N, d\) with N, d >= 1, got \(0, 2\)"),
        (torch.zeros(3, 0), r"points must have shape .*got \(3, 0\)"),
        (torch.zeros(2, 3, 1), r"points must have shape .*got \(2, 3, 1\)"),
        ([[2.0, NAN]], "points must be finite"),
        ([[2.0, INF]], "points must be finite"),
        ([[2.0, 1.0], [3.0]], "points must be .* one shape"),
        ({"x": 1.0}, "points must be .* numbers"),
    ],
)
def test_a_bad_finite_set_is_refused(points, message):
    with pytest.raises(ValueError, match=message):
        FiniteSet(points)


@pytest.mark.parametrize("kind", [Box, FiniteSet])
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_a_domain_is_of_floating_point_numbers(kind, dtype):
    with pytest.raises(ValueError, match=f"dtype must be a floating-point dtype, .*got {dtype}"):
        kind([[0.0], [1.0]], dtype=dtype)


def test_a_box_too_thin_for_float32_is_refused_on_the_way_there():
    box = Box([(1.0, 1.0 + 1e-9), (5.0, 6.0)])
    with pytest.raises(ValueError, match="bounds must have lower < upper"):
        box.to(dtype=torch.float32)


@pytest.mark.parametrize("domain", [Box([[2.0, -3.0], [5.0, -1.0]]), grid()], ids=["box", "set"])
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([2.0, -3.0, 1.0], r"X must have shape \(n, 2\) or \(2,\), got \(1, 3\)"),
        (torch.zeros(4, 1).double(), r"X must have shape .*got \(4, 1\)"),
        (torch.zeros(1, 4, 2).double(), r"X must have shape .*got \(1, 4, 2\)"),
        (3.0, r"X must have shape .*got \(\)"),
        ([[2.0, NAN]], "X must be finite"),
        ([[-INF, -3.0]], "X must be finite"),
        ([[2.0, -3.0], [2.0]], "X must be a tensor or nested numbers of one shape"),
        (torch.tensor([2.0, -3.0]), "X must be torch.float64 on cpu, got torch.float32 on cpu"),
        (torch.tensor([True, False]), "X must be real numbers, got torch.bool"),
    ],
)
def test_bad_points_are_refused(domain, X, message):
    for method in (domain.contains, domain.require_contains):
        with pytest.raises(ValueError, match=message):
            method(X)


def test_the_name_of_the_argument_and_the_first_point_outside_are_told():
    inside = [3.0, -2.0]
    box = Box([[2.0, -3.0], [5.0, -1.0]])
    with pytest.raises(OutsideDomainError, match=r"start must lie in the box .*got \[6.5, -2.0\]"):
        box.require_contains([inside, [6.5, -2.0], [7.0, 0.0]], "start")
    with pytest.raises(OutsideDomainError, match=r"start must be one of the 12 points.*\[2.5, -2"):
        grid().require_contains([inside, [2.5, -2.0], [7.0, 0.0]], "start")
    with pytest.raises(ValueError, match=r"start must have shape \(n, 2\)"):
        box.require_contains([1.0], "start")
    for domain in (box, grid()):
        assert domain.require_contains(inside).tolist() == [inside]


# --- boxes ----------------------------------------------------------------------------------------


def test_a_box_contains_its_faces_and_nothing_beyond(device):
    box = Box([LOWER, UPPER], device=device)
    centre = (box.lower + box.upper) / 2
    assert box.contains(box.bounds).tolist() == [True, True]  # two corners
    for j in range(box.dim):
        for face, away in ((box.lower, -INF), (box.upper, INF)):
            x = centre.clone()
            x[j] = face[j]
            beyond = x.clone()
            beyond[j] = torch.nextafter(face[j], torch.full_like(face[j], away))
            assert box.contains(torch.stack([x, beyond])).tolist() == [True, False]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_sobol_points_are_inside_reproducible_and_even(dtype, device):
    # Far from the origin float32 rounds coarsely: 100.5 has steps of 8e-6.
    box = Box([LOWER, UPPER], dtype=dtype, device=device)
    X = box.sample(1024, seed=3)
    assert X.shape == (1024, 3)
    assert (X.dtype, X.device) == (box.dtype, box.device)
    assert bool(box.contains(X).all())
    assert torch.equal(X, box.sample(1024, seed=3))
    assert torch.equal(X[:10], box.sample(10, seed=3))
    assert not torch.equal(X, box.sample(1024, seed=4))
    # A scrambled Sobol net in base 2: each sixteenth of each axis holds its share.
    unit = (X.cpu().double() - torch.tensor(LOWER)) / (torch.tensor(UPPER) - torch.tensor(LOWER))
    for j in range(3):
        counts = torch.histc(unit[:, j], bins=16, min=0, max=1)
        assert counts.sum() == 1024
        assert float((counts - 64).abs().max()) <= 1  # a point on an edge may round over it
    assert box.sample(0, seed=3).shape == (0, 3)


def test_float32_rounding_never_carries_a_sample_past_a_face():
    # A box of 3 float32 numbers: most samples round to a face.
    upper = np.nextafter(np.nextafter(np.float32(7.0), np.float32(8.0)), np.float32(8.0))
    box = Box(torch.tensor([[7.0], [upper]], dtype=torch.float32))
    X = box.sample(4096, seed=0)
    assert bool(box.contains(X).all())
    assert len(X.unique()) == 3


def test_the_far_end_of_the_unit_interval_is_the_upper_face(monkeypatch):
    box = Box(torch.tensor([[-0.7], [0.1]]))
    assert box.lower + (box.upper - box.lower) > box.upper  # in float32
    monkeypatch.setattr(SobolEngine, "draw", lambda self, n, dtype: torch.ones(n, 1, dtype=dtype))
    assert torch.equal(box.sample(1, seed=0)[0], box.upper)


# --- finite sets ----------------------------------------------------------------------------------


def test_index_is_the_first_equal_row(device):
    points = torch.tensor([[2.0, -1.0], [3.0, -1.0], [2.0, -1.0], [-0.0, 1.0]]).double()
    domain = FiniteSet(points, device=device)
    X = torch.tensor([[3.0, -1.0], [2.0, -1.0], [2.0, 3.0], [0.0, 1.0]], dtype=torch.float64)
    X = X.to(device)
    expected = [next((i for i, p in enumerate(points.tolist()) if p == x), -1) for x in X.tolist()]
    assert expected == [1, 0, -1, 3]
    assert domain.index(X).tolist() == expected
    assert domain.contains(X).tolist() == [True, True, False, True]
    assert domain.index(X[0]).tolist() == [1]
    almost = X[:1].clone()
    almost[0, 0] = torch.nextafter(almost[0, 0], torch.tensor(9.0).to(almost))
    assert domain.index(almost).tolist() == [-1]
    assert domain.index(torch.empty(0, 2).to(X)).tolist() == []


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("collide", [False, True])
def test_index_of_many_points_is_the_definition(dtype, collide, device, monkeypatch):
    if collide:  # every second key is that of other points as well
        monkeypatch.setattr(finite_set, "_row_keys", lambda X: X[:, 0].long() % 2)
    g = torch.Generator().manual_seed(0)
    points = torch.randint(-3, 4, (60, 3), generator=g).to(dtype) * 0.7
    X = torch.randint(-3, 4, (80, 3), generator=g).to(dtype) * 0.7
    X = torch.cat([X, -points, points.roll(1, 0)])
    rows = [next((i for i, p in enumerate(points.tolist()) if p == x), -1) for x in X.tolist()]
    assert len({*rows}) > 40
    got = FiniteSet(points, device=device).index(X.to(device))
    assert got.tolist() == rows


def test_index_of_all_points_of_a_large_set_is_fast():
    points = torch.rand(200_000, 3, generator=torch.Generator().manual_seed(0)).double()
    domain = FiniteSet(points)
    start = time.perf_counter()
    assert torch.equal(domain.index(points), torch.arange(len(points)))
    assert time.perf_counter() - start < 5  # 0.1 s; point after point it was a minute


def test_samples_of_a_set_repeat_only_when_they_must(device):
    domain = grid(device=device)
    rows = domain.sample_indices(12, seed=1).tolist()
    assert sorted(rows) == list(range(12)) != rows
    assert domain.sample_indices(5, seed=1).tolist() == rows[:5]
    assert domain.sample_indices(12, seed=2).tolist() != rows
    many = domain.sample_indices(30, seed=1).tolist()
    assert many[:12] == rows
    assert sorted(many[12:24]) == list(range(12))
    assert len(set(many[24:])) == 6
    X = domain.sample(30, seed=1)
    assert (X.dtype, X.device) == (domain.dtype, domain.device)
    assert domain.index(X).tolist() == many
    assert domain.sample(0, seed=1).shape == (0, 2)


# --- both -----------------------------------------------------------------------------------------


def test_dtype_and_device_are_carried(device):
    numbers = [LOWER, UPPER]
    for kind in (Box, FiniteSet):
        assert kind(numbers).dtype == torch.float64
        assert kind([[0, 0], [1, 1]]).dtype == torch.float64
        assert kind(torch.tensor([[0, 0], [1, 1]])).dtype == torch.float64
        assert kind(np.array(numbers, dtype=np.float32)).dtype == torch.float64
        assert kind(torch.tensor(numbers)).dtype == torch.float32
        assert kind(torch.tensor(numbers), dtype=torch.float64).dtype == torch.float64
        domain = kind(numbers, device=device)
        assert domain.device == domain.like.device
        assert domain.device.type == device.type
        moved = domain.to(dtype=torch.float32)
        assert (type(moved), moved.dtype, moved.device) == (kind, torch.float32, domain.device)
        assert moved.to(dtype=torch.float64).like.tolist() == domain.like.tolist()  # exact here
        assert (domain.dtype, domain.dim) == (torch.float64, 3)


@pytest.mark.parametrize("kind", [Box, FiniteSet])
def test_a_domain_keeps_its_own_copy(kind):
    given = torch.tensor([LOWER, UPPER], dtype=torch.float64, requires_grad=True)
    domain = kind(given)
    with torch.no_grad():
        given += 1
    assert domain.like.tolist() == [LOWER, UPPER]
    assert not domain.like.requires_grad
    again = pickle.loads(pickle.dumps(domain))
    assert torch.equal(again.like, domain.like)
    assert repr(again) == repr(domain)

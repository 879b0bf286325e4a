"""Finite sets, and what they have in common with boxes."""

import pickle

import numpy as np
import pytest
import torch

from botorch_ext.domains import Box, FiniteSet, finite_set
from botorch_ext.domains.reading import as_box, as_domain
from botorch_ext.domains.shards import Shard
from botorch_ext.exceptions import OutsideDomainError

LOWER, UPPER = [2.0, -3.0, 100.0], [5.0, -1.0, 100.5]


def grid(dtype=torch.float64, device="cpu"):
    x = torch.linspace(2.0, 5.0, 4, dtype=dtype)
    y = torch.linspace(-3.0, -1.0, 3, dtype=dtype)
    return FiniteSet(torch.cartesian_prod(x, y), device=device)


def test_only_equal_rows_have_an_index(device):
    domain = FiniteSet([[2.0, -1.0], [3.0, -1.0], [2.0, -1.0], [-0.0, 1.0]], device=device)
    X = torch.tensor([[3.0, -1.0], [2.0, 3.0], [0.0, 1.0]], dtype=torch.float64, device=device)
    X = torch.cat([X, X[:1].nextafter(torch.full_like(X[:1], 9.0))])
    assert domain.index(X).tolist() == [1, -1, 3, -1]
    assert domain.contains(X).tolist() == [True, False, True, False]
    assert (domain.index(X[0]).tolist(), domain.index(X[:0]).tolist()) == ([1], [])


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


def test_the_name_of_the_argument_and_the_first_point_outside_are_told():
    inside = [3.0, -2.0]
    for domain in (Box([[2.0, -3.0], [5.0, -1.0]]), grid()):
        assert domain.require_contains(inside).tolist() == [inside]
        with pytest.raises(OutsideDomainError, match=r"start must .*got \[6.5, -2.0\]"):
            domain.require_contains([inside, [6.5, -2.0], [7.0, 0.0]], "start")
        assert as_domain(domain) is domain
    points, rows = grid().require_rows([[5.0, -1.0], [2.0, -3.0]])
    assert rows.tolist() == [11, 0] and points.tolist() == [[5.0, -1.0], [2.0, -3.0]]
    with pytest.raises(ValueError, match="mine must be a Box"):
        as_box(grid(), "mine")
    assert as_box([(2.0, 5.0)]).bounds.tolist() == [[2.0], [5.0]]


@pytest.mark.parametrize("domain", [Box([[2.0, -3.0], [5.0, -1.0]]), grid()], ids=["box", "set"])
def test_points_that_are_none_are_refused(domain):
    for X in (
        *([2.0, -3.0, 1.0], torch.zeros(1, 4, 2).double(), 3.0, [[2.0, float("nan")]]),
        *([[-float("inf"), -3.0]], torch.tensor([2.0, -3.0]), torch.tensor([True, False])),
    ):
        for method in (domain.contains, domain.require_contains):
            with pytest.raises(ValueError, match="X must "):
                method(X)
    for points in ([2.0, 3.0], torch.zeros(0, 2), torch.zeros(3, 0)):
        with pytest.raises(ValueError, match="points must "):
            FiniteSet(points)


def test_a_row_stands_in_its_shard_or_anywhere():
    shard = Shard(10, 20, None)
    assert [shard.place(row) for row in (0, 10, 15, 19, 40)] == [0, 0, 5, 9, 9]
    assert shard.place(torch.tensor([0, 15, 40])).tolist() == [0, 5, 9]

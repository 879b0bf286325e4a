"""What the tests share: kernels, numbers, tolerances, pairwise grids, and the devices to run on."""

import sys
from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch import Tensor

# Machine epsilon times a condition number of about 1e7 in float64, 1e4 in float32.
_TOLERANCES = {torch.float64: 1e-8, torch.float32: 1e-3}


def rbf(*lengthscales: float, **more: Any) -> RBFKernel:
    """An RBF kernel in float64, of one lengthscale for all columns or one for each."""
    return _scaled(RBFKernel, lengthscales, more)


def matern(*lengthscales: float, nu: float = 2.5, **more: Any) -> MaternKernel:
    """A Matern kernel in float64; see `rbf`."""
    return _scaled(MaternKernel, lengthscales, {"nu": nu, **more})


def _scaled(kind: type, lengthscales: tuple[float, ...], more: dict[str, Any]) -> Any:
    columns = len(lengthscales) if len(lengthscales) > 1 else None
    kernel = kind(ard_num_dims=columns, **more).double()
    kernel.lengthscale = torch.tensor(lengthscales, dtype=torch.float64)
    return kernel


def drawn(*shape: int, seed: int = 0, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Numbers that are drawn uniformly between two ends, in float64 on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    return low + (high - low) * torch.rand(shape, generator=generator, dtype=torch.float64)


def tolerance(dtype: torch.dtype) -> dict[str, float]:
    """``rtol`` and ``atol`` of `torch.testing.assert_close`, the only ones the tests use."""
    return {"rtol": _TOLERANCES[dtype], "atol": _TOLERANCES[dtype]}


def steps_on(device: torch.device, steps: int) -> int:
    """How long a test runs: a third of what it does on the CPU, whose digits it checks."""
    return steps if device.type == "cpu" else -(-steps // 3)


def without_package(monkeypatch: pytest.MonkeyPatch, package: str, *modules: str) -> None:
    """Makes imports of a package fail, also in modules of ours that are imported anew."""
    for name in [*modules, *(name for name in sys.modules if name.partition(".")[0] == package)]:
        folder, _, own = name.rpartition(".")
        if folder in sys.modules:
            monkeypatch.delattr(sys.modules[folder], own, raising=False)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, package, None)


def devices() -> list[str]:
    """The devices each device-dependent test runs on: the CPU, and CUDA or what pretends to be."""
    return ["cpu", "cuda" if torch.cuda.is_available() else "pretended-cuda"]


def fine_ball(
    bounds: torch.Tensor, x: torch.Tensor, radius: Any, norm: str, count: int
) -> torch.Tensor:
    """A grid of the ball around a point of two columns, and of its surface, within bounds."""
    radius = torch.as_tensor(radius, dtype=torch.float64).expand(2)
    axis = torch.linspace(-1, 1, count, dtype=torch.float64)
    U = torch.cartesian_prod(axis, axis)
    U = torch.cat([U, U / U.norm(dim=-1, keepdim=True).clamp_min(1e-9)])
    if norm == "l2":
        U = U[U.norm(dim=-1) <= 1 + 1e-12]
    Z = x + radius * U
    return Z[((Z >= bounds[0]) & (Z <= bounds[1])).all(dim=-1)]


def pairwise(**values: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrizes a test with so few combinations that every two values of two arguments meet.

    They are chosen greedily, and are always the same. ``device`` is that of the fixture.
    """
    lists = [list(own) for own in values.values()]
    rows = list(product(*(range(len(own)) for own in lists)))
    pairs = {row: set(combinations(enumerate(row), 2)) for row in rows}
    missing = set().union(*pairs.values())
    cases = []
    while missing:
        row = max(rows, key=lambda row: len(pairs[row] & missing))
        missing -= pairs[row]
        cases.append([own[place] for own, place in zip(lists, row, strict=True)])
    indirect = ["device"] if "device" in values else []
    return pytest.mark.parametrize(list(values), cases, indirect=indirect)

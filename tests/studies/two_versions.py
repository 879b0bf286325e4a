"""Two versions of a library: strategies made with a width, a kernel wrapper, a strategy class and a
function, each without and with one more argument, and with a width whose argument has any name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from typing import Any

import torch
from gpytorch.kernels import Kernel

import botorch_ext as bx
from botorch_ext.algorithms.argument_checks import checked_names
from botorch_ext.strategies import RandomSearch, Strategy
from tests.studies.kept import BOX, kernel


def as_in_the_library(old: Any, new: Any, is_new: bool, name: str) -> Any:
    """One of two versions of a class, of which a study says no more than its name."""
    for kind in (old, new):
        kind.__module__, kind.__qualname__ = "botorch_ext.ours", name
    return new if is_new else old


def widths(new: bool) -> Callable[..., Strategy]:
    """A width like those of the library, without and with one more argument."""

    @dataclass(frozen=True)
    class Old(bx.widths.Width):
        level: float

        def __call__(self, t: int, model: Any) -> float:
            return self.level

    @dataclass(frozen=True)
    class New(Old):
        factor: float = 1.0

    kind = as_in_the_library(Old, New, new, "Level")
    return lambda domain=BOX, **options: bx.algorithms.gp_bucb(
        domain, kernel(), noise_variance=0.01, width=kind(2.0, **options)
    )


def wrappers(new: bool) -> Callable[..., Strategy]:
    class Old(Kernel):
        has_lengthscale = False

        def __init__(self, base_kernel: Kernel) -> None:
            super().__init__()
            self.base_kernel = base_kernel

        def forward(self, x1: Any, x2: Any, **params: Any) -> Any:
            return self.base_kernel.forward(x1, x2, **params)

    class New(Old):
        def __init__(self, base_kernel: Kernel, factor: float = 1.0) -> None:
            super().__init__(base_kernel)
            self.register_buffer("factor", torch.tensor(factor, dtype=torch.float64))

    kind = as_in_the_library(Old, New, new, "Wrapper")
    return lambda domain=BOX, **options: bx.algorithms.gp_bucb(
        domain, kind(kernel(), **options), noise_variance=0.01, width=2.0
    )


def strategies(new: bool) -> Callable[..., Strategy]:
    class Old(RandomSearch):
        def __init__(self, domain: Any, seed: int = 0) -> None:
            super().__init__(domain, seed=seed)

    class New(Old):
        def __init__(self, domain: Any, seed: int = 0, factor: float = 1.0) -> None:
            super().__init__(domain, seed)

    kind = as_in_the_library(Old, New, new, "Search")
    return lambda domain=BOX, **options: kind(domain, **options)


def functions(new: bool) -> Callable[..., Strategy]:
    def old(domain: Any, kernel: Any, *, noise_variance: float, width: float) -> Strategy:
        return bx.algorithms.gp_ucb(domain, kernel, noise_variance=noise_variance, width=width)

    def newer(
        domain: Any, kernel: Any, *, noise_variance: float, width: float, factor: float = 1.0
    ) -> Strategy:
        """Its strategy is made otherwise, too."""
        scaled = bx.widths.Scaled(width, factor)
        return bx.algorithms.gp_ucb(domain, kernel, noise_variance=noise_variance, width=scaled)

    function = newer if new else old
    function.__name__ = "level_ucb"
    made = checked_names(function)
    return lambda domain=BOX, **options: made(
        domain, kernel(), noise_variance=0.01, width=2.0, **options
    )


KINDS = (widths, wrappers, strategies, functions)


def scaled(name: str, **fields: Any) -> Callable[..., Strategy]:
    """A width with one number, of any name."""

    def call(self: Any, t: int, model: Any) -> float:
        return 2.0

    [(field, default)] = fields.items()
    kind = make_dataclass(name, [(field, float, default)], bases=(bx.widths.Width,), frozen=True)
    kind.__module__, kind.__qualname__, kind.__call__ = "botorch_ext.ours", name, call
    kind.__abstractmethods__ = frozenset()
    return lambda *numbers, domain=BOX: bx.algorithms.gp_bucb(
        domain, kernel(), noise_variance=0.01, width=kind(*numbers)
    )

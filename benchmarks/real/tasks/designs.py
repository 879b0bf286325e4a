"""Engineering designs from the literature. Violated constraints are added to the loss, as users of
optimisers without constraints do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.real.spaces import Params, real, whole
from benchmarks.real.tasks.task import Task


@dataclass(frozen=True)
class Penalised:
    """The loss of a design, plus the weight times what its constraints g <= 0 are violated by.

    Args:
        design: From a setting to its loss and the values of its constraints.
        weight: The weight.
    """

    design: Callable[[Params], tuple[float, Sequence[float]]]
    weight: float

    def seen(self, params: Params, seed: int) -> float:
        """The penalised loss."""
        return self.true(params)

    def true(self, params: Params) -> float:
        """The penalised loss."""
        cost, constraints = self.design(params)
        return cost + self.weight * sum(max(g, 0.0) for g in constraints)


def _pressure_vessel(p: Params) -> tuple[float, list[float]]:
    """Cost of a vessel. Source: Sandgren 1990; thickness in sixteenths of an inch."""
    shell, head, R, L = p["shell"] / 16, p["head"] / 16, p["radius"], p["length"]
    cost = 0.6224 * shell * R * L + 1.7781 * head * R**2
    cost += 3.1661 * shell**2 * L + 19.84 * shell**2 * R
    volume = math.pi * R**2 * L + 4 / 3 * math.pi * R**3
    return cost, [0.0193 * R / shell - 1, 0.00954 * R / head - 1, 1 - volume / 1_296_000]


def _speed_reducer(p: Params) -> tuple[float, list[float]]:
    """Weight of a gear box. Source: Golinski 1973."""
    b, m, z, l1, l2, d1, d2 = (p[name] for name in ("b", "m", "z", "l1", "l2", "d1", "d2"))
    weight = 0.7854 * b * m**2 * (3.3333 * z**2 + 14.9334 * z - 43.0934)
    weight += -1.508 * b * (d1**2 + d2**2) + 7.4777 * (d1**3 + d2**3)
    weight += 0.7854 * (l1 * d1**2 + l2 * d2**2)
    stress = [
        math.sqrt((745 * shaft / (m * z)) ** 2 + load) / (limit * d**3) - 1
        for shaft, d, load, limit in ((l1, d1, 16.9e6, 110.0), (l2, d2, 157.5e6, 85.0))
    ]
    return weight, [
        27 / (b * m**2 * z) - 1,
        397.5 / (b * m**2 * z**2) - 1,
        1.93 * l1**3 / (m * z * d1**4) - 1,
        1.93 * l2**3 / (m * z * d2**4) - 1,
        *stress,
        m * z / 40 - 1,
        5 * m / b - 1,
        b / (12 * m) - 1,
        (1.5 * d1 + 1.9) / l1 - 1,
        (1.1 * d2 + 1.9) / l2 - 1,
    ]


def _spring(p: Params) -> tuple[float, list[float]]:
    """Weight of a spring. Source: Arora 1989."""
    d, D, N = p["wire"], p["coil"], p["turns"]
    return (N + 2) * D * d**2, [
        1 - D**3 * N / (71_785 * d**4),
        (4 * D**2 - d * D) / (12_566 * (D * d**3 - d**4)) + 1 / (5108 * d**2) - 1,
        1 - 140.45 * d / (D**2 * N),
        (D + d) / 1.5 - 1,
    ]


def _welded_beam(p: Params) -> tuple[float, list[float]]:
    """Cost of a beam. Source: Ragsdell and Phillips 1976."""
    h, s, t, b = p["weld"], p["joint"], p["height"], p["width"]
    load, length, E, G = 6000.0, 14.0, 30e6, 12e6
    R = math.sqrt(s**2 / 4 + ((h + t) / 2) ** 2)
    J = 2 * (math.sqrt(2) * h * s * (s**2 / 12 + ((h + t) / 2) ** 2))
    primary = load / (math.sqrt(2) * h * s)
    secondary = load * (length + s / 2) * R / J
    shear = math.sqrt(primary**2 + primary * secondary * s / R + secondary**2)
    bending, deflection = 6 * load * length / (b * t**2), 4 * load * length**3 / (E * t**3 * b)
    buckling = 4.013 * E * math.sqrt(t**2 * b**6 / 36) / length**2
    buckling *= 1 - t / (2 * length) * math.sqrt(E / (4 * G))
    return 1.10471 * h**2 * s + 0.04811 * t * b * (14 + s), [
        shear / 13_600 - 1,
        bending / 30_000 - 1,
        h / b - 1,
        deflection / 0.25 - 1,
        1 - buckling / 6000,
    ]


def _truss(p: Params) -> tuple[float, list[float]]:
    """Volume of a truss of three bars. Source: Nowacki 1973."""
    a, b = p["outer"], p["inner"]
    root, load, limit = math.sqrt(2), 2.0, 2.0
    whole_part = root * a**2 + 2 * a * b
    return (2 * root * a + b) * 100, [
        ((root * a + b) / whole_part * load - limit) / limit,
        (b / whole_part * load - limit) / limit,
        (1 / (root * b + a) * load - limit) / limit,
    ]


def _cantilever(p: Params) -> tuple[float, list[float]]:
    """Weight of a beam of five hollow sections. Source: Chickermane and Gea 1996."""
    bending = zip((61, 37, 19, 7, 1), p.values(), strict=True)
    return 0.0624 * sum(p.values()), [sum(c / side**3 for c, side in bending) - 1]


def _i_beam(p: Params) -> tuple[float, list[float]]:
    """Deflection of a beam of I section. Source: Gold and Krishnamurty 1997."""
    h, b, web, flange = p["height"], p["width"], p["web"], p["flange"]
    inner = h - 2 * flange
    inertia = web * inner**3 / 12 + b * flange**3 / 6 + 2 * b * flange * ((h - flange) / 2) ** 2
    area = 2 * b * flange + web * inner
    across = web * inner**3 + 2 * b * flange * (4 * flange**2 + 3 * h * inner)
    along = inner * web**3 + 2 * flange * b**3
    return 5000 / inertia, [area / 300 - 1, (18e4 * h / across + 15e3 * b / along) / 6 - 1]


TASKS = (
    Task(
        "pressure vessel",
        "constrained",
        "develop",
        (
            whole("shell", 1, 99),
            whole("head", 1, 99),
            real("radius", 10.0, 200.0),
            real("length", 10.0, 240.0),
        ),
        50,
        partial(Penalised, _pressure_vessel, 10_000.0),
        5850.383,
    ),
    Task(
        "speed reducer",
        "constrained",
        "develop",
        (
            real("b", 2.6, 3.6),
            real("m", 0.7, 0.8),
            whole("z", 17, 28),
            real("l1", 7.3, 8.3),
            real("l2", 7.3, 8.3),
            real("d1", 2.9, 3.9),
            real("d2", 5.0, 5.5),
        ),
        60,
        partial(Penalised, _speed_reducer, 3000.0),
        2994.471,
    ),
    Task(
        "spring",
        "constrained",
        "report",
        (real("wire", 0.05, 0.2), real("coil", 0.25, 1.3), whole("turns", 2, 15)),
        40,
        partial(Penalised, _spring, 0.1),
        0.012665,
    ),
    Task(
        "welded beam",
        "constrained",
        "report",
        (
            real("weld", 0.125, 2.0),
            real("joint", 0.1, 10.0),
            real("height", 0.1, 10.0),
            real("width", 0.1, 2.0),
        ),
        50,
        partial(Penalised, _welded_beam, 10.0),
        1.724852,
    ),
    Task(
        "three-bar truss",
        "constrained",
        "report",
        (real("outer", 0.1, 1.0), real("inner", 0.1, 1.0)),
        30,
        partial(Penalised, _truss, 10_000.0),
        263.8958,
        revision=2,
    ),
    Task(
        "cantilever beam",
        "constrained",
        "confirm",
        tuple(real(f"side{i}", 0.01, 100.0) for i in range(5)),
        50,
        partial(Penalised, _cantilever, 10.0),
        1.33995636,
    ),
    Task(
        "I-beam",
        "constrained",
        "confirm",
        (
            real("height", 10.0, 80.0),
            real("width", 10.0, 50.0),
            real("web", 0.9, 5.0),
            real("flange", 0.9, 5.0),
        ),
        50,
        partial(Penalised, _i_beam, 0.1),
        0.0130741189,
    ),
)

"""Chemistry: surrogates of measured data that the packages Olympus and Summit ship.

A task is the mean of neural networks fitted to the measurements, not the reaction itself. Noise is
Gaussian, of the standard deviation of the residuals of the fit. Bounds are those of the
measurements; the inputs of alkox are named as in its paper, the file has none.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import distribution
from typing import Any, Literal

from benchmarks.real.spaces import Parameter, Params, choice, real
from benchmarks.real.tasks.task import Half, Kind, Task

_NUM_NETWORKS = 5


@dataclass(frozen=True)
class _Surrogate:
    """Networks fitted to measurements.

    Args:
        parameters: Of the space; choices become columns of their own.
        networks: Fitted, of inputs and outcomes that are scaled.
        sign: 1 where the measured quantity is a loss, -1 where it is a yield.
        mean: Of the measured quantity.
        scale: Its standard deviation.
        noise: Of one evaluation, in units of the measured quantity.
    """

    parameters: tuple[Parameter, ...]
    networks: Sequence[Any]
    sign: float
    mean: float
    scale: float
    noise: float

    def true(self, params: Params) -> float:
        """The mean of the networks."""
        row = [_row(self.parameters, [params[p.name] for p in self.parameters])]
        predicted = sum(float(net.predict(row)[0]) for net in self.networks) / len(self.networks)
        return self.sign * (self.mean + self.scale * predicted)

    def seen(self, params: Params, seed: int) -> float:
        """The same with noise."""
        import numpy as np

        return self.true(params) + self.noise * float(np.random.default_rng(seed).standard_normal())


def _row(parameters: Sequence[Parameter], values: Sequence[Any]) -> list[float]:
    row: list[float] = []
    for p, value in zip(parameters, values, strict=True):
        if p.kind == "choice":
            row += [float(value == other) for other in p.choices]
        else:
            low, high = p.ends
            row.append(2 * (p.scaled(value) - low) / (high - low) - 1)
    return row


def _fitted(
    parameters: tuple[Parameter, ...], rows: Sequence[Sequence[Any]], y: Any, sign: float
) -> _Surrogate:
    import numpy as np
    from sklearn.neural_network import MLPRegressor

    X = np.array([_row(parameters, row) for row in rows])
    mean, scale = float(np.mean(y)), float(np.std(y))
    targets = (np.asarray(y) - mean) / scale
    networks = [
        MLPRegressor(
            hidden_layer_sizes=(32, 32),
            activation="tanh",
            alpha=0.1,
            solver="lbfgs",
            max_iter=500,
            random_state=i,
        )
        for i in range(_NUM_NETWORKS)
    ]
    for net in networks:
        net.fit(X, targets)
    residuals = targets - np.mean([net.predict(X) for net in networks], axis=0)
    noise = scale * float(np.std(residuals))
    return _Surrogate(parameters, networks, sign, mean, scale, noise)


def _lines(package: str, path: str) -> list[list[str]]:
    place = str(distribution(package).locate_file(path))
    with open(place, encoding="utf-8-sig") as file:
        return list(csv.reader(file))


def _olympus(name: str, parameters: tuple[Parameter, ...], sign: float) -> _Surrogate:
    lines = _lines("olymp", f"olympus/datasets/dataset_{name}/data.csv")
    # Some files have every row twice.
    numbers = sorted({tuple(map(float, line[-1 - len(parameters) :])) for line in lines})
    return _fitted(parameters, [n[:-1] for n in numbers], [n[-1] for n in numbers], sign)


def _summit(file: str, parameters: tuple[Parameter, ...]) -> _Surrogate:
    head, _, *lines = _lines("summit", f"summit/benchmarks/data/{file}.csv")
    columns = [head.index(p.name) for p in parameters]
    rows = [
        [
            line[column] if p.kind == "choice" else float(line[column])
            for column, p in zip(columns, parameters, strict=True)
        ]
        for line in lines
    ]
    return _fitted(parameters, rows, [float(line[head.index("yld")]) for line in lines], -1.0)


def _of_olympus(
    name: str,
    half: Half,
    goal: Literal["least", "most"],
    evaluations: int,
    **ranges: tuple[float, float],
) -> Task:
    parameters = tuple(real(key, *ends) for key, ends in ranges.items())
    make = partial(_olympus, name, parameters, 1.0 if goal == "least" else -1.0)
    return Task(f"Olympus {name}", "chemistry", half, parameters, evaluations, make, revision=2)


def _of_summit(
    title: str, file: str, half: Half, parameters: tuple[Parameter, ...], evaluations: int
) -> Task:
    kind: Kind = "mixed"
    return Task(title, kind, half, parameters, evaluations, partial(_summit, file, parameters))


_SUZUKI = (
    choice("catalyst", *(f"P1-L{i}" for i in range(1, 8)), "P2-L1"),
    real("t_res", 60.0, 600.0),
    real("temperature", 30.0, 110.0),
    real("catalyst_loading", 0.5, 2.5),
)
_COUPLING = (
    choice("catalyst", "tBuXPhos", "tBuBrettPhos", "AlPhos"),
    choice("base", "DBU", "BTMG", "TMG", "TEA"),
    real("base_equivalents", 1.1, 2.2),
    real("temperature", 30.0, 100.0),
    real("t_res", 66.0, 1427.0),
)

TASKS = (
    _of_olympus(
        "alkox",
        "develop",
        "most",
        40,
        catalase=(0.05, 1.0),
        peroxidase=(0.5, 10.0),
        alcohol_oxidase=(2.0, 8.0),
        pH=(6.0, 8.0),
    ),
    _of_olympus(
        "colors_bob",
        "develop",
        "least",
        50,
        red=(0.0, 1.0),
        orange=(0.0, 1.0),
        yellow=(0.0, 1.0),
        blue=(0.0, 1.0),
        green=(0.0, 1.0),
    ),
    _of_summit("Suzuki coupling 1", "reizman_suzuki_case_1", "develop", _SUZUKI, 40),
    _of_summit(
        "aniline coupling", "baumgartner_aniline_cn_crosscoupling", "develop", _COUPLING, 40
    ),
    _of_olympus(
        "hplc",
        "report",
        "most",
        50,
        sample_loop=(0.0, 0.08),
        additional_volume=(0.0, 0.06),
        tubing_volume=(0.1, 0.9),
        sample_flow=(0.5, 2.5),
        push_speed=(80.0, 150.0),
        wait_time=(0.5, 10.0),
    ),
    _of_olympus(
        "suzuki",
        "report",
        "most",
        40,
        temperature=(75.0, 90.0),
        pd_mol=(0.5, 5.0),
        arbpin=(1.0, 1.8),
        k3po4=(1.5, 3.0),
    ),
    _of_summit("Suzuki coupling 3", "reizman_suzuki_case_3", "report", _SUZUKI, 40),
    _of_summit("Suzuki coupling 2", "reizman_suzuki_case_2", "report", _SUZUKI, 40),
    _of_olympus(
        "benzylation",
        "confirm",
        "least",
        40,
        flow_rate=(0.2, 0.4),
        ratio=(1.0, 5.0),
        solvent=(0.5, 1.0),
        temperature=(110.0, 150.0),
    ),
    _of_olympus(
        "colors_n9", "confirm", "least", 40, red=(0.0, 1.0), green=(0.0, 1.0), blue=(0.0, 1.0)
    ),
    _of_olympus(
        "fullerenes",
        "confirm",
        "most",
        40,
        reaction_time=(3.0, 31.0),
        sultine=(1.5, 6.0),
        temperature=(100.0, 150.0),
    ),
    _of_summit("Suzuki coupling 4", "reizman_suzuki_case_4", "confirm", _SUZUKI, 40),
)

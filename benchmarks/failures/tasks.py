"""Tasks whose evaluation fails on a part of the box, and two on which nothing fails.

Losses are minimised and have no noise. The library may be changed for what happens on its own
tasks; those of others are only reported.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from botorch.test_functions import Branin, Hartmann
from torch import tensor

from benchmarks.real.spaces import Parameter, Params, choice, real

REFERENCE = Path(__file__).parent / "reference.json"
# A regret counts as at least so many ranges.
_FLOOR = 1e-6


@dataclass(frozen=True)
class Task:
    """A loss on a box, and where its evaluation fails.

    Args:
        name: As it is called in the tables.
        parameters: The inputs.
        value: The loss at a setting.
        fails: Whether the evaluation of a setting fails.
        source: Whose task it is; empty for one of this library.
        revision: Raised when anything else changes. Rows of another one are stale.
    """

    name: str
    parameters: tuple[Parameter, ...]
    value: Callable[[Params], float]
    fails: Callable[[Params], bool]
    source: str = ""
    revision: int = 1

    def loss(self, params: Params) -> float | None:
        """The loss; None for a failure."""
        return None if self.fails(params) else self.value(params)

    @property
    def failing(self) -> float:
        """The share of the box that fails."""
        return reference()[self.name]["failing"]

    def regret(self, losses: Sequence[float | None]) -> float:
        """The regret of the least loss, in ranges: of the best setting known to the worst one of a
        Sobol sample. 1 if all failed."""
        known = reference()[self.name]
        width = known["greatest"] - known["least"]
        found = min((loss for loss in losses if loss is not None), default=known["greatest"])
        return max((found - known["least"]) / width, _FLOOR)


def reference() -> dict[str, dict[str, float]]:
    """The least and the greatest loss of each task and the share of the box that fails, as
    `benchmarks.failures.reference` found them."""
    return json.loads(REFERENCE.read_text())


def _reals(*ends: tuple[float, float]) -> tuple[Parameter, ...]:
    return tuple(real(f"x{i + 1}", *each) for i, each in enumerate(ends))


def _never(params: Params) -> bool:
    return False


# --- tasks of this library ------------------------------------------------------------------------

_OF_BRANIN = _reals((-5.0, 10.0), (0.0, 15.0))
_OF_HARTMANN3 = _reals(*[(0.0, 1.0)] * 3)
_BRANIN, _HARTMANN3 = Branin(), Hartmann(dim=3)


def _branin(params: Params) -> float:
    return float(_BRANIN(tensor([[params["x1"], params["x2"]]]).double()))


def _hartmann3(params: Params) -> float:
    return float(_HARTMANN3(tensor([[params["x1"], params["x2"], params["x3"]]]).double()))


def _in_disc(params: Params) -> bool:
    """It hides two of the three optima."""
    return math.hypot(params["x1"] - 6, params["x2"] - 5) < 5


def _in_half_space(params: Params) -> bool:
    """The optimum lies in it, and that of the rest on its border."""
    return params["x1"] + params["x2"] + params["x3"] > 1.45


def _styblinski_tang(params: Params) -> float:
    x = params["x1"], params["x2"]
    return 0.5 * sum(each**4 - 16 * each**2 + 5 * each for each in x)


def _in_band(params: Params) -> bool:
    """It surrounds the optimum; the next best one lies outside."""
    return 1.0 < math.hypot(params["x1"] + 2.903534, params["x2"] + 2.903534) < 2.5


_OF_TRAINING = (
    choice("solver", "a", "b", "c"),
    real("rate", 1e-4, 1.0, log=True),
    real("momentum", 0.0, 1.0),
    real("decay", 0.0, 1.0),
)


def _training(params: Params) -> float:
    """The larger the rate and the momentum the better, up to a point that is beyond the border for
    one solver."""
    step = math.log10(params["rate"]) + params["momentum"]
    height, best = {"a": (0.3, -0.5), "b": (0.0, -1.0), "c": (0.15, -1.5)}[params["solver"]]
    waves = 0.05 * math.sin(9 * params["momentum"])
    return height + 0.2 * (step - best) ** 2 + (params["decay"] - 0.3) ** 2 + waves


def _diverges(params: Params) -> bool:
    step = math.log10(params["rate"]) + params["momentum"]
    return step > {"a": 0.0, "b": -1.2, "c": -1.0}[params["solver"]]


# --- tasks of others ------------------------------------------------------------------------------


def _sum(params: Params) -> float:
    return params["x1"] + params["x2"]


def _gramacy(params: Params) -> bool:
    x, y = params["x1"], params["x2"]
    first = 1.5 - x - 2 * y - 0.5 * math.sin(2 * math.pi * (x**2 - 2 * y))
    return first > 0 or x**2 + y**2 > 1.5


def _gardner(params: Params) -> float:
    return math.cos(2 * params["x1"]) * math.cos(params["x2"]) + math.sin(params["x1"])


def _outside_gardner(params: Params) -> bool:
    return math.cos(params["x1"] + params["x2"]) > 0.5


def _townsend(params: Params) -> float:
    x, y = params["x1"], params["x2"]
    return -(math.cos((x - 0.1) * y) ** 2) - x * math.sin(3 * x + y)


def _outside_heart(params: Params) -> bool:
    x, y = params["x1"], params["x2"]
    t = math.atan2(x, y)
    across = 2 * math.cos(t) - math.cos(2 * t) / 2 - math.cos(3 * t) / 4 - math.cos(4 * t) / 8
    return x**2 + y**2 >= across**2 + (2 * math.sin(t)) ** 2


def _vessel(params: Params) -> float:
    shell, head, radius, length = (params[name] for name in ("shell", "head", "radius", "length"))
    return (
        0.6224 * shell * radius * length
        + 1.7781 * head * radius**2
        + 3.1661 * shell**2 * length
        + 19.84 * shell**2 * radius
    )


def _vessel_fails(params: Params) -> bool:
    shell, head, radius, length = (params[name] for name in ("shell", "head", "radius", "length"))
    volume = math.pi * radius**2 * length + 4 / 3 * math.pi * radius**3
    return shell < 0.0193 * radius or head < 0.00954 * radius or volume < 1_296_000


_OF_VESSEL = (
    real("shell", 0.0625, 6.1875),
    real("head", 0.0625, 6.1875),
    real("radius", 10.0, 200.0),
    real("length", 10.0, 200.0),
)

TASKS = {
    task.name: task
    for task in (
        Task("Branin without a disc", _OF_BRANIN, _branin, _in_disc),
        Task("Hartmann3 without a half-space", _OF_HARTMANN3, _hartmann3, _in_half_space),
        Task(
            "Styblinski-Tang2 with a band around its optimum",
            _reals((-5.0, 5.0), (-5.0, 5.0)),
            _styblinski_tang,
            _in_band,
        ),
        Task("training that diverges", _OF_TRAINING, _training, _diverges),
        Task(
            "a sum behind a sine",
            _reals((0.0, 1.0), (0.0, 1.0)),
            _sum,
            _gramacy,
            "Gramacy et al. 2016, section 2",
        ),
        Task(
            "simulation 1 of Gardner",
            _reals((0.0, 6.0), (0.0, 6.0)),
            _gardner,
            _outside_gardner,
            "Gardner et al. 2014, section 5.1",
        ),
        Task(
            "Townsend in a heart",
            _reals((-2.25, 2.25), (-2.5, 1.75)),
            _townsend,
            _outside_heart,
            "Townsend 2014, as in Tian et al. 2024",
        ),
        Task(
            "pressure vessel",
            _OF_VESSEL,
            _vessel,
            _vessel_fails,
            "Coello and Mezura-Montes 2002, with continuous inputs",
        ),
        Task("Branin", _OF_BRANIN, _branin, _never),
        Task("Hartmann3", _OF_HARTMANN3, _hartmann3, _never),
    )
}

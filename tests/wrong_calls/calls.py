"""Calls as users write them: refused by name, or working and giving what the proper call does."""

from __future__ import annotations

import atexit
import re
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

import botorch_ext as bx
from botorch_ext.exceptions import BotorchExtWarning
from botorch_ext.strategies import Strategy

LAMBDA = 0.02
ROWS = [[2.0, -3.0], [5.0, -1.5]]
PAIRS = [(2.0, 5.0), (-3.0, -1.5)]


def kernel(num_columns: int = 2) -> RBFKernel:
    k = RBFKernel(ard_num_dims=num_columns).double()
    k.lengthscale = torch.tensor([0.9, 0.5, 0.7][:num_columns], dtype=torch.float64)
    return k


class Scene:
    """What users have at hand in the middle of their work."""

    def __init__(self) -> None:
        self.box = bx.Box(ROWS)
        self.grid = bx.FiniteSet(self.box.sample(24, seed=3))
        self.kernel = kernel()
        self.rows = [[3.0, -2.0], [4.0, -2.5], [2.5, -1.75]]
        self.values = [0.3, -0.2, 0.1]
        self.X = torch.tensor(self.rows, dtype=torch.float64)
        self.Y = torch.tensor(self.values, dtype=torch.float64)
        self.gp = bx.KernelGP(self.kernel, LAMBDA)
        self.gp.add(self.X, self.Y)
        self.finite = bx.FinitePosterior(self.kernel, self.grid.points, LAMBDA)
        self.finite.add(self.X, self.Y)
        self.models = bx.CandidateModels([self.kernel, kernel()], LAMBDA)
        self.models.add(self.X, self.Y)
        fresh = bx.KernelGP(self.kernel, LAMBDA)
        self.strategy = bx.OptimisticStrategy(self.box, fresh, 2.0, seed=1, num_initial=4)
        self.on_set = bx.OptimisticStrategy(self.grid, fresh, 2.0, seed=1, num_initial=4)
        self.seeing = bx.OptimisticStrategy(
            self.box,
            bx.KernelGP(kernel(3), LAMBDA),
            2.0,
            num_initial=4,
            context_domain=bx.Box([[0.0], [1.0]]),
        )
        at = {"context": 0.5}
        for strategy, given in ((self.strategy, {}), (self.on_set, {}), (self.seeing, at)):
            for value in self.values:
                strategy.tell(strategy.ask(**given).id, value)
            strategy.ask(**given)  # trial 3 is pending

    @property
    def study(self) -> bx.Study:
        """All scenes share it: a study cannot be copied."""
        return study()


@cache
def study() -> bx.Study:
    """A study of costs; trial 3 is pending."""
    folder = mkdtemp()
    atexit.register(rmtree, folder)
    made = bx.OptimisticStrategy(
        bx.Box(ROWS), bx.KernelGP(kernel(), LAMBDA), 2.0, seed=1, num_initial=4
    )
    begun = bx.Study(f"{folder}/study.db", made, minimize=True)
    for value in (0.3, -0.2, 0.1):
        begun.tell(begun.ask(), value)
    begun.ask()
    return begun


@dataclass(frozen=True)
class Call:
    """A call.

    Args:
        name: What is wrong or odd about it.
        make: The call.
        argument: The name that the refusal must say; None where the call works.
        proper: The call that says the same as one that works.
    """

    name: str
    make: Callable[[Any], Any]
    argument: str | None = None
    proper: Callable[[Any], Any] | None = None


def refused(argument: str, **calls: Callable[[Any], Any]) -> list[Call]:
    return [Call(name.replace("_", " "), call, argument) for name, call in calls.items()]


def refused_values(
    argument: str, where: str, call: Callable[[Any, Any], Any], values: dict[str, Any]
) -> list[Call]:
    """One call with many values."""
    return [
        Call(f"{where}: {kind}", lambda s, v=value: call(s, v), argument)
        for kind, value in values.items()
    ]


def works(proper: Callable[[Any], Any], **calls: Callable[[Any], Any]) -> list[Call]:
    return [Call(name.replace("_", " "), call, None, proper) for name, call in calls.items()]


def working_values(
    where: str, call: Callable[[Any, Any], Any], values: dict[str, Any], proper: Any
) -> list[Call]:
    """One call with many values that say the same."""

    def properly(s: Any) -> Any:
        return call(s, proper)

    return [
        Call(f"{where}: {kind}", lambda s, v=value: call(s, v), None, properly)
        for kind, value in values.items()
    ]


def shown(value: Any) -> Any:
    """All that shows of a result, as plain values that can be compared."""
    if isinstance(value, Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Strategy):
        context = {} if value.context_space is None else {"context": [0.5]}
        trial = value.ask(**context)
        return [shown(event) for event in value.events], shown(trial.x)
    if isinstance(value, bx.KernelGP):
        at = torch.tensor([[3.1, -2.1], [4.4, -1.9]], dtype=value.dtype)
        posterior = value.posterior(at)
        return value.num_observations, shown(posterior.mean), shown(posterior.variance)
    if isinstance(value, bx.FinitePosterior):
        return value.num_observations, shown(value.mean), shown(value.std)
    if isinstance(value, bx.CandidateModels):
        at = torch.tensor([[3.1, -2.1], [4.4, -1.9]]).double()
        return value.names, [shown(part) for part in value.mean_and_std(at)]
    if isinstance(value, bx.Box):
        return repr(value)
    if isinstance(value, bx.FiniteSet):
        return shown(value.points)
    if isinstance(value, dict):
        return {key: shown(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [shown(entry) for entry in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: shown(getattr(value, field.name)) for field in fields(value)}
    return value if isinstance(value, int | float | str | None) else type(value).__name__


def state(scene: Scene) -> Any:
    """All that a refused call must leave as it is."""
    return [
        *(shown(list(s.events)) for s in (scene.strategy, scene.on_set, scene.seeing)),
        shown(list(scene.study.events)),
        *(s.posterior.num_observations for s in (scene.strategy, scene.on_set, scene.seeing)),
        *(shown(part) for part in (scene.box, scene.grid, scene.gp, scene.finite, scene.models)),
        [shown(scene.strategy.domain), shown(scene.strategy.best()), scene.strategy.report()],
        shown(scene.strategy.posterior),
        [shown(scene.X), shown(scene.Y)],
    ]


@cache
def wanted_of(proper: Callable[[Any], Any]) -> Any:
    """What shows of the result of a proper call."""
    return shown(proper(Scene()))


def by_name(error: Exception, argument: str) -> bool:
    """Whether an error is one of ours that names the argument, and says what was given or what
    must not be."""
    if not isinstance(error, ValueError | TypeError):
        return False
    words = re.escape(argument)
    said = rf"(?<!\w){words}(?!\w)"
    pattern = rf"{said}.* must|argument:? '{words}'|{said}.*argument"
    given = r"got|must be None|must not (be|have)|, not |such as"
    text = str(error)
    return all(re.search(found, text, re.S) is not None for found in (pattern, given))


def outcome(call: Call, scene: Scene) -> str:
    """What becomes of a call: "refused", "works", or what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BotorchExtWarning)
        try:
            if call.proper is not None:
                got = shown(call.make(deepcopy(scene)))
                wanted = wanted_of(call.proper)
                return "works" if got == wanted else f"other value: {got!r:.99} not {wanted!r:.99}"
            call.make(scene)
        except Exception as error:  # noqa: BLE001 - whatever comes is judged
            if call.argument is None:
                return f"accident: {error!r:.300}"
            return "refused" if by_name(error, call.argument) else f"accident: {error!r:.300}"
    return "silent: accepted"


def changing(calls: Sequence[Call]) -> list[str]:
    """The names of those of the calls that leave something else of a scene than there was."""

    def change(some: Sequence[Call]) -> bool:
        scene = Scene()
        before = state(scene)
        for call in some:
            outcome(call, scene)
        return state(scene) != before

    # The state takes longer than a call: it is looked at for each of them only if all change it.
    return [call.name for call in calls if change([call])] if change(calls) else []

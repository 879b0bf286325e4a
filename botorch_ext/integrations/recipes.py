"""Recipe: an algorithm by its name and its arguments, before there is anything to search."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from gpytorch.kernels import Kernel

from botorch_ext import algorithms
from botorch_ext.algorithms.argument_checks import PRACTICAL_WIDTH
from botorch_ext.checks import whole_number
from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.domains.space import Space
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.strategies import Strategy
from botorch_ext.widths import Width

# First points beside a `Fitted` kernel, unless something else is given.
_NUM_INITIAL = 8
# What the host gives.
_OF_HOST = {
    "domain": "it is the space of the study",
    "initial": "add the trials to the study, they are attached",
}
# A kernel that is put together from these needs no other.
_PARTS = ("action_kernel", "context_kernel")
_PLAIN = bool | int | float | str | None | Fitted | Particles | Width | Kernel
# How the error of a kernel begins that is for points of another dimension.
_OF_SHAPE = "kernel must take points of dimension"


class UnsearchableSpace(ValueError):
    """A space that a method cannot search, or nothing can."""


@dataclass(frozen=True)
class Recipe:
    """An algorithm of the library, or a function like one, with its arguments.

    Where the algorithm takes a `Fitted` kernel and none is given it has one, and with a `Fitted`
    kernel a width of 2, where the algorithm declares none, and 8 first points, unless told
    otherwise.

    Args:
        algorithm: A name in `botorch_ext.algorithms`, or a function of a domain and arguments.
        arguments: All but the domain, those that have a default may be missing. Values such as
            ``minimum`` are of what is maximised: where a study minimises, of its negative.
        who: What is made with it, for messages.
        num_points: Where given, the method chooses among so many points of the space.
        takes_contexts: Whether there can be contexts.
        is_tried: Whether it is called once, on a space of its own, to see that arguments are
            possible; `require_possible` does it later.

    Raises:
        ValueError: An unknown algorithm, an argument that is missing, unknown or impossible.
    """

    algorithm: str | Callable[..., Strategy]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    who: str = "Recipe"
    num_points: int | None = None
    takes_contexts: bool = False
    is_tried: bool = True

    def __post_init__(self) -> None:
        if self.num_points is not None:
            whole_number(self.num_points, "num_points", least=1)
        object.__setattr__(self, "arguments", self._checked())
        self._require_contexts(self.is_contextual)
        if self.is_tried:
            self.require_possible()

    def require_possible(self) -> None:
        """A ValueError for arguments that are impossible in any space."""
        are_plain = all(isinstance(each, _PLAIN) for each in self.arguments.values())
        if isinstance(self.algorithm, str) and are_plain and not self.is_contextual:
            # Nothing but the kernel depends on the space: what is wrong is wrong anywhere.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    self._called(_tried_on(self.arguments.values()))
                except ValueError as error:
                    if not str(error).startswith(_OF_SHAPE):
                        raise

    @property
    def name(self) -> str:
        """Of the algorithm."""
        return getattr(self._function(), "__name__", repr(self.algorithm))

    @property
    def is_contextual(self) -> bool:
        """Whether every question needs a context."""
        named = "context_kernel" in inspect.signature(self._function()).parameters
        return named or self.arguments.get("context_domain") is not None

    def make(
        self, space: Space, context_domain: Domain | int | ContextSpace | None = None
    ) -> Strategy:
        """The strategy for a space.

        Args:
            space: It is the domain, without its names; where the method takes no such box, all
                points of it, if they are few, or ``num_points`` of them.
            context_domain: As every algorithm takes it, unless the arguments have it.

        Raises:
            UnsearchableSpace: The method cannot search it.
            ValueError: An argument that does not fit it.
        """
        is_given = context_domain is None or self.arguments.get("context_domain") is not None
        more = {} if is_given else {"context_domain": context_domain}
        try:
            strategy = self._made(space, more)
        except ValueError as error:
            if str(error).startswith("domain "):
                raise UnsearchableSpace(str(error)) from error
            raise
        self._require_contexts(strategy.context_space is not None)
        return strategy

    def _made(self, space: Space, more: dict[str, Any]) -> Strategy:
        box = space.without_names()
        if self.num_points is not None:
            return self._called(self._some_points(box), more)
        try:
            return self._called(box, more)
        except ValueError:
            if box.is_plain or self._called(Box(box.bounds), more).takes_spaces:
                raise
        if box.listed is not None:
            return self._called(FiniteSet(box.listed), more)
        special = {
            "steps, whole numbers or choices": [space.names[j] for j in box.stepped],
            "logarithmic scales": [space.names[j] for j in box.log],
            "constraints": [] if box.constraints is None else ["of the space"],
            "conditions": [space.names[j] for j in box.conditions],
        }
        found = "; ".join(f"{kind}: {', '.join(at)}" for kind, at in special.items() if at)
        raise UnsearchableSpace(
            f"{self.name} searches boxes with nothing but bounds, and there are {found}. Give "
            "num_points=1000 to let it choose among so many points of the space, or use a method "
            "that searches such spaces, as gp_bucb and integrated_ei do"
        )

    def _some_points(self, box: Box) -> FiniteSet:
        num_points: Any = self.num_points
        if box.listed is not None and len(box.listed) <= num_points:
            return FiniteSet(box.listed)
        return FiniteSet(box.sample(num_points, seed=self.arguments.get("seed", 0)).unique(dim=0))

    def _called(self, domain: Domain, more: dict[str, Any] | None = None) -> Strategy:
        strategy = self._function()(domain, **self.arguments, **(more or {}))
        if not isinstance(strategy, Strategy):
            raise ValueError(f"algorithm must make a Strategy, got {strategy!r}")
        return strategy

    def _function(self) -> Callable[..., Any]:
        if inspect.isclass(self.algorithm) and not issubclass(self.algorithm, Strategy):
            raise ValueError(
                f"algorithm must make a Strategy, got the class {self.algorithm.__name__}"
            )
        if callable(self.algorithm):
            return self.algorithm
        known = algorithms.__all__
        if self.algorithm not in known:
            close = get_close_matches(str(self.algorithm).lower(), known, n=1)
            meant = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(
                f"algorithm must be a function or one of {', '.join(known)}, got "
                f"{self.algorithm!r}{meant}"
            )
        return getattr(algorithms, self.algorithm)

    def _checked(self) -> dict[str, Any]:
        """The arguments, with those that they lack and need."""
        arguments, name = dict(self.arguments), self.name
        parameters = inspect.signature(self._function()).parameters
        takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        for given in arguments:
            if given in _OF_HOST:
                raise ValueError(f"{given} must not be given to {self.who}: {_OF_HOST[given]}")
            if given not in parameters and not takes_any:
                close = get_close_matches(given.lower(), parameters, n=1)
                meant = f" (did you mean {close[0]!r}?)" if close else ""
                raise ValueError(f"{name} takes no argument {given!r}{meant}")
        if all(arguments.get(part) is None for part in _PARTS):
            _fill(arguments, parameters)
        for key, parameter in list(parameters.items())[1:]:
            has_default = parameter.default is not parameter.empty
            is_one = parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            if is_one and not has_default and key not in arguments:
                raise ValueError(f"{key} must be given for {name}")
        return arguments

    def _require_contexts(self, is_contextual: bool) -> None:
        if is_contextual and not self.takes_contexts:
            raise ValueError(
                f"{self.name} must have a context at every question, and {self.who} has none"
            )


def _tried_on(arguments: Iterable[Any]) -> Box:
    """A box of a dimension that kernels take."""
    kernels = (each for each in arguments if isinstance(each, Kernel))
    parts = (part for kernel in kernels for part in kernel.modules() if isinstance(part, Kernel))
    d = max((part.ard_num_dims for part in parts if part.ard_num_dims is not None), default=2)
    return Box([[0.0] * d, [1.0] * d])


def _fill(arguments: dict[str, Any], parameters: Mapping[str, inspect.Parameter]) -> None:
    """Adds hyperparameters from the data where an algorithm takes them and has no others, and what
    it needs with them."""
    for kind, made in (("Fitted", Fitted), ("Particles", Particles)):
        for key, parameter in parameters.items():
            given = arguments.get(key)
            if kind not in str(parameter.annotation) or not isinstance(given, made | None):
                continue
            arguments[key] = made() if given is None else given
            # A method whose width has a default of its own keeps it.
            undeclared = "width" in parameters and parameters["width"].default in (
                None,
                inspect.Parameter.empty,
            )
            if undeclared and arguments.get("rkhs_bound") is None:
                arguments.setdefault("width", PRACTICAL_WIDTH)
            if "num_initial" in parameters and parameters["num_initial"].default == 0:
                arguments.setdefault("num_initial", _NUM_INITIAL)

"""Recipe: an algorithm and its arguments, before the space to search is known."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpytorch.kernels import Kernel

from botorch_ext import algorithms
from botorch_ext.algorithms.argument_checks import PRACTICAL_WIDTH
from botorch_ext.checks import did_you_mean, whole_number
from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.domains.space import Space
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.strategies import Strategy
from botorch_ext.widths import Width

# The default number of first points of algorithms with a `Fitted` kernel.
_NUM_INITIAL = 8
# Arguments that the host provides, and where they come from.
_OF_HOST = {
    "domain": "it is the space of the study",
    "initial": "add the trials to the study, they are attached",
}
# Arguments from which a kernel is composed; an algorithm with them needs no other kernel.
_PARTS = ("action_kernel", "context_kernel")
_PLAIN = bool | int | float | str | None | Fitted | Particles | Width | Kernel
# The beginning of the error of a kernel for points of another dimension.
_OF_SHAPE = "kernel must take points of dimension"


class UnsearchableSpace(ValueError):
    """The method cannot search the space."""


@dataclass(frozen=True)
class Recipe:
    """An algorithm of the library, or a function like one, with its arguments.

    If the algorithm takes a `Fitted` kernel and none is given, the recipe adds one. An algorithm
    with a `Fitted` kernel also gets a width of 2, if it declares no default width, and 8 first
    points, unless these arguments are given.

    Example:
        >>> import botorch_ext as bx
        >>> from botorch_ext.integrations.recipes import Recipe
        >>> recipe = Recipe("gp_bucb", {"seed": 1})
        >>> strategy = recipe.make(bx.Space(x=bx.Real(0, 1)))
        >>> strategy.ask().x.shape
        torch.Size([1])

    Args:
        algorithm: The name of an algorithm in `botorch_ext.algorithms`, or a function of a domain
            and arguments.
        arguments: The arguments except the domain; arguments with a default may be missing.
        who: The name of the object that uses the recipe, for messages.
        num_points: The number of points of the space among which the method chooses; None searches
            the space itself.
        takes_contexts: Whether the host can provide contexts.
        is_tried: Whether to check the arguments now by calling the algorithm once on another space;
            `require_possible` does this later.

    Raises:
        ValueError: If the algorithm is unknown, or an argument is missing, unknown or impossible.
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
        """Check that the arguments are possible in some space.

        Raises:
            ValueError: If an argument is impossible in any space.
        """
        are_plain = all(isinstance(each, _PLAIN) for each in self.arguments.values())
        if isinstance(self.algorithm, str) and are_plain and not self.is_contextual:
            # Only the kernel depends on the space: other errors would occur in any space.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    self._called(_tried_on(self.arguments.values()))
                except ValueError as error:
                    if not str(error).startswith(_OF_SHAPE):
                        raise

    @property
    def name(self) -> str:
        """The name of the algorithm."""
        return getattr(self._function(), "__name__", repr(self.algorithm))

    @property
    def is_contextual(self) -> bool:
        """Whether every ask needs a context."""
        named = "context_kernel" in inspect.signature(self._function()).parameters
        return named or self.arguments.get("context_domain") is not None

    def make(
        self,
        space: Space,
        context_domain: Domain | int | ContextSpace | None = None,
        minimize: bool = False,
    ) -> Strategy:
        """Make the strategy for a space.

        Args:
            space: The space. The domain of the strategy is this space without its names; if the
                method does not take such a box, the domain is the set of all its points, if they
                are few, or of ``num_points`` points.
            context_domain: The contexts, as every algorithm takes them; None if there are none. The
                arguments of the recipe have precedence.
            minimize: Whether the host minimises, which the algorithm is told if it takes that.

        Returns:
            The strategy, without events.

        Raises:
            UnsearchableSpace: If the method cannot search the space.
            ValueError: If an argument does not fit the space.
        """
        is_given = context_domain is None or self.arguments.get("context_domain") is not None
        more: dict[str, Any] = {} if is_given else {"context_domain": context_domain}
        takes_sign = "minimize" in inspect.signature(self._function()).parameters
        if minimize and takes_sign and self.arguments.get("minimize") is None:
            more["minimize"] = True
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
            f"{self.name} searches only boxes with nothing but bounds, got a space with {found}. "
            "Give num_points=1000 to let it choose among 1,000 points, if it takes a FiniteSet, or "
            "use a method that searches such spaces, as gp_bucb and integrated_ei do"
        )

    def _some_points(self, box: Box) -> FiniteSet:
        num_points: Any = self.num_points
        if box.listed is not None and len(box.listed) <= num_points:
            return FiniteSet(box.listed)
        return FiniteSet(box.sample(num_points, seed=self.arguments.get("seed", 0)).unique(dim=0))

    def _called(self, domain: Domain, more: dict[str, Any] | None = None) -> Strategy:
        strategy = self._function()(domain, **{**self.arguments, **(more or {})})
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
            raise ValueError(
                f"algorithm must be a function or one of {', '.join(known)}, got "
                f"{self.algorithm!r}{did_you_mean(self.algorithm, known)}"
            )
        return getattr(algorithms, self.algorithm)

    def _checked(self) -> dict[str, Any]:
        """The arguments, completed by those that the algorithm needs."""
        arguments, name = dict(self.arguments), self.name
        parameters = inspect.signature(self._function()).parameters
        takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
        for given in arguments:
            if given in _OF_HOST:
                raise ValueError(f"{given} must not be given to {self.who}: {_OF_HOST[given]}")
            if given not in parameters and not takes_any:
                hint = did_you_mean(given, parameters)
                raise ValueError(f"{name} takes no argument {given!r}{hint}")
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
                f"{self.name} needs a context for every trial, but {self.who} provides none: use "
                "an algorithm without contexts"
            )


def _tried_on(arguments: Iterable[Any]) -> Box:
    """A box of the dimension that the kernels among the arguments take."""
    kernels = (each for each in arguments if isinstance(each, Kernel))
    parts = (part for kernel in kernels for part in kernel.modules() if isinstance(part, Kernel))
    d = max((part.ard_num_dims for part in parts if part.ard_num_dims is not None), default=2)
    return Box([[0.0] * d, [1.0] * d])


def _fill(arguments: dict[str, Any], parameters: Mapping[str, inspect.Parameter]) -> None:
    """Add hyperparameters that are learned from the data, if the algorithm takes them and has no
    others, and the arguments that they need."""
    for kind, made in (("Fitted", Fitted), ("Particles", Particles)):
        for key, parameter in parameters.items():
            given = arguments.get(key)
            if kind not in str(parameter.annotation) or not isinstance(given, made | None):
                continue
            arguments[key] = made() if given is None else given
            # A method with its own default width keeps it.
            undeclared = "width" in parameters and parameters["width"].default in (
                None,
                inspect.Parameter.empty,
            )
            if undeclared and arguments.get("rkhs_bound") is None:
                arguments.setdefault("width", PRACTICAL_WIDTH)
            if "num_initial" in parameters and parameters["num_initial"].default == 0:
                arguments.setdefault("num_initial", _NUM_INITIAL)

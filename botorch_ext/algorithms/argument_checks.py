"""Checks of the arguments of this package's functions, and the models and widths made of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from gpytorch.kernels import Kernel

from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.domains.reading import domain_read
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.kernels.checks import require_kernel
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.constructor_arguments import Arguments
from botorch_ext.widths import Width, check_delta

_Parameters = ParamSpec("_Parameters")
_Strategy = TypeVar("_Strategy", bound=Strategy)
_Published = TypeVar("_Published", bound=Width | Sequence[Width])
_Given = TypeVar("_Given")

# The width of a method whose hyperparameters are fitted to the data and whose width is not given.
PRACTICAL_WIDTH = 2.0

# Maps the name of an argument to the first function that takes it.
_TAKEN_BY: dict[str, str] = {}
_WHY_NOT = {
    "initial": "its rounds start from the prior",
    "num_initial": "its rounds start from the prior",
    "pending": "it decides without what is pending",
    "beta": "its square root is the width, width=beta**0.5",
}


class _NoNoiseVariance(ValueError):
    """A kernel that is not `Fitted` came without a noise variance."""


_DESIGNED = "what it asks follows from the prior, before anything is observed"
_WHY_NOT_FITTED = {
    "phased_uncertainty_sampling": _DESIGNED,
    "bpe": _DESIGNED,
    "bpe_delay": _DESIGNED,
    "breadthwise_exploration": _DESIGNED,
    "certified_bucb": "its certificates are those of one kernel",
    "regret_balancing": "the regret bounds it balances are those of one kernel",
}


def checked_names(
    function: Callable[_Parameters, _Strategy],
) -> Callable[_Parameters, _Strategy]:
    """Decorates a function of this package with checks of its arguments.

    An error about an unknown argument suggests the name that was probably meant. An error about a
    `Fitted` kernel says why the function cannot use one. ``domain`` may be the bounds of a box. The
    strategy keeps the name and the arguments of the outermost decorated function.

    Args:
        function: A function that makes a strategy.

    Returns:
        The function with the checks. It raises a TypeError for an unknown argument, before anything
        is computed, and a ValueError for a `Fitted` kernel that it cannot use.
    """
    name, parameters = function.__name__, list(inspect.signature(function).parameters)
    for parameter in parameters:
        _TAKEN_BY.setdefault(parameter, name)

    @wraps(function)
    def checked(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Strategy:
        for given in kwargs:
            if given not in parameters:
                hint = _hint(given, name, parameters)
                raise TypeError(f"{name}() got an unexpected keyword argument {given!r}{hint}")
        args, kwargs = cast(Any, domain_read(parameters, args, kwargs))
        if name in _WHY_NOT_FITTED and isinstance(
            kwargs.get("kernel", args[1] if len(args) > 1 else None), Fitted
        ):
            raise ValueError(f"{name}(): kernel must not be Fitted: {_WHY_NOT_FITTED[name]}")
        values = [*map(_as_now, args)], {key: _as_now(each) for key, each in kwargs.items()}
        passed = Arguments.of(function, *values, name)
        try:
            strategy = function(*args, **kwargs)
            strategy.arguments.of_function = passed
            return strategy
        except _NoNoiseVariance:
            if "noise_variance" in kwargs:
                raise
        missing = "missing 1 required keyword-only argument: 'noise_variance'"
        raise TypeError(f"{name}() {missing}")

    return checked


def _as_now(given: Any) -> Any:
    """The argument as it is now: a kernel, which users may change later, is copied in float64."""
    return deepcopy(given).double() if isinstance(given, Kernel) else given


def _hint(given: str, name: str, parameters: Sequence[str]) -> str:
    owner = _TAKEN_BY.get(given)
    # A name that another function takes is seldom a misspelling.
    nearest = get_close_matches(given, parameters, n=1, cutoff=0.6 if owner is None else 0.9)
    if given in _WHY_NOT and (given != "beta" or "width" in parameters):
        return f": {_WHY_NOT[given]}"
    if nearest:
        return f": did you mean {nearest[0]!r}?"
    of_another = "" if owner is None else f", which {owner}() takes"
    return f"{of_another}; {name}() takes {', '.join(parameters)}"


def published_width(
    name: str,
    published: Callable[[float, float, float], _Published],
    width: _Given | None,
    rkhs_bound: float | None,
    noise_std: float | None,
    delta: float,
) -> _Published | _Given:
    """The given width, or the published width (or a sequence of them).

    Args:
        name: The name of the function, for the message.
        published: Makes the published width from rkhs_bound, noise_std and delta.
        width: The given width; None takes the published one.
        rkhs_bound: B, or None.
        noise_std: The sub-Gaussian constant of the noise, or None.
        delta: The failure probability.

    Raises:
        ValueError: If ``width`` is None, and ``rkhs_bound`` or ``noise_std`` is None too, or
            ``delta`` is not in (0, 1).
    """
    if width is not None:
        return width
    if rkhs_bound is None or noise_std is None:
        numbers = {"rkhs_bound": rkhs_bound, "noise_std": noise_std}
        missing = " and ".join(key for key, value in numbers.items() if value is None)
        raise ValueError(f"{name}(): {missing} must be given unless width is, got None")
    return published(
        rkhs_bound, noise_std, check_delta(delta)
    )  # half of an impossible delta may be possible


def make_model(
    domain: Domain, kernel: Kernel, noise_variance: float, mean: PriorMean | float | None
) -> KernelGP:
    """The prior, with the dtype and on the device of the domain.

    Raises:
        ValueError: If the noise variance is not positive and finite.
    """
    ridge = one_number(noise_variance, "noise_variance")
    return KernelGP(kernel, ridge, mean=mean, dtype=domain.dtype, device=domain.device)


def model_or_fitted(
    name: str,
    domain: Domain,
    kernel: Kernel | Fitted,
    noise_variance: float | None,
    mean: PriorMean | float | None,
    make: Callable[[Domain, Kernel, float, PriorMean | float | None], Any] = make_model,
) -> Any:
    """The prior of an adaptive method, or the `Fitted` kernel as it is.

    Args:
        name: The name of the function whose arguments these are, for the message.
        domain: The domain, which gives dtype and device.
        kernel: A kernel, which needs ``noise_variance``; or `Fitted`, which estimates both numbers.
        noise_variance: The ridge.
        mean: The prior mean.
        make: Makes the prior from a kernel.

    Raises:
        ValueError: If ``noise_variance`` or ``mean`` is given with a `Fitted` kernel, or if
            ``noise_variance`` is missing or impossible with another kernel.
    """
    if isinstance(kernel, Fitted):
        for argument, given in (("noise_variance", noise_variance), ("mean", mean)):
            if given is not None:
                raise ValueError(
                    f"{name}(): {argument} must not be given with a Fitted kernel, which finds it "
                    f"from the data, got {given!r}"
                )
        return kernel
    require_kernel(kernel)
    if noise_variance is None:
        raise _NoNoiseVariance("noise_variance must be one number, got None")
    return make(domain, kernel, one_number(noise_variance, "noise_variance"), mean)

"""Checks of the arguments of this package's functions, and the models and widths made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from gpytorch.kernels import Kernel
from gpytorch.means import Mean
from torch import Tensor

from botorch_ext.algorithms.signatures import complete
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.domains.reading import domain_read
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.kernels.checks import require_kernel
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions
from botorch_ext.strategies.constructor_arguments import Arguments
from botorch_ext.widths import Width, check_delta

_Parameters = ParamSpec("_Parameters")
_Strategy = TypeVar("_Strategy", bound=Strategy)
_Published = TypeVar("_Published", bound=Width | Sequence[Width])

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


_MISSING = "{}() missing 1 required keyword-only argument: {!r}"
_DESIGNED = "what it asks follows from the prior, before anything is observed"
_WHY_NOT_FITTED = {
    "phased_uncertainty_sampling": _DESIGNED,
    "bpe": _DESIGNED,
    "bpe_delay": _DESIGNED,
    "breadthwise_exploration": _DESIGNED,
    "certified_bucb": "its certificates are those of one kernel",
    "regret_balancing": "the regret bounds it balances are those of one kernel",
}


def algorithm(function: Callable[_Parameters, _Strategy]) -> Callable[_Parameters, _Strategy]:
    """Decorates a function of this package, which then shows and checks all of its arguments.

    Its signature and its docstring have the shared arguments by name (see `signatures`). An error
    about an unknown argument suggests the name that was probably meant. An error about a `Fitted`
    kernel says why the function cannot use one. ``domain`` may be the bounds of a box. The strategy
    keeps the name and the arguments of the outermost decorated function.

    Returns:
        The function with the checks, which is given the defaults of shared arguments too. It raises
        a TypeError for an unknown or a missing argument, before anything is computed, and a
        ValueError for a `Fitted` kernel that it cannot use.
    """
    signature = complete(function)
    name, parameters = function.__name__, list(signature.parameters)
    for parameter in parameters:
        _TAKEN_BY.setdefault(parameter, name)
    by_name = [each for each in signature.parameters.values() if each.kind is each.KEYWORD_ONLY]
    defaults = {each.name: each.default for each in by_name if each.default is not each.empty}
    needed = [each.name for each in by_name if each.default is each.empty]

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
        for argument in needed:
            if argument not in kwargs:
                raise TypeError(_MISSING.format(name, argument))
        values = [*map(_as_now, args)], {key: _as_now(each) for key, each in kwargs.items()}
        passed = Arguments.of(function, *values, name)
        try:
            strategy = cast(Any, function)(*args, **defaults | kwargs)
            strategy.arguments.of_function = passed
            return strategy
        except _NoNoiseVariance:
            if "noise_variance" in kwargs:
                raise
        raise TypeError(_MISSING.format(name, "noise_variance"))

    return checked


def _as_now(given: Any) -> Any:
    """The argument as it is now, as users may change kernels, means, numbers and lists later; a
    kernel is copied in float64."""
    if isinstance(given, Kernel):
        return deepcopy(given).double()
    if isinstance(given, list | tuple) and type(given) in (list, tuple):
        return type(given)(map(_as_now, given))
    return deepcopy(given) if isinstance(given, Mean | np.ndarray | Tensor) else given


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
    given: Mapping[str, Any],
) -> Any:
    """The given width, or the published width (or a sequence of them).

    Args:
        name: The name of the function, for the message.
        published: Makes the published width from rkhs_bound, noise_std and delta.
        given: The arguments of the function: ``width``, which is None for the published one,
            ``rkhs_bound``, ``noise_std`` and ``delta``.

    Raises:
        ValueError: If ``width`` is None, and ``rkhs_bound`` or ``noise_std`` is None too, or
            ``delta`` is not in (0, 1).
    """
    if given["width"] is not None:
        return given["width"]
    rkhs_bound, noise_std = (given[key] for key in ("rkhs_bound", "noise_std"))
    if rkhs_bound is None or noise_std is None:
        missing = " and ".join(key for key in ("rkhs_bound", "noise_std") if given[key] is None)
        raise ValueError(f"{name}(): {missing} must be given unless width is, got None")
    return published(
        rkhs_bound, noise_std, check_delta(given["delta"])
    )  # half of an impossible delta may be possible


def taken(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Some of the arguments of a function, by name."""
    return {name: given[name] for name in names}


def options_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a function that a `BoundsStrategy` takes as they are."""
    return taken(given, *(name for name in BoundsOptions.__annotations__ if name in given))


def make_model(domain: Domain, kernel: Kernel, given: Mapping[str, Any]) -> KernelGP:
    """The prior, with the dtype and on the device of the domain.

    Args:
        domain: The domain.
        kernel: The kernel.
        given: The arguments of the function: ``noise_variance``, and ``mean`` where it takes one.

    Raises:
        ValueError: If the noise variance is not positive and finite.
    """
    ridge = one_number(given["noise_variance"], "noise_variance")
    mean = given.get("mean")
    return KernelGP(kernel, ridge, mean=mean, dtype=domain.dtype, device=domain.device)


def model_or_fitted(
    name: str,
    domain: Domain,
    kernel: Kernel | Fitted,
    given: Mapping[str, Any],
    make: Callable[[Domain, Kernel, Mapping[str, Any]], Any] = make_model,
) -> Any:
    """The prior of an adaptive method, or the `Fitted` kernel as it is.

    Args:
        name: The name of the function whose arguments these are, for the message.
        domain: The domain, which gives dtype and device.
        kernel: A kernel, which needs ``noise_variance``; or `Fitted`, which estimates both numbers.
        given: The arguments of the function: ``noise_variance``, the ridge, and ``mean``.
        make: Makes the prior from a kernel.

    Raises:
        ValueError: If ``noise_variance`` or ``mean`` is given with a `Fitted` kernel, or if
            ``noise_variance`` is missing or impossible with another kernel.
    """
    if isinstance(kernel, Fitted):
        for argument in ("noise_variance", "mean"):
            if given[argument] is not None:
                raise ValueError(
                    f"{name}(): {argument} must not be given with a Fitted kernel, which finds it "
                    f"from the data, got {given[argument]!r}"
                )
        return kernel
    require_kernel(kernel)
    if given["noise_variance"] is None:
        raise _NoNoiseVariance("noise_variance must be one number, got None")
    return make(domain, kernel, given)

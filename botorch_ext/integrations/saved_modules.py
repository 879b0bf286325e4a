"""Forms of kernels, their constraints and priors, and prior means: structure by the arguments of
constructors, numbers bit by bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import torch
from botorch.models.kernels.categorical import CategoricalKernel
from gpytorch.constraints import GreaterThan, Interval, LessThan, Positive
from gpytorch.kernels import (
    AdditiveKernel,
    ConstantKernel,
    CosineKernel,
    IndexKernel,
    Kernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    PiecewisePolynomialKernel,
    PolynomialKernel,
    ProductKernel,
    RBFKernel,
    RQKernel,
    ScaleKernel,
)
from gpytorch.means import ConstantMean, LinearMean, ZeroMean
from gpytorch.priors import (
    GammaPrior,
    HalfCauchyPrior,
    HalfNormalPrior,
    LogNormalPrior,
    NormalPrior,
    Prior,
    SmoothedBoxPrior,
    UniformPrior,
)
from gpytorch.utils.transforms import inv_sigmoid, inv_softplus
from torch import Tensor, nn

from botorch_ext.integrations.saved_forms import Form
from botorch_ext.kernels import ActionContextKernel, GroupAdditiveKernel, NuggetKernel, TaskKernel
from botorch_ext.kernels.structure import own_values, set_own_value

_Shape = tuple[int, ...]
_BATCH = {"batch_shape": _Shape}
_ANY = _BATCH | {"active_dims": _Shape | None}
_ARD = _ANY | {"ard_num_dims": int | None}
_SCALED = _ARD | {"lengthscale_prior": Prior | None}
_PARTS = {"kernels": list[Kernel]}
# From a kernel to the arguments it is made with.
_KERNELS: dict[type[Kernel], Mapping[str, Any]] = {
    AdditiveKernel: _PARTS,
    ProductKernel: _PARTS,
    ScaleKernel: _BATCH | {"base_kernel": Kernel, "outputscale_prior": Prior | None},
    RBFKernel: _SCALED,
    MaternKernel: _SCALED | {"nu": float},
    RQKernel: _SCALED,
    CategoricalKernel: _SCALED,
    PiecewisePolynomialKernel: _SCALED | {"q": int},
    PeriodicKernel: _SCALED | {"period_length_prior": Prior | None},
    CosineKernel: _ANY | {"period_length_prior": Prior | None},
    LinearKernel: _ARD | {"variance_prior": Prior | None},
    PolynomialKernel: _ANY | {"power": int, "offset_prior": Prior | None},
    ConstantKernel: _ANY | {"constant_prior": Prior | None},
    IndexKernel: _ANY | {"num_tasks": int, "rank": int},
    ActionContextKernel: {
        "action_kernel": Kernel,
        "context_kernel": Kernel,
        "action_columns": _Shape,
        "context_columns": _Shape | None,
        "combination": Literal["product", "sum"],
    },
    GroupAdditiveKernel: {
        "base_kernel": Kernel,
        "groups": tuple[_Shape, ...],
        "dim": int,
    },
    NuggetKernel: {"active_dims": _Shape | None, "variance": float},
    TaskKernel: {"active_dims": _Shape | None, "covariance": Tensor},
}
_MEANS: dict[type[nn.Module], Mapping[str, Any]] = {
    ZeroMean: _BATCH,
    ConstantMean: _BATCH,
    LinearMean: _BATCH | {"input_size": int, "bias": bool},
}
# Arguments that say how many numbers a module has: not more than are in its state.
_SIZES = ("ard_num_dims", "num_tasks", "rank", "dim", "input_size")
_TRANSFORMS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "softplus": (nn.Softplus(), inv_softplus),
    "sigmoid": (torch.sigmoid, inv_sigmoid),
    "exp": (torch.exp, torch.log),
}
_PRIORS: dict[type[Prior], tuple[str, ...]] = {
    GammaPrior: ("concentration", "rate"),
    HalfCauchyPrior: ("scale",),
    HalfNormalPrior: ("scale",),
    LogNormalPrior: ("loc", "scale"),
    NormalPrior: ("loc", "scale"),
    SmoothedBoxPrior: ("a", "b", "sigma"),
    UniformPrior: ("low", "high"),
}
# Where the constructor has another word.
_RENAMED = {"low": "a", "high": "b"}


def forms_of_modules() -> Iterator[Form]:
    """Of every module that may be made from a tree."""
    for kind, arguments in (*_KERNELS.items(), *_MEANS.items()):
        yield form_of_module(kind, arguments)
    bounds = {"lower_bound": Tensor, "upper_bound": Tensor, "initial_value": Tensor | None}
    for kind in (GreaterThan, Interval, LessThan, Positive):
        parts = bounds | {"transform": Literal["softplus", "sigmoid", "exp"] | None}
        yield Form(kind, kind.__name__, parts, _constraint_taken, _making_constraint(kind))
    for kind, names in _PRIORS.items():
        parts = dict.fromkeys(names, Tensor)
        yield Form(kind, kind.__name__, parts, _prior_taken(names), _making_prior(kind))


def form_of_module(
    kind: type[nn.Module], arguments: Mapping[str, Any], name: str | None = None
) -> Form:
    """Of a module that is made with these arguments, which are its attributes, given with their
    types, and then gets its numbers and constraints."""
    parts = dict(arguments) | {"values": dict[str, Tensor], "constraints": dict[str, Interval]}
    return Form(kind, name or kind.__name__, parts, _taken(arguments), _making(kind))


def form_of_kernel(kind: type[Kernel], own: Mapping[str, Any], name: str | None = None) -> Form:
    """As `form_of_module`, of a kernel that passes other arguments on to GPyTorch's."""
    return form_of_module(kind, dict(_SCALED if kind.has_lengthscale else _ANY) | dict(own), name)


def _taken(arguments: Mapping[str, Any]) -> Callable[[Any], dict[str, Any]]:
    def take(module: Any) -> dict[str, Any]:
        priors = {name: entry[0] for name, entry in getattr(module, "_priors", {}).items()}
        unknown = sorted(priors.keys() - arguments.keys())
        if unknown:
            raise ValueError(f"a {type(module).__name__} cannot be saved with {unknown[0]}")
        state = {name: _argument(module, name, priors) for name in arguments}
        values = {name: value.detach() for name, value in own_values(module).items()}
        constraints = dict(getattr(module, "_constraints", {}))
        return state | {"values": values, "constraints": constraints}

    return take


def _argument(module: Any, name: str, priors: Mapping[str, Prior]) -> Any:
    if name.endswith("_prior"):
        return priors.get(name)
    if isinstance(module, LinearMean):
        *batch, size, _ = module.weights.shape
        return {"batch_shape": tuple(batch), "input_size": size, "bias": module.bias is not None}[
            name
        ]
    if name == "batch_shape":
        # Of a multiple the other one is that of its base as well.
        return tuple(module._batch_shape if isinstance(module, Kernel) else module.batch_shape)
    if name == "active_dims":
        return None if module.active_dims is None else tuple(module.active_dims.tolist())
    if name == "kernels":
        return list(module.kernels)
    if isinstance(module, IndexKernel) and name in ("num_tasks", "rank"):
        return module.covar_factor.shape[-2 if name == "num_tasks" else -1]
    if isinstance(module, GroupAdditiveKernel) and name == "dim":
        return module.masks.shape[-1]
    value = getattr(module, name)
    if isinstance(module, TaskKernel | NuggetKernel):  # `values` has it as well, bit by bit
        return value.detach().double() if isinstance(module, TaskKernel) else float(value)
    return value


def _making(kind: Callable[..., Any]) -> Callable[..., Any]:
    def make(
        values: dict[str, Tensor], constraints: dict[str, Interval], **arguments: Any
    ) -> nn.Module:
        sizes = [*arguments.get("batch_shape", ()), *(arguments.get(name) or 1 for name in _SIZES)]
        given = sum(value.numel() for value in values.values())
        if not all(size >= 0 for size in sizes) or math.prod(sizes) > max(given, 1):
            raise ValueError(f"values must be as many as its sizes {sizes} say, got {given}")
        if "batch_shape" in arguments:
            arguments["batch_shape"] = torch.Size(arguments["batch_shape"])
        # GPyTorch does not take None everywhere where it is the default.
        options = {name: given for name, given in arguments.items() if given is not None}
        module = kind(*options.pop("kernels", ()), **options)
        known = getattr(module, "_constraints", {}).keys()
        if constraints.keys() != known:
            raise ValueError(f"constraints must be {sorted(known)}, got {sorted(constraints)}")
        for name, constraint in constraints.items():
            module.register_constraint(name.removesuffix("_constraint"), constraint)
        shapes = {name: value.shape for name, value in own_values(module).items()}
        got = {name: value.shape for name, value in values.items()}
        if got != shapes or not all(value.is_floating_point() for value in values.values()):
            raise ValueError(f"values must have the shapes {shapes}, got {got}")
        for name, value in values.items():
            set_own_value(module, name, value)
        return module

    return make


def _constraint_taken(constraint: Any) -> dict[str, Any]:
    initial = constraint._initial_value
    return {
        "lower_bound": constraint.lower_bound,
        "upper_bound": constraint.upper_bound,
        "initial_value": None if initial is None else torch.as_tensor(initial),
        "transform": _transform_name(constraint._transform, constraint._inv_transform),
    }


def _transform_name(transform: Any, inverse: Any) -> str | None:
    if transform is None:
        return None
    for name, (known, known_inverse) in _TRANSFORMS.items():
        is_softplus = type(transform) is nn.Softplus and isinstance(known, nn.Softplus)
        same = repr(transform) == repr(known) if is_softplus else transform is known
        if same and inverse is known_inverse:
            return name
    raise ValueError(f"a constraint cannot be saved with the transform {transform!r}")


def _making_constraint(kind: type[Interval]) -> Callable[..., Interval]:
    def make(
        lower_bound: Tensor,
        upper_bound: Tensor,
        initial_value: Tensor | None,
        transform: str | None,
    ) -> Interval:
        there, back = _TRANSFORMS[transform] if transform else (None, None)
        options: Any = {"transform": there, "inv_transform": back, "initial_value": initial_value}
        bounds = {"lower_bound": lower_bound, "upper_bound": upper_bound}
        if kind is Positive:
            made = Positive(**options)
        elif kind is GreaterThan:
            made = GreaterThan(lower_bound, **options)
        elif kind is LessThan:
            made = LessThan(upper_bound, **options)
        else:
            made = Interval(lower_bound, upper_bound, **options)
        for name, bound in bounds.items():
            setattr(made, name, bound)
        return made

    return make


def _prior_taken(names: tuple[str, ...]) -> Callable[[Any], dict[str, Any]]:
    def take(prior: Any) -> dict[str, Any]:
        if prior._transform is not None:
            raise ValueError(f"a {type(prior).__name__} cannot be saved with a transform")
        return {name: torch.as_tensor(getattr(prior, name)) for name in names}

    return take


def _making_prior(kind: Callable[..., Prior]) -> Callable[..., Prior]:
    return lambda **numbers: kind(
        **{_RENAMED.get(key, key): given for key, given in numbers.items()}
    )

"""Forms of kernels, their constraints and prior means: structure by the arguments of constructors,
numbers bit by bit. Priors of hyperparameters are left out: no method looks at those of a kernel."""

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
from gpytorch.utils.transforms import inv_sigmoid, inv_softplus
from torch import Tensor, nn

from botorch_ext.integrations.saved_forms import Form, attribute
from botorch_ext.kernels import ActionContextKernel, GroupAdditiveKernel, NuggetKernel, TaskKernel
from botorch_ext.kernels.structure import own_values, set_own_value

_Shape = tuple[int, ...]
# From an argument to its type, and from a parameter to its shape without the batch: numbers, or
# arguments that have them (None is 1).
_Arguments = Mapping[str, Any]
_Sizes = Mapping[str, tuple[int | str, ...]]

_ANY = {"batch_shape": _Shape, "active_dims": _Shape | None}
_ARD = _ANY | {"ard_num_dims": int | None}
_EACH = (1, "ard_num_dims")
_SCALED = {"raw_lengthscale": _EACH}
_KERNELS: dict[type[Kernel], tuple[_Arguments, _Sizes]] = {
    AdditiveKernel: ({"kernels": list[Kernel]}, {}),
    ProductKernel: ({"kernels": list[Kernel]}, {}),
    ScaleKernel: (_ANY | {"base_kernel": Kernel}, {"raw_outputscale": ()}),
    RBFKernel: (_ARD, _SCALED),
    MaternKernel: (_ARD | {"nu": float}, _SCALED),
    RQKernel: (_ARD, _SCALED | {"raw_alpha": (1,)}),
    CategoricalKernel: (_ARD, _SCALED),
    PiecewisePolynomialKernel: (_ARD | {"q": int}, _SCALED),
    PeriodicKernel: (_ARD, _SCALED | {"raw_period_length": _EACH}),
    CosineKernel: (_ANY, {"raw_period_length": (1, 1)}),
    LinearKernel: (_ARD, {"raw_variance": _EACH}),
    PolynomialKernel: (_ANY | {"power": int}, {"raw_offset": (1,)}),
    ConstantKernel: (_ANY, {"raw_constant": (1,)}),
    IndexKernel: (
        _ANY | {"num_tasks": int, "rank": int},
        {"covar_factor": ("num_tasks", "rank"), "raw_var": ("num_tasks",)},
    ),
    ActionContextKernel: (
        {
            "action_kernel": Kernel,
            "context_kernel": Kernel,
            "action_columns": _Shape,
            "context_columns": _Shape | None,
            "combination": Literal["product", "sum"],
        },
        {},
    ),
    GroupAdditiveKernel: (
        {"base_kernel": Kernel, "groups": tuple[_Shape, ...], "dim": int},
        {"masks": ("rows", "dim")},
    ),
    NuggetKernel: ({"active_dims": _Shape | None, "variance": float}, {"variance": ()}),
    TaskKernel: (
        {"active_dims": _Shape | None, "covariance": Tensor},
        {"covariance": ("num_tasks", "num_tasks")},
    ),
}
# Prior means have no batch dimensions.
_MEANS: dict[type[nn.Module], tuple[_Arguments, _Sizes]] = {
    ZeroMean: ({}, {}),
    ConstantMean: ({}, {"raw_constant": ()}),
    LinearMean: ({"input_size": int, "bias": bool}, {"weights": ("input_size", 1), "bias": (1,)}),
}
_TRANSFORMS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "softplus": (nn.Softplus(), inv_softplus),
    "sigmoid": (torch.sigmoid, inv_sigmoid),
    "exp": (torch.exp, torch.log),
}
# From a constraint to the bounds that are its own to choose, and those of all.
_BOUNDS: dict[type[Interval], tuple[tuple[str, ...], Mapping[str, float]]] = {
    Interval: (("lower_bound", "upper_bound"), {}),
    GreaterThan: (("lower_bound",), {"upper_bound": math.inf}),
    LessThan: (("upper_bound",), {"lower_bound": -math.inf}),
    Positive: ((), {"lower_bound": 0.0, "upper_bound": math.inf}),
}


def forms_of_modules() -> Iterator[Form]:
    """Of every module that may be made from a tree."""
    for kind, (arguments, sizes) in (*_KERNELS.items(), *_MEANS.items()):
        yield _form(kind, arguments, kind.__name__, _making(kind, sizes))
    bounds = {"lower_bound": Tensor, "upper_bound": Tensor, "initial_value": Tensor | None}
    for kind in _BOUNDS:
        parts = bounds | {"transform": Literal["softplus", "sigmoid", "exp"] | None}
        yield Form(kind, kind.__name__, parts, _constraint_taken, _making_constraint(kind))


def form_of_module(kind: type[nn.Module], arguments: _Arguments, name: str) -> Form:
    """Of a module of the user that is made with these arguments, which are its attributes, given
    with their types, and then gets its numbers and constraints."""
    return _form(kind, arguments, name, _making_own(kind))


def form_of_kernel(kind: type[Kernel], own: _Arguments, name: str) -> Form:
    """As `form_of_module`, of a kernel that passes other arguments on to GPyTorch's."""
    return form_of_module(kind, (_ARD if kind.has_lengthscale else _ANY) | dict(own), name)


def _form(kind: type, arguments: _Arguments, name: str, make: Callable[..., Any]) -> Form:
    def take(module: Any) -> dict[str, Any]:
        state = {argument: _argument(module, argument) for argument in arguments}
        values = {each: value.detach() for each, value in own_values(module).items()}
        constraints = dict(getattr(module, "_constraints", {}))
        return state | {"values": values, "constraints": constraints}

    parts = dict(arguments) | {"values": dict[str, Tensor], "constraints": dict[str, Interval]}
    return Form(kind, name, parts, take, make)


def _argument(module: Any, name: str) -> Any:
    kind = type(module)
    if kind is LinearMean:
        return module.weights.shape[-2] if name == "input_size" else module.bias is not None
    if kind is IndexKernel and name in ("num_tasks", "rank"):
        return module.covar_factor.shape[-2 if name == "num_tasks" else -1]
    if kind in (GroupAdditiveKernel, NuggetKernel) and module.batch_shape:
        raise ValueError(f"a {kind.__name__} must not be batched, got {tuple(module.batch_shape)}")
    if kind is GroupAdditiveKernel and name == "dim":
        return module.masks.shape[-1]
    if isinstance(module, Kernel) and name == "batch_shape":
        return tuple(module._batch_shape)  # of a multiple the other one is that of its base as well
    if isinstance(module, Kernel) and name == "active_dims":
        return None if module.active_dims is None else tuple(module.active_dims.tolist())
    value = attribute(module, name)
    if name == "kernels":
        return list(value)
    # `values` has these as well, bit by bit.
    if kind is NuggetKernel and name == "variance":
        return float(value)
    return value.detach().double() if kind is TaskKernel and name == "covariance" else value


def _making(kind: Callable[..., Any], sizes: _Sizes) -> Callable[..., Any]:
    def make(
        values: dict[str, Tensor], constraints: dict[str, Interval], **arguments: Any
    ) -> nn.Module:
        # Before the constructor, which would allocate whatever it is asked for.
        _require_shapes(values, _expected(sizes, arguments))
        if min(arguments.get("active_dims") or (0,)) < 0:
            raise ValueError(f"active_dims must not be negative, got {arguments['active_dims']}")
        module = _called(kind, arguments)
        for name, buffer in module._buffers.items():
            if name in values and not torch.equal(buffer.to(values[name].dtype), values[name]):
                raise ValueError(f"{name} must be that of its arguments")
        return _completed(module, values, constraints)

    return make


def _making_own(kind: Callable[..., Any]) -> Callable[..., Any]:
    def make(
        values: dict[str, Tensor], constraints: dict[str, Interval], **arguments: Any
    ) -> nn.Module:
        batch, given = arguments.get("batch_shape", ()), sum(map(Tensor.numel, values.values()))
        if isinstance(batch, tuple) and math.prod(batch) > max(given, 1):
            raise ValueError(f"values must be as many as the batch {batch} says, got {given}")
        if "raw_lengthscale" in values and "ard_num_dims" in arguments:
            known = {name: values[name] for name in _SCALED}
            _require_shapes(known, _expected(_SCALED, arguments))
        module = _called(kind, arguments)
        own = own_values(module)
        _require_shapes(values, {name: tuple(value.shape) for name, value in own.items()})
        return _completed(module, values, constraints)

    return make


def _expected(sizes: _Sizes, arguments: _Arguments) -> dict[str, _Shape]:
    """The shape of each value of a module with these arguments."""
    known = dict(arguments)
    if "groups" in known:
        known["rows"] = max(known["dim"], len(known["groups"]))
    if "covariance" in known:
        *known["batch_shape"], _, known["num_tasks"] = known["covariance"].shape
    batch = tuple(known.get("batch_shape", ()))
    shapes = {}
    for name, entries in sizes.items():
        if known.get(name) is False:  # a mean without bias
            continue
        own = (known[size] if isinstance(size, str) else size for size in entries)
        shapes[name] = (*batch, *(1 if size is None else size for size in own))
        if min(shapes[name], default=1) < 1:
            raise ValueError(f"{name} must have at least one number, got shape {shapes[name]}")
    return shapes


def _require_shapes(values: dict[str, Tensor], shapes: Mapping[str, _Shape]) -> None:
    got = {name: tuple(value.shape) for name, value in values.items()}
    if got != shapes:
        raise ValueError(f"values must have the shapes {shapes}, got {got}")


def _called(kind: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    # GPyTorch does not take None everywhere where it is the default.
    options = {name: given for name, given in arguments.items() if given is not None}
    if "batch_shape" in options:
        options["batch_shape"] = torch.Size(options["batch_shape"])
    return kind(*options.pop("kernels", ()), **options)


def _completed(
    module: Any, values: dict[str, Tensor], constraints: dict[str, Interval]
) -> nn.Module:
    """The module with these values, which are those that it has, and constraints on them."""
    for name, value in values.items():
        if not (value.is_floating_point() and bool(value.isfinite().all())):
            raise ValueError(f"{name} must be finite floating-point numbers, got {value.dtype}")
    missing = getattr(module, "_constraints", {}).keys() - constraints.keys()
    if missing:
        raise ValueError(f"constraints must have {sorted(missing)}, got {sorted(constraints)}")
    for name, constraint in constraints.items():
        parameter = name.removesuffix("_constraint")
        if not name.endswith("_constraint") or parameter not in values:
            raise ValueError(f"constraints must be those of {sorted(values)}, got {name!r}")
        shape, initial = values[parameter].shape, constraint._initial_value
        for bound in (constraint.lower_bound, constraint.upper_bound, initial):
            if bound is not None and torch.broadcast_shapes(bound.shape, shape) != shape:
                raise ValueError(f"{name} must have the shape {tuple(shape)}, got {bound.shape}")
        constraint._initial_value = None  # or the values would be looked at that it has now
        module.register_constraint(parameter, constraint)
        constraint._initial_value = initial
    for name, value in values.items():
        set_own_value(module, name, value)
    return module


# --- constraints ----------------------------------------------------------------------------------


def _constraint_taken(constraint: Any) -> dict[str, Any]:
    initial = constraint._initial_value  # that of the raw parameter
    return {
        "lower_bound": constraint.lower_bound,
        "upper_bound": constraint.upper_bound,
        "initial_value": None if initial is None else torch.as_tensor(initial),
        "transform": _transform_name(constraint._transform, constraint._inv_transform),
    }


def _transform_name(transform: Any, inverse: Any) -> str | None:
    if transform is None:
        return None
    if transform is nn.functional.softplus:
        transform = _TRANSFORMS["softplus"][0]
    for name, (known, known_inverse) in _TRANSFORMS.items():
        is_softplus = type(transform) is nn.Softplus and isinstance(known, nn.Softplus)
        same = repr(transform) == repr(known) if is_softplus else transform is known
        if same and inverse is known_inverse:
            return name
    raise ValueError(f"a constraint cannot be saved with the transform {transform!r}")


def _making_constraint(kind: type[Interval]) -> Callable[..., Interval]:
    chosen, given = _BOUNDS[kind]

    def make(initial_value: Tensor | None, transform: str | None, **bounds: Tensor) -> Interval:
        lower, upper = bounds["lower_bound"], bounds["upper_bound"]
        if lower.ndim and upper.ndim and lower.shape != upper.shape:
            raise ValueError(f"bounds must have one shape, got {lower.shape} and {upper.shape}")
        for name, bound in bounds.items():
            allowed = bound.isfinite() if name in chosen else bound == given[name]
            if not (bound.is_floating_point() and bound.numel() and bool(allowed.all())):
                raise ValueError(f"{name} must be a bound of {kind.__name__}, got {bound.dtype}")
        if not bool((lower < upper).all()):
            raise ValueError("lower_bound must be below upper_bound")
        if initial_value is not None and (
            initial_value.dtype == torch.bool or not bool(initial_value.isfinite().all())
        ):
            raise ValueError(f"initial_value must be finite numbers, got {initial_value.dtype}")
        there, back = _TRANSFORMS[transform] if transform else (None, None)
        options: Any = {"transform": there, "inv_transform": back}
        made = kind(*(bounds[name] for name in chosen), **options)
        for name, bound in bounds.items():
            setattr(made, name, bound)
        made._initial_value = initial_value
        return made

    return make

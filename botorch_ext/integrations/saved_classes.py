"""The table of classes whose objects may be saved as arguments, and how they are saved."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from typing import Any, Literal, get_type_hints

import numpy as np
import scipy.stats
import torch
from botorch.models.kernels.categorical import CategoricalKernel
from gpytorch import constraints, kernels, means
from gpytorch.constraints import Interval
from gpytorch.kernels import Kernel
from gpytorch.utils.transforms import inv_sigmoid, inv_softplus
from scipy.stats.distributions import rv_frozen
from torch import Tensor, nn

from botorch_ext import delays, widths
from botorch_ext.domains import Box, ContextSpace, FiniteSet, Space, host
from botorch_ext.domains.choices import Choice, Fixed, Ordered
from botorch_ext.domains.parameters import Integer, Real
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.kernels import ActionContextKernel, GroupAdditiveKernel, NuggetKernel, TaskKernel
from botorch_ext.kernels.smoothness import HolderConstants
from botorch_ext.kernels.structure import own_values, set_own_value
from botorch_ext.models import CandidateModels
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.kernel_variants import GrowingFamily
from botorch_ext.models.specification import candidate_list
from botorch_ext.strategies import Terms
from botorch_ext.studies.plain_arguments import defaults_of_class


@dataclass(frozen=True)
class SavedClass:
    """How objects of one class are saved: by the arguments with which they are made.

    Args:
        kind: The class; objects of its subclasses are not included.
        hints: The type of each argument, by name.
        taken: Functions that read an argument from an object, by the name of the argument; other
            arguments are read from the attribute of the same name.
        make: The function that makes an object from the arguments, as keywords; None for the class.
        name: The name of the class in a text; None for its own name.
    """

    kind: type
    hints: Mapping[str, Any]
    taken: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    make: Callable[..., Any] | None = None
    name: str | None = None

    @property
    def called(self) -> str:
        """The name of the class in a text."""
        return self.kind.__name__ if self.name is None else self.name

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults of the arguments that have one, by name."""
        if self.make is not None:
            return {}
        defaults = defaults_of_class(self.kind)
        return {name: defaults[name] for name in self.hints if name in defaults}

    @classmethod
    def of_user(cls, kind: type, name: str) -> SavedClass:
        """Describe a class of the user by the parameters of its constructor.

        Args:
            kind: The class.
            name: The name of the class in a text.

        Returns:
            The description.

        Raises:
            ValueError: If the class shows no parameters.
        """
        if is_dataclass(kind):
            return cls(kind, _annotated(kind), name=name)
        parameters = list(inspect.signature(kind).parameters.values())
        is_module, known = issubclass(kind, nn.Module), {}
        names = [
            each.name
            for each in parameters
            if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
            and not (is_module and each.name.endswith(("_prior", "_constraint")))
        ]
        if issubclass(kind, Kernel):
            known = _types_of(_SCALED if kind.has_lengthscale else _PLACED)
            if any(each.kind is each.VAR_KEYWORD for each in parameters):  # passed on to GPyTorch
                names = [*known, *names]
        hints = {each: known.get(each, Any) for each in names}
        return _module(kind, hints, name) if is_module else cls(kind, hints, name=name)

    def arguments_of(self, value: Any) -> dict[str, Any]:
        """The arguments with which an object was made.

        Args:
            value: The object.

        Returns:
            The arguments by name.

        Raises:
            ValueError: If the object does not show an argument.
        """
        return {
            name: self.taken[name](value) if name in self.taken else _attribute(value, name)
            for name in self.hints
        }

    def made(self, arguments: Mapping[str, Any]) -> Any:
        """Make an object.

        Args:
            arguments: The arguments by name.

        Returns:
            The object.
        """
        return (self.kind if self.make is None else self.make)(**arguments)


def saved_classes() -> Iterator[SavedClass]:
    """Iterate over the table: all classes that are allowed without `allow_argument`.

    Yields:
        A class.
    """
    yield from _VALUES
    yield from (SavedClass(kind, _annotated(kind)) for kind in _ANNOTATED)
    yield from (_module(kind, _types_of(arguments)) for kind, arguments in _MODULES.items())
    yield from map(_constraint, _CONSTRAINTS)
    yield from _MODELS


def _annotated(kind: type) -> dict[str, Any]:
    """The parameters of a constructor that are annotated as attributes of its objects."""
    hints = get_type_hints(kind)
    return {name: hints[name] for name in inspect.signature(kind).parameters if name in hints}


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name)
    except AttributeError:
        raise ValueError(
            f"a {type(value).__name__} must have an attribute {name}, as its constructor has a "
            "parameter of that name"
        ) from None


# --- tensors, domains, distributions and settings -------------------------------------------------

# The most dimensions of a tensor; PyTorch takes seconds to print one with more.
_MOST_DIMS = 8
_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float64, torch.float32, torch.int64, torch.int32, torch.bool)
}
_DISTRIBUTIONS = {
    name: getattr(scipy.stats, name)
    for name in (
        *("bernoulli", "betabinom", "binom", "geom", "logser", "nbinom", "poisson", "randint"),
        *("zipf", "beta", "chi2", "erlang", "expon", "exponweib", "gamma", "halfnorm", "invgamma"),
        *("invgauss", "lognorm", "lomax", "pareto", "triang", "truncnorm", "uniform"),
        "weibull_min",
    )
}
_ANNOTATED: tuple[Any, ...] = (
    *(Real, Integer, Choice, Ordered),
    *(Box, FiniteSet, ContextSpace, Fitted, Particles, Prior, Terms, HolderConstants),
    *(
        kind
        for room in (widths, delays)
        for kind in (getattr(room, name) for name in room.__all__)
        # Observed delays are not an argument, and SciPy's distributions have their own form.
        if is_dataclass(kind) and kind not in (delays.SeenDelays, delays.FromScipy)
    ),
)


def _dtype_name(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise ValueError(f"a dtype must be one of {sorted(_DTYPES)}, got {name}")
    return name


def _numbers(tensor: Tensor) -> list[Any]:
    if tensor.requires_grad or tensor.device.type != "cpu" or tensor.ndim > _MOST_DIMS:
        raise ValueError(
            f"a tensor must be on the CPU, need no gradient and have at most {_MOST_DIMS} "
            f"dimensions, got {tuple(tensor.shape)} on {tensor.device}"
        )
    return tensor.reshape(-1).tolist()


def _tensor(dtype: str, shape: list[int], values: list[float]) -> Tensor:
    # A tensor without numbers can have a large shape, whose rows would be listed one by one.
    room = max(len(values), 10**4)
    if len(shape) > _MOST_DIMS or math.prod(size or 1 for size in shape) > room:
        raise ValueError(f"shape must be of {_MOST_DIMS} dimensions and {room} numbers at most")
    if math.prod(shape) != len(values):
        raise ValueError(f"values must be as many as the shape {shape} says, got {len(values)}")
    return host.tensor(values, dtype=_DTYPES[dtype]).reshape(shape)


_NUMBERS = {"dtype": str, "shape": list[int], "values": list[bool | int | float]}
_OF_TENSOR = {
    "dtype": lambda tensor: _dtype_name(tensor.dtype),
    "shape": lambda tensor: list(tensor.shape),
    "values": _numbers,
}
_OF_ARRAY = {
    "dtype": lambda array: _dtype_name(torch.as_tensor(array, device="cpu").dtype),
    "shape": lambda array: list(array.shape),
    "values": lambda array: array.reshape(-1).tolist(),
}
_VALUES = (
    SavedClass(tuple, {"parts": list[Any]}, {"parts": list}, lambda parts: tuple(parts)),
    SavedClass(
        dict,
        {"pairs": list[list[Any]]},
        {"pairs": lambda value: [list(pair) for pair in value.items()]},
        lambda pairs: dict(pairs),
    ),
    SavedClass(torch.dtype, {"name": str}, {"name": _dtype_name}, lambda name: _DTYPES[name]),
    SavedClass(Tensor, _NUMBERS, _OF_TENSOR, _tensor),
    SavedClass(
        np.ndarray, _NUMBERS, _OF_ARRAY, lambda **numbers: _tensor(**numbers).numpy(), "array"
    ),
    *(
        SavedClass(
            kind,
            {"name": str, "args": tuple[float, ...], "kwds": dict[str, float]},
            {"name": lambda frozen: frozen.dist.name},
            lambda name, args, kwds: _DISTRIBUTIONS[name](*args, **kwds),
        )
        for kind in (type(scipy.stats.poisson(1.0)), type(scipy.stats.expon()))
    ),
    SavedClass(Fixed, {"value": Any}, name="FixedParameter"),  # delays have a Fixed
    SavedClass(
        Space,
        {
            "parameters": dict[str, Real | Integer | Choice | Fixed],
            "constraints": Any,
            "conditions": dict[str, Any],
            "dtype": torch.dtype,
        },
        {
            "constraints": lambda space: space._given_constraints,
            "conditions": lambda space: space.named_conditions,
        },
    ),
    SavedClass(delays.FromScipy, {"distribution": rv_frozen}),
)

# --- kernels, prior means and constraints ---------------------------------------------------------
# They are made of the arguments of their constructors, and then get their parameters and buffers,
# bit by bit, and their constraints. Priors are left out: no method looks at those of a kernel.

_Shape = tuple[int, ...]
# Types of the arguments of constructors; a name means the same in all of them.
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("dim", "input_size", "num_tasks", "power", "q", "rank"), int),
    **dict.fromkeys(("action_kernel", "base_kernel", "context_kernel"), Kernel),
    **dict.fromkeys(("active_dims", "context_columns"), _Shape | None),
    **dict.fromkeys(("action_columns", "batch_shape"), _Shape),
    **dict.fromkeys(("nu", "variance"), float),
    "ard_num_dims": int | None,
    "bias": bool,
    "combination": Literal["product", "sum"],
    "covariance": Tensor,
    "groups": tuple[_Shape, ...],
    "kernels": list[Kernel],
}
_PLACED = ("batch_shape", "active_dims")
_SCALED = (*_PLACED, "ard_num_dims")
_MODULES: dict[type[nn.Module], tuple[str, ...]] = {
    kernels.AdditiveKernel: ("kernels",),
    kernels.ProductKernel: ("kernels",),
    kernels.ScaleKernel: (*_PLACED, "base_kernel"),
    kernels.RBFKernel: _SCALED,
    kernels.MaternKernel: (*_SCALED, "nu"),
    kernels.RQKernel: _SCALED,
    CategoricalKernel: _SCALED,
    kernels.PiecewisePolynomialKernel: (*_SCALED, "q"),
    kernels.PeriodicKernel: _SCALED,
    kernels.CosineKernel: _PLACED,
    kernels.LinearKernel: _SCALED,
    kernels.PolynomialKernel: (*_PLACED, "power"),
    kernels.ConstantKernel: _PLACED,
    kernels.IndexKernel: (*_PLACED, "num_tasks", "rank"),
    ActionContextKernel: (
        *("action_kernel", "context_kernel"),
        *("action_columns", "context_columns", "combination"),
    ),
    GroupAdditiveKernel: ("base_kernel", "groups", "dim"),
    NuggetKernel: ("active_dims", "variance"),
    TaskKernel: ("active_dims", "covariance"),
    means.ZeroMean: (),
    means.ConstantMean: (),
    means.LinearMean: ("input_size", "bias"),
}


def _groups(kernel: GroupAdditiveKernel) -> tuple[_Shape, ...]:
    if kernel.batch_shape:
        raise ValueError(f"a {type(kernel).__name__} must not be batched")
    return kernel.groups


# Arguments that are not the attributes of their name.
_TAKEN: dict[type[nn.Module], dict[str, Callable[[Any], Any]]] = {
    Kernel: {
        # The batch shape of a multiple is that of its base as well.
        "batch_shape": lambda kernel: tuple(kernel._batch_shape),
        "active_dims": lambda kernel: (
            None if kernel.active_dims is None else tuple(kernel.active_dims.tolist())
        ),
    },
    kernels.AdditiveKernel: {"kernels": lambda kernel: list(kernel.kernels)},
    kernels.ProductKernel: {"kernels": lambda kernel: list(kernel.kernels)},
    kernels.IndexKernel: {
        "num_tasks": lambda kernel: kernel.covar_factor.shape[-2],
        "rank": lambda kernel: kernel.covar_factor.shape[-1],
    },
    GroupAdditiveKernel: {"groups": _groups, "dim": lambda kernel: kernel.masks.shape[-1]},
    NuggetKernel: {"variance": lambda kernel: float(kernel.variance)},
    TaskKernel: {"covariance": lambda kernel: kernel.covariance.detach().double()},
    means.LinearMean: {
        "input_size": lambda mean: mean.weights.shape[-2],
        "bias": lambda mean: mean.bias is not None,
    },
}


def _types_of(arguments: tuple[str, ...]) -> dict[str, Any]:
    return {name: _TYPES[name] for name in arguments}


def _module(kind: type[nn.Module], hints: dict[str, Any], name: str | None = None) -> SavedClass:
    sizes = [each for each, hint in hints.items() if hint is not Any]

    def make(
        values: dict[str, Tensor], constraints: dict[str, Interval], **arguments: Any
    ) -> nn.Module:
        _require_room({each: arguments[each] for each in sizes}, values)
        # GPyTorch does not take None everywhere where it is the default.
        given = {each: value for each, value in arguments.items() if value is not None}
        if "batch_shape" in given:
            given["batch_shape"] = torch.Size(given["batch_shape"])
        module = kind(*given.pop("kernels", ()), **given)
        _set_values_and_constraints(module, values, constraints)
        return module

    taken = {
        "values": lambda module: {key: each.detach() for key, each in own_values(module).items()},
        "constraints": lambda module: dict(getattr(module, "_constraints", {})),
    }
    for base, parts in _TAKEN.items():
        if kind is base or (base is Kernel and issubclass(kind, Kernel)):
            taken |= parts
    hints = hints | {"values": dict[str, Tensor], "constraints": dict[str, Interval]}
    return SavedClass(kind, hints, taken, make, name)


def _require_room(arguments: Mapping[str, Any], values: dict[str, Tensor]) -> None:
    """A ValueError for arguments of which a constructor makes more numbers than the values are."""
    sizes = [arguments.get(name) for name in ("ard_num_dims", "input_size", "num_tasks", "rank")]
    sizes += [*arguments.get("batch_shape", ()), *[arguments.get("dim")] * 2]  # dim x dim
    given = max(sum(map(Tensor.numel, values.values())), 1)
    if math.prod(size or 1 for size in sizes) > given:
        raise ValueError(f"values must be as many as its arguments say, got {given}")
    if min(arguments.get("active_dims") or (0,)) < 0:
        raise ValueError(f"active_dims must not be negative, got {arguments['active_dims']}")


def _set_values_and_constraints(
    module: Any, values: dict[str, Tensor], constraints: dict[str, Interval]
) -> None:
    shapes = {name: tuple(value.shape) for name, value in own_values(module).items()}
    if {name: tuple(value.shape) for name, value in values.items()} != shapes:
        raise ValueError(f"values must have the shapes {shapes}, got those of {sorted(values)}")
    for name, value in values.items():
        if not (value.is_floating_point() and value.numel() and bool(value.isfinite().all())):
            raise ValueError(f"{name} must be finite floating-point numbers, got {value.dtype}")
    for name, constraint in constraints.items():
        parameter = name.removesuffix("_constraint")
        shape, initial = shapes[parameter], constraint._initial_value
        for bound in (constraint.lower_bound, constraint.upper_bound, initial):
            if bound is None:
                continue
            if bound.dtype == torch.bool or torch.broadcast_shapes(bound.shape, shape) != shape:
                raise ValueError(f"{name} must be numbers of shape {shape}, got {bound.dtype}")
        constraint._initial_value = None  # or the parameter would be set to it
        module.register_constraint(parameter, constraint)
        constraint._initial_value = initial
    for name, value in values.items():
        set_own_value(module, name, value)


_CONSTRAINTS = (Interval, constraints.GreaterThan, constraints.LessThan, constraints.Positive)
_OF_CONSTRAINT = {
    "lower_bound": Tensor,
    "upper_bound": Tensor,
    "initial_value": Tensor | None,  # of the raw parameter
    "transform": Literal["softplus", "sigmoid", "exp"] | None,
}
_TRANSFORMS: dict[str | None, tuple[Any, Any]] = {
    None: (None, None),
    "softplus": (nn.Softplus(), inv_softplus),
    "sigmoid": (torch.sigmoid, inv_sigmoid),
    "exp": (torch.exp, torch.log),
}


def _constraint(kind: type[Interval]) -> SavedClass:
    chosen = [name for name in inspect.signature(kind).parameters if name.endswith("_bound")]

    def make(initial_value: Tensor | None, transform: str | None, **bounds: Tensor) -> Interval:
        there, back = _TRANSFORMS[transform]
        made: Any = kind(*(bounds[name] for name in chosen), transform=there, inv_transform=back)
        for name, bound in bounds.items():
            own = getattr(made, name)
            if not (bound.is_floating_point() and torch.equal(bound.to(own.dtype), own)):
                raise ValueError(f"{name} must be a bound of {kind.__name__}, got {bound.dtype}")
            setattr(made, name, bound)
        made._initial_value = initial_value
        return made

    taken = {"initial_value": _initial_value, "transform": _transform_name}
    return SavedClass(kind, _OF_CONSTRAINT, taken, make)


def _initial_value(constraint: Any) -> Tensor | None:
    initial = constraint._initial_value
    return None if initial is None else torch.as_tensor(initial, device="cpu")


def _transform_name(constraint: Any) -> str | None:
    given, softplus = constraint._transform, _TRANSFORMS["softplus"][0]
    if given is None:  # whatever the inverse is
        return None
    if given is nn.functional.softplus or repr(given) == repr(softplus):
        given = softplus
    for name, (there, back) in _TRANSFORMS.items():
        if given is there and constraint._inv_transform is back:
            return name
    raise ValueError(f"a constraint cannot be saved with the transform {given!r}")


# --- candidate models -----------------------------------------------------------------------------

# Columns of their table, each with what it is of a model, and its type. Each prior mean stands once
# beside it: what is one object is shared by the models of a batch.
_COLUMNS = {
    "names": ("name", str),
    "kernels": ("kernel", Kernel),
    "noise_variances": ("noise_variance", Tensor),
    "lengthscales": ("lengthscale", float | None),
    "twin_of": ("twin_of", str | None),
}


def _column(of: str) -> Callable[[CandidateModels], list[Any]]:
    return lambda models: [getattr(each, of) for each in models._entries]


def _means(models: CandidateModels) -> list[PriorMean | None]:
    return list({id(each.mean): each.mean for each in models._entries}.values())


def _mean_of(models: CandidateModels) -> list[int]:
    means = list(map(id, _means(models)))
    return [means.index(id(each.mean)) for each in models._entries]


def _family(models: CandidateModels) -> GrowingFamily | None:
    if models.num_observations or any(part.model.has_transforms for part in models.parts):
        raise ValueError("models must have no data and no transforms")
    if models._family is not None and list(map(id, _means(models))) != [id(models._family.mean)]:
        raise ValueError("models of a family must have its mean")
    return models._family


def _models(
    means: list[PriorMean | None],
    mean_of: list[int],
    family: GrowingFamily | None,
    **columns: list[Any],
) -> CandidateModels:
    noise, shared = torch.stack(columns["noise_variances"]), [means[i] for i in mean_of]
    found = candidate_list(columns["kernels"], noise, shared, columns["names"], noise.dtype)
    rows = zip(found, columns["lengthscales"], columns["twin_of"], strict=True)
    entries = [replace(each, lengthscale=number, twin_of=twin) for each, number, twin in rows]
    plain = {each.name for each in entries if each.twin_of is None}
    if not plain.issuperset(each.twin_of for each in entries if each.twin_of is not None):
        raise ValueError("twin_of must have names of models that are no twins")
    if not all(each.lengthscale is None or 0 < each.lengthscale < math.inf for each in entries):
        raise ValueError("lengthscales must be positive and finite")
    if family is not None:
        if len(means) > 1 or None in columns["lengthscales"]:
            raise ValueError("models of a family must have one mean, and a lengthscale each")
        (first,) = candidate_list(family.kernel, family.noise_variance, dtype=noise.dtype)
        own = {"kernel": first.kernel, "noise_variance": first.noise_variance}
        family = replace(family, **own, mean=entries[0].mean)
    return CandidateModels._of(entries, family)


_MODELS = (
    # The mean of a family is that of its models.
    SavedClass(
        GrowingFamily,
        {name: hint for name, hint in _annotated(GrowingFamily).items() if name != "mean"},
    ),
    SavedClass(
        CandidateModels,
        {column: list[hint] for column, (_, hint) in _COLUMNS.items()}
        | {"means": list[PriorMean | None], "mean_of": list[int], "family": GrowingFamily | None},
        {column: _column(of) for column, (of, _) in _COLUMNS.items()}
        | {"means": _means, "mean_of": _mean_of, "family": _family},
        _models,
    ),
)

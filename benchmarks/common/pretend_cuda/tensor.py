"""Tensor that computes on the CPU and says that it is on cuda:0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch

from benchmarks.common.pretend_cuda.rules import MASK_LAUNCHES, Operation, rules_of
from benchmarks.common.pretend_cuda.tally import (
    cause,
    count_operation,
    count_stop,
    count_upload,
)

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
_MASKS = (torch.bool, torch.uint8)
_NO_NUMPY = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first"

BIRTHS: list[Callable[[Any], None]] = []  # told of every new tensor


class PretendTensor(Tensor):
    """Numbers on the CPU that Python code, autograd and the library see on cuda:0.

    PyTorch's C++ code sees a CPU tensor without storage; what it computes arrives at
    `__torch_dispatch__`, which looks where everything lies, counts, and computes on `host`.

    Args:
        host: The numbers, shared and not copied.
        requires_grad: Whether autograd records.
    """

    host: Tensor

    @staticmethod
    def __new__(cls, host: Tensor, requires_grad: bool = False) -> PretendTensor:
        x = Tensor._make_wrapper_subclass(
            cls,
            host.size(),
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            device=CPU,
            requires_grad=requires_grad,
        )
        x.host = host
        for tell in BIRTHS:
            tell(x)
        return x

    # What Python calls goes straight to C++; `PretendCUDA` sees it before.
    __torch_function__ = torch._C._disabled_torch_function_impl  # pyright: ignore

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        operation = rules_of(func)
        inside: list[PretendTensor] = []
        outside: list[Tensor] = []
        host_args = tuple([_unwrapped(x, inside, outside) for x in args])
        host_kwargs = {name: _unwrapped(x, inside, outside) for name, x in kwargs.items()}
        if kwargs.get("device") is not None:  # asked for in C++: that of the other tensors
            host_kwargs["device"] = CPU
        generator = kwargs.get("generator")
        if generator is not None and generator.device.type != "cuda":
            raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")

        launches = operation.launches
        if operation.indexes:
            launches += _index(operation, args)
        elif operation.name == "copy_":
            _copy(args)
        elif outside:
            _refuse_mixes(operation, args, outside)

        if operation.ranks:
            result = _last_first(func, *host_args, **host_kwargs)
        else:
            result = func(*host_args, **host_kwargs)
        outputs = result if isinstance(result, tuple | list) else (result,)
        count_operation(
            operation,
            launches,
            [x.host for x in inside] + outside,
            [x for x in outputs if isinstance(x, Tensor)],
        )
        if operation.reshapes:  # as `matmul` does: the shape that C++ sees changes too
            with no_dispatch():
                return func(*args, **kwargs)
        if isinstance(result, Tensor):
            return _wrapped(result, inside, outside)
        if isinstance(result, tuple | list):
            return type(result)(_wrapped(x, inside, outside) for x in result)
        return result

    @property
    def device(self) -> torch.device:  # pyright: ignore[reportIncompatibleVariableOverride]
        return CUDA

    @property
    def is_cuda(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return True

    @property
    def is_cpu(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return False

    @property
    def data(self) -> Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.detach()

    def get_device(self) -> int:
        return 0

    def untyped_storage(self) -> torch.UntypedStorage:
        return self.host.untyped_storage()

    def data_ptr(self) -> int:
        return self.host.data_ptr()

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        return moved(self, *args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> Tensor:
        return moved(self, CPU)

    def cuda(self, *args: Any, **kwargs: Any) -> Tensor:
        return self

    def type_as(self, other: Tensor) -> Tensor:
        return moved(self, other)

    def new_tensor(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, data: Any, **kwargs: Any
    ) -> Tensor:
        kwargs = {"dtype": self.dtype, **kwargs}
        on_host = torch.device(kwargs.pop("device", None) or CUDA).type == "cpu"
        host = torch.tensor(data, device=CPU, **kwargs)
        return host if on_host else uploaded(host, "new_tensor")

    def tolist(self) -> Any:
        count_stop("tolist")
        return self.host.tolist()

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(_NO_NUMPY)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(_NO_NUMPY)

    def __deepcopy__(self, memo: dict[int, Any]) -> PretendTensor:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only leaf tensors can be copied deeply")
            memo[id(self)] = rebuilt(self.host.clone(), self.requires_grad, _is_parameter(self))
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuilt, (self.host, self.requires_grad, _is_parameter(self))

    def __format__(self, spec: str) -> str:
        return format(self.item() if self.dim() == 0 else repr(self), spec)

    def __repr__(self, **kwargs: Any) -> str:
        return f"pretended on cuda:0: {self.host!r}"


def moved(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`Tensor.to` for a tensor, or a target, that may be on the device."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    non_blocking, copy = kwargs.get("non_blocking", False), kwargs.get("copy", False)
    flags = []
    for arg in (*args, kwargs.get("other")):
        if isinstance(arg, Tensor):
            device, dtype = arg.device, arg.dtype
        elif isinstance(arg, torch.dtype):
            dtype = arg
        elif isinstance(arg, bool):
            flags.append(arg)
        elif arg is not None:
            device = arg
    non_blocking, copy = (*flags, non_blocking, copy)[:2] if len(flags) < 2 else flags
    device, dtype = torch.device(x.device if device is None else device), dtype or x.dtype

    if not isinstance(x, PretendTensor):
        if device.type != "cuda":
            return x.to(device=device, dtype=dtype, copy=copy)
        return _Upload.apply(x.to(dtype), non_blocking)  # pyright: ignore[reportReturnType]
    if device.type == "cpu":
        return _Download.apply(x).to(dtype)  # pyright: ignore[reportOptionalMemberAccess]
    if dtype != x.dtype:
        return torch.ops.aten._to_copy(x, dtype=dtype)
    return x.clone() if copy else x


def uploaded(host: Tensor, kind: str, *, waits: bool = True) -> PretendTensor:
    """Numbers of the host on the device, without their history."""
    count_upload(f"upload by {kind}", waits=waits)
    return PretendTensor(host.detach().clone())


class _Upload(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, non_blocking: bool) -> Tensor:
        return uploaded(x, "to", waits=not non_blocking)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return moved(grads[0], CPU), None


class _Download(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: PretendTensor) -> Tensor:
        count_stop("download")
        return x.host.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return moved(grads[0], CUDA)


def _unwrapped(x: Any, inside: list[PretendTensor], outside: list[Tensor]) -> Any:
    """An argument on the host; what it held goes into the lists."""
    if isinstance(x, PretendTensor):
        inside.append(x)
        return x.host
    if isinstance(x, Tensor):
        outside.append(x)
    elif isinstance(x, tuple | list):
        return type(x)([_unwrapped(part, inside, outside) for part in x])
    return x


def _wrapped(x: Any, inside: list[PretendTensor], outside: list[Tensor]) -> Any:
    """A result on the device; what was written in place is what it was."""
    if not isinstance(x, Tensor):
        return x
    for known in inside:
        if known.host is x:
            if known.shape != x.shape:  # a wrapper keeps its shape: better to fail than to lie
                raise NotImplementedError(f"shape must stay in place, got {tuple(x.shape)}")
            return known
    for known in outside:
        if known is x:
            return x
    return PretendTensor(x)


def _index(operation: Operation, args: tuple[Any, ...]) -> int:
    """Looks at the indices, and returns how many more launches they cost."""
    x, indices, *rest = args
    value = rest[0] if rest else None
    if not isinstance(x, PretendTensor):
        if any(isinstance(index, PretendTensor) for index in indices):
            raise RuntimeError(
                "indices should be either on cpu or on the same device as the indexed tensor (cpu) "
                f"(when checking arguments for {operation.name}, {cause()})"
            )
        _refuse(operation)
    if isinstance(value, Tensor) and not isinstance(value, PretendTensor) and value.dim():
        _refuse(operation)
    launches = 0
    for index in indices:
        if not isinstance(index, Tensor):
            continue
        mask = index.dtype in _MASKS
        if not isinstance(index, PretendTensor):
            count_upload("upload of an index")
        elif mask and not (type(value) is Tensor and value.numel() == 1):  # else a masked fill
            count_stop("index by a mask")
            launches += MASK_LAUNCHES
    return launches


def _last_first(func: Any, x: Tensor, *args: Any, **kwargs: Any) -> Any:
    """Values and indices by rank, of equal ones the last first, as CUDA may put them."""
    if not x.dim():
        return func(x, *args, **kwargs)
    places = {argument.name: i for i, argument in enumerate(func._schema.arguments[1:])}
    dim = args[places["dim"]] if len(args) > places["dim"] else kwargs.get("dim", -1)
    values, indices = func(x.flip(dim), *args, **kwargs)
    return values, x.shape[dim] - 1 - indices


def _copy(args: tuple[Any, ...]) -> None:
    to, source, *rest = args
    if not isinstance(source, PretendTensor):
        count_upload("upload by copy_", waits=not (rest and rest[0]))
    elif not isinstance(to, PretendTensor):
        count_stop("download by copy_")


def _refuse_mixes(operation: Operation, args: tuple[Any, ...], outside: list[Tensor]) -> None:
    """Raises as CUDA does where tensors of the CPU are among the arguments."""
    if any(x.dim() for x in outside) or len(outside) > operation.scalars:
        _refuse(operation)
    if operation.in_place and any(args[0] is x for x in outside):
        _refuse(operation)


def _refuse(operation: Operation) -> None:
    raise RuntimeError(
        "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and "
        f"cpu! (when checking arguments for {operation.name}, {cause()})"
    )


def _is_parameter(x: Tensor) -> bool:
    return getattr(x, "_is_param", False)


def rebuilt(host: Tensor, requires_grad: bool, is_parameter: bool) -> PretendTensor:
    """A tensor that was stored."""
    x = PretendTensor(host, requires_grad)
    if is_parameter:
        x._is_param = True  # pyright: ignore[reportAttributeAccessIssue]
    return x

"""Mode in which what is asked for on CUDA is a `PretendTensor`."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from benchmarks.common.pretend_cuda.tally import count_launches
from benchmarks.common.pretend_cuda.tensor import (
    CUDA,
    PretendTensor,
    moved,
    rebuilt,
    uploaded,
)

_OF_DATA = {"tensor", "as_tensor", "asarray", "scalar_tensor"}


class PretendCUDA(TorchFunctionMode):
    """A machine with one GPU that is none, within a ``with`` statement.

    What is made on or moved to ``"cuda"`` lies on the CPU, says otherwise, and is refused together
    with tensors of the CPU where CUDA refuses it. Random numbers come from the generator of the
    CPU. There are no events or generators of CUDA, and other threads are not in the mode.
    """

    def __enter__(self) -> PretendCUDA:
        self._entered = ExitStack()
        # What `torch.random.fork_rng` keeps: the numbers come from the CPU's generator.
        self._entered.enter_context(patch("torch.cuda.get_rng_state", lambda device: None))
        self._entered.enter_context(patch("torch.cuda.set_rng_state", lambda state, device: None))
        # `Module.to` must make new parameters: numbers of another class fit into no old one.
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        self._entered.callback(torch.__future__.set_overwrite_module_params_on_conversion, False)
        self._entered.enter_context(torch.serialization.safe_globals([rebuilt]))
        return super().__enter__()

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        self._entered.close()

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is Tensor.to or func is Tensor.type_as:
            if _concerns(args) or _concerns(kwargs.values()):
                return moved(*args, **kwargs)
        elif func is Tensor.cuda:
            return moved(args[0], CUDA)
        elif getattr(func, "__name__", "") == "_parse_to":  # of `Module.to`
            if args and isinstance(args[0], PretendTensor):
                return CUDA, args[0].dtype, False, None
        elif kwargs.get("device") is not None and (_concerns(args) or _is_cuda(kwargs["device"])):
            return _made(func, args, kwargs)
        return func(*args, **kwargs)


def _concerns(args: Any) -> bool:
    """Whether an argument is a tensor on the device, or names the device."""
    return any(isinstance(x, PretendTensor) or _is_cuda(x) for x in args)


def _is_cuda(x: Any) -> bool:
    if isinstance(x, str):
        return x.startswith("cuda")
    return isinstance(x, torch.device) and x.type == "cuda"


def _made(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a factory makes on a device that is named."""
    device = torch.device(kwargs["device"])
    on_cuda = device.type == "cuda"
    if device.index:
        raise RuntimeError(f"CUDA error: invalid device ordinal {device.index}")
    generator = kwargs.get("generator")
    if on_cuda and generator is not None and generator.device.type != "cuda":
        raise RuntimeError("Expected a 'cuda' device type for generator but found 'cpu'")
    kwargs = {name: x for name, x in kwargs.items() if name != "device"}
    name = func.__name__
    if name in _OF_DATA:
        data = args[0]
        if isinstance(data, Tensor):
            x = moved(data, device=device, dtype=kwargs.get("dtype"))
            return x.detach().clone() if name == "tensor" else x
        host = func(*args, **kwargs, device="cpu")
        return uploaded(host, name) if on_cuda else host
    # A tensor whose shape or dtype is taken.
    like = [x.host if isinstance(x, PretendTensor) else x for x in args]
    kwargs["device"] = "cpu"
    if not on_cuda:
        return func(*like, **kwargs)
    launches = 0 if "empty" in name else 1
    host = func(*like, **kwargs)
    count_launches(name, launches)
    if isinstance(host, Tensor):
        return PretendTensor(host)
    return type(host)(PretendTensor(x) for x in host)

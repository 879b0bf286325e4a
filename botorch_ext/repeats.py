"""Repeats: a step on a device that is done many times, as a CUDA graph where there is CUDA."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

# Steps done one operation after another before one is recorded: libraries get ready in them.
_WARM_UP = 2
# Recording a step takes about as long as so many of them.
_LEAST_REPLAYS = 8

_State = TypeVar("_State", bound=tuple[Any, ...])


class Repeats:
    """A step that is done again and again; on CUDA it is recorded once and replayed, so that all of
    its kernels are launched together.

    Args:
        step: Reads and writes tensors that stay where they are, of shapes that stay the same; draws
            no random numbers, and asks the device for nothing.
        device: Where the tensors are.
        recordable: Whether the step keeps to that. Otherwise it is done each time anew.

    Warns:
        RuntimeWarning: CUDA could not record the step, which is then done each time anew.
    """

    def __init__(self, step: Callable[[], None], device: torch.device, recordable: bool) -> None:
        self._step, self._device = step, device
        self.records = recordable and torch.cuda.is_available() and device.type == "cuda"
        self._graph: Any = None

    def __call__(self, times: int) -> None:
        """Does the step so often."""
        if self.records and self._graph is None and times > _WARM_UP:
            self._record()
            times -= _WARM_UP
        for _ in range(times):
            self._step() if self._graph is None else self._graph.replay()

    def _record(self) -> None:
        """Does the first steps and records the next one."""
        with torch.cuda.device(self._device):
            here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
            aside.wait_stream(here)
            with torch.cuda.stream(aside):
                for _ in range(_WARM_UP):
                    self._step()
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.graph(graph, stream=aside):
                    self._step()  # recorded, not done
                self._graph = graph
            except RuntimeError as error:
                self.records = False
                warnings.warn(f"a step is not recorded: {error}", RuntimeWarning, stacklevel=2)
            here.wait_stream(aside)


def repeat(step: Callable[[], None], times: int, device: torch.device, recordable: bool) -> None:
    """Does a step several times, as `Repeats` where that pays; then the device is waited for.

    Args:
        step: As for `Repeats`, and so are ``device`` and ``recordable``.
        times: How often.
    """
    repeats = Repeats(step, device, recordable and times >= _WARM_UP + _LEAST_REPLAYS)
    repeats(times)
    if repeats.records:
        # The graph and its memory may go only when all is done.
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()


def loop(
    body: Callable[[_State], _State], state: _State, recordable: bool
) -> Callable[[int], _State]:
    """A function that applies a body so often, from where it ended the time before.

    The device is to be waited for before the function is let go.

    Args:
        body: Takes a named tuple of tensors to one of the same shapes; otherwise as the step of
            `Repeats`.
        state: What it begins with.
        recordable: As for `Repeats`.
    """
    device = state[0].device

    def step() -> None:
        # What the body works out is all there before any of it is written.
        for old, new in zip(state, body(state), strict=True):
            if new is not old:
                old.copy_(new)

    repeats = Repeats(step, device, recordable)
    if repeats.records:
        state = type(state)(*(part.clone() if isinstance(part, Tensor) else part for part in state))

    def run(times: int) -> _State:
        nonlocal state
        if repeats.records:
            repeats(times)
            return state
        for _ in range(times):
            state = body(state)
        return state

    return run

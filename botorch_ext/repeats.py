"""Repeats: a step on a device that is done many times, as a CUDA graph where there is CUDA."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor

# Steps done one operation after another before one is recorded: libraries get ready in them.
_WARM_UP = 2
# Of fewer steps none is recorded.
_LEAST = 10

_State = TypeVar("_State", bound=tuple[Any, ...])


class Repeats:
    """A step that is done again and again; on CUDA it is recorded once and replayed, so that all of
    its kernels are launched together.

    The device is to be waited for before an object of this class is let go.

    Args:
        step: Reads and writes tensors that stay where they are, of shapes that stay the same; draws
            no random numbers, and asks the device for nothing.
        device: Where the tensors are.
        recordable: Whether the step keeps to that. Otherwise it is done each time anew.
        most: How often it is done at most.

    Warns:
        RuntimeWarning: CUDA could not record the step, which is then done each time anew.
    """

    def __init__(
        self, step: Callable[[], None], device: torch.device, recordable: bool, most: int
    ) -> None:
        self._step, self._device = step, device
        on_cuda = torch.cuda.is_available() and device.type == "cuda"
        self.records = recordable and most >= _LEAST and on_cuda
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
        here, aside = (
            torch.cuda.current_stream(self._device),
            _side_stream(torch.cuda.Stream, self._device),
        )
        aside.wait_stream(here)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UP):
                self._step()
            try:
                # `torch.cuda.graph` would wait for the device and give its cached memory back;
                # other threads may use it meanwhile.
                graph.capture_begin(capture_error_mode="thread_local")
                try:
                    self._step()  # recorded, not done
                finally:
                    graph.capture_end()
                self._graph = graph
            except RuntimeError as error:
                self.records = False
                why = error.__context__ or error
                warnings.warn(f"a step is not recorded: {why}", RuntimeWarning, stacklevel=2)
        here.wait_stream(aside)


@cache
def _side_stream(stream: Callable[[torch.device], Any], device: torch.device) -> Any:
    """One for all recordings: libraries keep memory for each stream they have seen."""
    return stream(device)


def repeat(step: Callable[[], None], times: int, device: torch.device, recordable: bool) -> None:
    """Does a step several times, as `Repeats`; then the device is waited for where it was recorded.

    Args:
        step: As for `Repeats`, and so are ``device`` and ``recordable``.
        times: How often.
    """
    repeats = Repeats(step, device, recordable, times)
    repeats(times)
    if repeats.records:
        torch.cuda.current_stream(device).synchronize()


def loop(
    body: Callable[[_State], _State], state: _State, recordable: bool, most: int
) -> Callable[[int], _State]:
    """A function that applies a body so often, from where it ended the time before.

    The device is to be waited for before the function is let go.

    Args:
        body: Takes a named tuple of tensors to one of the same shapes; otherwise as the step of
            `Repeats`. What it changes is new, and no part of what it was given under another name.
        state: What it begins with.
        recordable: As for `Repeats`, and so is ``most``.
    """

    def step() -> None:
        # What the body works out is all there before any of it is written.
        for old, new in zip(state, body(state), strict=True):
            if new is not old:
                old.copy_(new)

    repeats = Repeats(step, state[0].device, recordable, most)
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

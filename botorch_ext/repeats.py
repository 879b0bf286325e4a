"""Repeats: a step on a device that is done many times, as a CUDA graph where there is CUDA."""

from __future__ import annotations

from collections.abc import Callable

import torch

# Steps done one operation after another before one is recorded: libraries get ready in them.
_WARM_UP = 2
# Recording a step takes about as long as so many of them.
_LEAST_REPLAYS = 8


def repeat(step: Callable[[], None], times: int, device: torch.device, recordable: bool) -> None:
    """Does a step several times; on CUDA it is recorded once and replayed, so that all of its
    kernels are launched together.

    Args:
        step: Reads and writes tensors that stay where they are, of shapes that stay the same; draws
            no random numbers, and asks the device for nothing.
        times: How often.
        device: Where the tensors are.
        recordable: Whether the step keeps to that. Otherwise it is done each time anew.
    """
    replays = times - _WARM_UP
    if not (recordable and torch.cuda.is_available() and device.type == "cuda"):
        replays = 0
    if replays < _LEAST_REPLAYS:
        for _ in range(times):
            step()
        return
    with torch.cuda.device(device):
        here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UP):
                step()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=aside):
            step()  # recorded, not done
        here.wait_stream(aside)
        for _ in range(replays):
            graph.replay()
        here.synchronize()  # the graph and its memory may go only when all is done

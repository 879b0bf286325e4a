"""Pretended CUDA: code for a GPU runs on the CPU, and what it would launch and wait for is counted.

    with PretendCUDA():
        strategy = ...                      # everything with device="cuda"
        with counting() as tally:
            strategy.ask()
        print(tally.launches, tally.num_stops, tally.stops.most_common(9))

It lives with the benchmarks, which print what it counts, and the tests import it from here; the
wheel has neither. It shows mixed devices, stops and launches, not times and not the digits of CUDA.
"""

from benchmarks.common.pretend_cuda.memory import following_memory
from benchmarks.common.pretend_cuda.mode import PretendCUDA
from benchmarks.common.pretend_cuda.tally import OverBudget, Tally, budget, counting, no_stops
from benchmarks.common.pretend_cuda.tensor import PretendTensor

__all__ = [
    "OverBudget",
    "PretendCUDA",
    "PretendTensor",
    "Tally",
    "budget",
    "counting",
    "following_memory",
    "no_stops",
]

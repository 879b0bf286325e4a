"""Predictions of times on a GPU, from what is counted without one.

The constants are those of an NVIDIA H200 as they were estimated before anything was measured.
"""

from __future__ import annotations

from benchmarks.performance.meters import LaunchMeter

# Microseconds of a launch, from and to, of one in a graph, and of a stop.
LAUNCH = (5, 10)
LAUNCH_IN_GRAPH = 2
STOP = 20
# Bytes in a second.
BANDWIDTH = 4.3e12
# Nanoseconds that `torch.cdist` takes for an entry.
CDIST_ENTRY = 1


def predicted_ms(counted: LaunchMeter) -> tuple[float, float]:
    """From and to, for a step: launches, stops, bytes and distances one after another."""
    rest = STOP * counted.stops + 1e6 * counted.num_bytes / BANDWIDTH
    rest += 1e-3 * CDIST_ENTRY * counted.tally.cdist_entries / counted.steps
    in_graphs = counted.tally.in_graphs / counted.steps
    rest += LAUNCH_IN_GRAPH * in_graphs
    alone = counted.launches - in_graphs
    low, high = (1e-3 * (launch * alone + rest) for launch in LAUNCH)
    return low, high


def floor_ms(counted: LaunchMeter) -> float:
    """Of a step that moves the same bytes with one launch and one stop."""
    return 1e-3 * (LAUNCH[1] + STOP + 1e6 * counted.num_bytes / BANDWIDTH)

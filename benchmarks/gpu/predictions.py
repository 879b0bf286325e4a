"""Predictions of times on a GPU, from what is counted without one.

The constants are those of an NVIDIA H200 as they were estimated before anything was measured.
"""

from __future__ import annotations

from benchmarks.performance.meters import LaunchMeter

# Microseconds of a launch, from and to, and of a stop.
LAUNCH = (5, 10)
STOP = 20
# Bytes in a second.
BANDWIDTH = 4.3e12
# Nanoseconds that `torch.cdist` takes for an entry.
CDIST_ENTRY = 1

# Launches and stops of a step before anything was done about them, of the paths there were.
BEFORE = {
    "KernelGP.add, n=1000": (55, 3),
    "KernelGP.add, n=4000": (55, 3),
    "gp_ucb, finite, N=2500, ask and tell": (60, 2),
    "gp_ucb, finite, N=100k, ask and tell": (60, 2),
    "plan, finite, N=10k, q=300, per point": (26, 0),
    "plan, finite, N=1e6, q=200, whole call": (5300, 1),
    "plan, box, d=6, q=99, per point": (282, 2),
    "ec_gp_ucb, box, d=6, n=500, ask, mean of 4": (2279, 123),
    "he_gp_ucb, box, d=4, n=200, 16 models, ask, mean of 4": (7490, 254),
    "he_gp_ucb, finite, N=2500, 32 models, ask and tell": (64, 4),
    "stable_opt, box, d=2, n=50, ask": (175_800, 3300),
    "bpe_delay, box, opening of a round of about 500 points": (257_400, 4886),
    "breadthwise, d=2, step, mean of 400": (58, 15),
}


def predicted_ms(counted: LaunchMeter) -> tuple[float, float]:
    """From and to, for a step: launches, stops, bytes and distances one after another."""
    rest = STOP * counted.stops + 1e6 * counted.num_bytes / BANDWIDTH
    rest += 1e-3 * CDIST_ENTRY * counted.tally.cdist_entries / counted.steps
    low, high = (1e-3 * (launch * counted.launches + rest) for launch in LAUNCH)
    return low, high


def floor_ms(counted: LaunchMeter) -> float:
    """Of a step that moves the same bytes with one launch and one stop."""
    return 1e-3 * (LAUNCH[1] + STOP + 1e6 * counted.num_bytes / BANDWIDTH)

"""Late observations: distributions of delays, and what a round allows for them."""

from botorch_ext.delays.allowances import (
    Allowance,
    FixedAllowance,
    Observed,
    Quantile,
    SeenDelays,
    SubExponential,
    as_allowance,
)
from botorch_ext.delays.distributions import (
    Delay,
    Fixed,
    FromScipy,
    Geometric,
    LogNormal,
    Poisson,
    as_delay,
)

__all__ = [
    "Allowance",
    "Delay",
    "Fixed",
    "FixedAllowance",
    "FromScipy",
    "Geometric",
    "LogNormal",
    "Observed",
    "Poisson",
    "Quantile",
    "SeenDelays",
    "SubExponential",
    "as_allowance",
    "as_delay",
]

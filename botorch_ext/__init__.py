"""Bayesian optimisation that keeps working when its assumptions break, on BoTorch and GPyTorch."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from botorch_ext import algorithms, delays, rounds, strategies, widths
from botorch_ext.domains import Box, FiniteSet
from botorch_ext.models import FinitePosterior, KernelGP
from botorch_ext.planning import Plan, plan
from botorch_ext.regions import Region
from botorch_ext.runner import run
from botorch_ext.simulation import simulate
from botorch_ext.strategies import OptimisticStrategy, PhasedElimination, Strategy, Trial

if TYPE_CHECKING:
    from botorch_ext import acquisition, estimates, information_gain, plotting, problems

__all__ = [
    "Box",
    "FinitePosterior",
    "FiniteSet",
    "KernelGP",
    "OptimisticStrategy",
    "PhasedElimination",
    "Plan",
    "Region",
    "Strategy",
    "Trial",
    "acquisition",
    "algorithms",
    "delays",
    "estimates",
    "information_gain",
    "plan",
    "plotting",
    "problems",
    "rounds",
    "run",
    "simulate",
    "strategies",
    "widths",
]

# BoTorch's input constructors alone take 0.6 s to import, more than all the rest of this package.
_ON_FIRST_USE = ("acquisition", "estimates", "information_gain", "plotting", "problems")


def __getattr__(name: str) -> ModuleType:
    if name in _ON_FIRST_USE:
        return import_module(f"botorch_ext.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

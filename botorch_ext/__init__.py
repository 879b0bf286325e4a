"""Bayesian optimisation that keeps working when its assumptions break, on BoTorch and GPyTorch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botorch_ext import (
        acquisition,
        algorithms,
        analysis,
        delays,
        kernels,
        plotting,
        problems,
        strategies,
        widths,
    )
    from botorch_ext.analysis import estimates, information_gain
    from botorch_ext.codec import allow_argument
    from botorch_ext.delays import rounds
    from botorch_ext.domains import Box, ContextSpace, FiniteSet, Space
    from botorch_ext.domains.sharded_set import ShardedSet
    from botorch_ext.hyperparameters.fitted import Fitted
    from botorch_ext.hyperparameters.particles import Particles
    from botorch_ext.limits import AtLeast, AtMost
    from botorch_ext.models import CandidateModels, FinitePosterior, KernelGP
    from botorch_ext.page.report_page import report_page
    from botorch_ext.parameters import Choice, Integer, Real
    from botorch_ext.search.planning import Plan, plan
    from botorch_ext.search.region import Region
    from botorch_ext.strategies import (
        BreadthwiseExploration,
        CertifiedElimination,
        ContextwiseStrategy,
        HyperparameterElimination,
        OptimisticStrategy,
        PhasedElimination,
        RegretBalancing,
        StableStrategy,
        Strategy,
        Trial,
    )
    from botorch_ext.studies.compare import compare
    from botorch_ext.studies.optimize import optimize
    from botorch_ext.studies.replicate import replicate
    from botorch_ext.studies.run import run
    from botorch_ext.studies.simulate import simulate
    from botorch_ext.studies.study import Study

__all__ = [
    "AtLeast",
    "AtMost",
    "Box",
    "BreadthwiseExploration",
    "CandidateModels",
    "CertifiedElimination",
    "Choice",
    "ContextSpace",
    "ContextwiseStrategy",
    "FinitePosterior",
    "FiniteSet",
    "Fitted",
    "HyperparameterElimination",
    "Integer",
    "KernelGP",
    "OptimisticStrategy",
    "Particles",
    "PhasedElimination",
    "Plan",
    "Real",
    "Region",
    "RegretBalancing",
    "ShardedSet",
    "Space",
    "StableStrategy",
    "Strategy",
    "Study",
    "Trial",
    "acquisition",
    "algorithms",
    "allow_argument",
    "analysis",
    "compare",
    "delays",
    "estimates",
    "information_gain",
    "kernels",
    "optimize",
    "plan",
    "plotting",
    "problems",
    "replicate",
    "report_page",
    "rounds",
    "run",
    "simulate",
    "strategies",
    "widths",
]

# A name is loaded when it is first used: BoTorch's models and the scipy they need take 0.2 s to
# import, its input constructors 0.6 s. The modules that hold the names that are no modules:
_HOMES = {
    "codec": ("allow_argument",),
    "domains": ("Box", "ContextSpace", "FiniteSet", "Space"),
    "domains.sharded_set": ("ShardedSet",),
    "hyperparameters.fitted": ("Fitted",),
    "hyperparameters.particles": ("Particles",),
    "models": ("CandidateModels", "FinitePosterior", "KernelGP"),
    "parameters": ("Choice", "Integer", "Real"),
    "page.report_page": ("report_page",),
    "search.planning": ("Plan", "plan"),
    "search.region": ("Region",),
    "strategies": (
        "BreadthwiseExploration",
        "CertifiedElimination",
        "ContextwiseStrategy",
        "HyperparameterElimination",
        "OptimisticStrategy",
        "PhasedElimination",
        "RegretBalancing",
        "StableStrategy",
        "Strategy",
        "Trial",
    ),
    "studies.optimize": ("optimize",),
    "studies.run": ("run",),
    "studies.compare": ("compare",),
    "studies.replicate": ("replicate",),
    "studies.simulate": ("simulate",),
    "studies.study": ("Study",),
    "limits": ("AtLeast", "AtMost"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
# The modules that lie in a room, by their names here.
_ROOM_OF = {
    "estimates": "analysis",
    "information_gain": "analysis",
    "rounds": "delays",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _ROOM_OF:
        return import_module(f"botorch_ext.{_ROOM_OF[name]}.{name}")
    if name not in _HOME_OF:
        return import_module(f"botorch_ext.{name}")
    value = getattr(import_module(f"botorch_ext.{_HOME_OF[name]}"), name)
    globals()[name] = value  # found at once from now on
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

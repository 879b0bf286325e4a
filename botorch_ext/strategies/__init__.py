"""Strategies, which decide what to evaluate next, by ask and tell."""

from botorch_ext.strategies.adaptive.bounds_strategy import BoundsStrategy
from botorch_ext.strategies.adaptive.credible_particles import CredibleParticles
from botorch_ext.strategies.adaptive.elimination import HyperparameterElimination
from botorch_ext.strategies.adaptive.insured import InsuredStrategy
from botorch_ext.strategies.adaptive.judges import Judge
from botorch_ext.strategies.adaptive.ledger import Terms
from botorch_ext.strategies.adaptive.lengthscale_balancing import LengthscaleBalancing
from botorch_ext.strategies.adaptive.optimistic import OptimisticStrategy
from botorch_ext.strategies.adaptive.safe_exploration import SafeExploration
from botorch_ext.strategies.adaptive.searches import Search
from botorch_ext.strategies.adaptive.stable import StableStrategy
from botorch_ext.strategies.adaptive.thompson import ThompsonSampling
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import (
    Abandoned,
    Asked,
    Attached,
    Corrected,
    Event,
    Failed,
    History,
    Noted,
    Told,
    Trial,
    Widened,
    Withdrawn,
)
from botorch_ext.strategies.fixed_design.breadthwise import BreadthwiseExploration
from botorch_ext.strategies.fixed_design.certified import CertifiedElimination
from botorch_ext.strategies.fixed_design.level import Level, Refinement
from botorch_ext.strategies.fixed_design.phased import PhasedElimination
from botorch_ext.strategies.fixed_design.safe import SafeStrategy
from botorch_ext.strategies.masters.balancing import BalancingTest, RegretBalancing
from botorch_ext.strategies.masters.contextwise import ContextwiseStrategy
from botorch_ext.strategies.masters.master import MasterStrategy
from botorch_ext.strategies.masters.regret_bounds import CandidateBound
from botorch_ext.strategies.random_search import RandomSearch

# Another name for the strategy with several models.
MultiModelStrategy = BoundsStrategy

__all__ = [
    "Abandoned",
    "Asked",
    "Attached",
    "BalancingTest",
    "BoundsStrategy",
    "BreadthwiseExploration",
    "CandidateBound",
    "CertifiedElimination",
    "ContextwiseStrategy",
    "Corrected",
    "CredibleParticles",
    "Event",
    "Failed",
    "History",
    "HyperparameterElimination",
    "InsuredStrategy",
    "Judge",
    "LengthscaleBalancing",
    "Level",
    "MasterStrategy",
    "MultiModelStrategy",
    "Noted",
    "OptimisticStrategy",
    "PhasedElimination",
    "RandomSearch",
    "Refinement",
    "RegretBalancing",
    "SafeExploration",
    "SafeStrategy",
    "Search",
    "StableStrategy",
    "Strategy",
    "Terms",
    "ThompsonSampling",
    "Told",
    "Trial",
    "Widened",
    "Withdrawn",
]

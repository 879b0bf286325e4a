"""Decisions over time: ask, tell, pending evaluations."""

from botorch_ext.strategies.balancing import BalancingTest, RegretBalancing
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.breadthwise import BreadthwiseExploration
from botorch_ext.strategies.candidate_bounds import CandidateBound
from botorch_ext.strategies.contextwise import ContextwiseStrategy
from botorch_ext.strategies.events import Abandoned, Asked, Event, History, Told, Trial
from botorch_ext.strategies.hyperparameters import HyperparameterElimination
from botorch_ext.strategies.master import MasterStrategy
from botorch_ext.strategies.multi_model import MultiModelStrategy
from botorch_ext.strategies.optimistic import OptimisticStrategy
from botorch_ext.strategies.phased import PhasedElimination
from botorch_ext.strategies.played_levels import Level, Refinement
from botorch_ext.strategies.reference import RandomSearch
from botorch_ext.strategies.selection import (
    ExpectedBound,
    LengthscaleBalancing,
    MaximumLikelihood,
    ShrinkingLengthscale,
)
from botorch_ext.strategies.stable import StableStrategy

__all__ = [
    "Abandoned",
    "Asked",
    "BalancingTest",
    "BreadthwiseExploration",
    "CandidateBound",
    "ContextwiseStrategy",
    "Event",
    "ExpectedBound",
    "History",
    "HyperparameterElimination",
    "LengthscaleBalancing",
    "Level",
    "MasterStrategy",
    "MaximumLikelihood",
    "MultiModelStrategy",
    "OptimisticStrategy",
    "PhasedElimination",
    "RandomSearch",
    "Refinement",
    "RegretBalancing",
    "ShrinkingLengthscale",
    "StableStrategy",
    "Strategy",
    "Told",
    "Trial",
]

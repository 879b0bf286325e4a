"""Test problems: functions with known RKHS norm, with contexts or of a given growth, misspecified
functions and the worst cases among them, unknown hyperparameters, a robust problem and BoTorch's
test functions."""

from botorch_ext.problems.base import KnownFunction, Problem, global_maximum
from botorch_ext.problems.functions.contextual import (
    ContextualFunction,
    ContextualProblem,
    ContextualRKHSFunction,
)
from botorch_ext.problems.functions.function import Function
from botorch_ext.problems.functions.growth import GrowthFunction
from botorch_ext.problems.functions.hidden_arm import hidden_arm
from botorch_ext.problems.functions.highest_hill import HighestHill, HillMean
from botorch_ext.problems.functions.linear_arms import LinearArms, random_linear
from botorch_ext.problems.functions.lock_out import LockOut, NoisyLockOut, lock_out
from botorch_ext.problems.functions.perturbed import Perturbed, adversarial, rough, tabulated, white
from botorch_ext.problems.functions.rkhs import RKHSFunction
from botorch_ext.problems.functions.synthetic import SyntheticProblem
from botorch_ext.problems.functions.two_peaks import TwoPeaks
from botorch_ext.problems.functions.unknown_hyperparameters import (
    CorrelatedMode,
    HyperparameterProblem,
    LengthscalePeak,
    RepeatedSignal,
)

__all__ = [
    "ContextualFunction",
    "ContextualProblem",
    "ContextualRKHSFunction",
    "CorrelatedMode",
    "Function",
    "GrowthFunction",
    "HighestHill",
    "HillMean",
    "HyperparameterProblem",
    "KnownFunction",
    "LengthscalePeak",
    "LinearArms",
    "LockOut",
    "NoisyLockOut",
    "Perturbed",
    "Problem",
    "RKHSFunction",
    "RepeatedSignal",
    "SyntheticProblem",
    "TwoPeaks",
    "adversarial",
    "global_maximum",
    "hidden_arm",
    "lock_out",
    "random_linear",
    "rough",
    "tabulated",
    "white",
]

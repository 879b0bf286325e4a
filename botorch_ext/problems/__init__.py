"""Test problems: RKHS functions, with contexts too or of a given growth, perturbed ones, unknown
hyperparameters, a robust one, BoTorch's test functions, a real tuning task."""

from botorch_ext.problems.base import KnownFunction, Problem, global_maximum
from botorch_ext.problems.binders import BestBinder
from botorch_ext.problems.binding import (
    BindingAffinities,
    load_binding_affinities,
    synthetic_binding_affinities,
)
from botorch_ext.problems.contextual import (
    ContextualFunction,
    ContextualProblem,
    ContextualRKHSFunction,
)
from botorch_ext.problems.fitted import FittedModel, fit_kernel
from botorch_ext.problems.fitted_data import (
    fit_binding_affinities,
    fit_temperatures,
    time_of_day_kernel,
)
from botorch_ext.problems.growth import GrowthFunction
from botorch_ext.problems.hills import HighestHill, HillMean
from botorch_ext.problems.hyperparameters import (
    CorrelatedMode,
    HyperparameterProblem,
    LengthscalePeak,
    RepeatedSignal,
)
from botorch_ext.problems.lockout import LockOut, lock_out
from botorch_ext.problems.perturbed import Perturbed, adversarial, rough, tabulated
from botorch_ext.problems.rkhs import RKHSFunction
from botorch_ext.problems.robust import TwoPeaks
from botorch_ext.problems.scaling import Scaling
from botorch_ext.problems.sensors import HottestSensor, clock
from botorch_ext.problems.svc import SVCTuning
from botorch_ext.problems.synthetic import SyntheticProblem
from botorch_ext.problems.temperatures import (
    Temperatures,
    load_temperatures,
    synthetic_temperatures,
)

__all__ = [
    "BestBinder",
    "BindingAffinities",
    "ContextualFunction",
    "ContextualProblem",
    "ContextualRKHSFunction",
    "CorrelatedMode",
    "FittedModel",
    "GrowthFunction",
    "HighestHill",
    "HillMean",
    "HottestSensor",
    "HyperparameterProblem",
    "KnownFunction",
    "LengthscalePeak",
    "LockOut",
    "Perturbed",
    "Problem",
    "RKHSFunction",
    "RepeatedSignal",
    "SVCTuning",
    "Scaling",
    "SyntheticProblem",
    "Temperatures",
    "TwoPeaks",
    "adversarial",
    "clock",
    "fit_binding_affinities",
    "fit_kernel",
    "fit_temperatures",
    "global_maximum",
    "load_binding_affinities",
    "load_temperatures",
    "lock_out",
    "rough",
    "synthetic_binding_affinities",
    "synthetic_temperatures",
    "tabulated",
    "time_of_day_kernel",
]

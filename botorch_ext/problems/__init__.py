"""Test problems: functions with known RKHS norm, with contexts or of a given growth, misspecified
functions and the worst cases among them, unknown hyperparameters, a robust problem, BoTorch's test
functions, measured data and a real tuning task."""

from botorch_ext.problems.base import KnownFunction, Problem, global_maximum
from botorch_ext.problems.functions.contextual import (
    ContextualFunction,
    ContextualProblem,
    ContextualRKHSFunction,
)
from botorch_ext.problems.functions.growth import GrowthFunction
from botorch_ext.problems.functions.hidden_arm import hidden_arm
from botorch_ext.problems.functions.highest_hill import HighestHill, HillMean
from botorch_ext.problems.functions.linear_arms import LinearArms, random_linear
from botorch_ext.problems.functions.lock_out import LockOut, lock_out
from botorch_ext.problems.functions.noisy_lock_out import NoisyLockOut
from botorch_ext.problems.functions.perturbed import Perturbed, adversarial, rough, tabulated
from botorch_ext.problems.functions.rkhs import RKHSFunction
from botorch_ext.problems.functions.synthetic import SyntheticProblem
from botorch_ext.problems.functions.two_peaks import TwoPeaks
from botorch_ext.problems.functions.unknown_hyperparameters import (
    CorrelatedMode,
    HyperparameterProblem,
    LengthscalePeak,
    RepeatedSignal,
)
from botorch_ext.problems.functions.white import white
from botorch_ext.problems.real_data.best_binder import BestBinder
from botorch_ext.problems.real_data.binding_affinities import (
    BindingAffinities,
    load_binding_affinities,
    synthetic_binding_affinities,
)
from botorch_ext.problems.real_data.fitted_kernels import FittedModel, fit_kernel
from botorch_ext.problems.real_data.fitted_models import (
    fit_binding_affinities,
    fit_temperatures,
    time_of_day_kernel,
)
from botorch_ext.problems.real_data.hottest_sensor import HottestSensor, clock
from botorch_ext.problems.real_data.scaling import Scaling
from botorch_ext.problems.real_data.svc import SVCTuning
from botorch_ext.problems.real_data.temperatures import (
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
    "LinearArms",
    "LockOut",
    "NoisyLockOut",
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
    "hidden_arm",
    "load_binding_affinities",
    "load_temperatures",
    "lock_out",
    "random_linear",
    "rough",
    "synthetic_binding_affinities",
    "synthetic_temperatures",
    "tabulated",
    "time_of_day_kernel",
    "white",
]

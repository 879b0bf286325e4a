"""Test problems: RKHS functions, perturbed ones, BoTorch's test functions, a real tuning task."""

from botorch_ext.problems.base import Problem, global_maximum
from botorch_ext.problems.lockout import LockOut, lock_out
from botorch_ext.problems.perturbed import Perturbed, adversarial, rough, tabulated
from botorch_ext.problems.rkhs import RKHSFunction
from botorch_ext.problems.svc import SVCTuning
from botorch_ext.problems.synthetic import SyntheticProblem

__all__ = [
    "LockOut",
    "Perturbed",
    "Problem",
    "RKHSFunction",
    "SVCTuning",
    "SyntheticProblem",
    "adversarial",
    "global_maximum",
    "lock_out",
    "rough",
    "tabulated",
]

"""Test problems: RKHS functions, perturbed ones, BoTorch's test functions, a real tuning task."""

from botorch_ext.problems.base import Problem, maximize_on_box
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
    "lock_out",
    "maximize_on_box",
    "rough",
    "tabulated",
]

"""Runs of many seeds with unknown hyperparameters have the rows of each seed by itself."""

import warnings
from dataclasses import replace

import pytest

from benchmarks.unknown_hyperparameters.experiments import A_GP, EXPECTED, HE, LB_GP, MLE, RANDOM
from benchmarks.unknown_hyperparameters.runs import Case, run_case, run_cases
from botorch_ext.exceptions import LengthscaleWarning

# In (a) two of these runs eliminate all models, in (b) one eliminates one of them.
CASES = [
    *(Case("a", "constant 3", method, 1, 7) for method in (HE, MLE, EXPECTED, A_GP, RANDOM)),
    Case("b", "0.3 x theory, B = 5", HE, 3, 7),
    Case("b, shared", "0.3 x theory, B = 5", MLE, 0, 7),
    Case("a", "constant 3", LB_GP, 0, 3),
    Case("c", "constant 3", HE, 0, 3),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.method} in {case.experiment}")
def test_rows_of_many_seeds_are_those_of_each(case: Case) -> None:
    cases = [replace(case, seed=case.seed + i) for i in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LengthscaleWarning)  # of the fourth piece in (b)
        together, single = run_cases(cases), [run_case(each) for each in cases]
    for row, other in zip(together, single, strict=True):
        assert list(row) == list(other)
        assert row | {"seconds": 0} == other | {"seconds": 0}

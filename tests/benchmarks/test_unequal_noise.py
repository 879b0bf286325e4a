"""The benchmark of results that differ in noise: what its methods are told, and its tables."""

import torch
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood

from benchmarks.real.spaces import real
from benchmarks.unequal_noise.report import report
from benchmarks.unequal_noise.runs import BOTORCH, METHODS, NOT_TOLD, TOLD, Case, cases, play


def test_methods_are_told_the_standard_errors():
    stds = [0.1, 0.4, 2.0]
    for name, make in METHODS.items():
        method = make([real("x", 0.0, 4.0)], 0, 40)
        for std in stds:
            method.tell(method.ask(), std, std)
        if name == BOTORCH:
            likelihood = method._fitted().likelihood
            assert isinstance(likelihood, FixedNoiseGaussianLikelihood)
            ratios = likelihood.noise / likelihood.noise[0]
            torch.testing.assert_close(ratios, torch.tensor([1.0, 16, 400], dtype=torch.float64))
        else:
            history = method._strategy.history
            assert history.stds == (dict(enumerate(stds)) if name == TOLD else {})
            assert list(history.values.values()) == [-0.1, -0.4, -2.0]


def test_a_run_has_a_row_and_a_report():
    rows = [play(Case(method, "Branin", 3, True)) for method in (TOLD, NOT_TOLD)]
    text = report(rows)
    assert "| Branin | " in text and "integrated_ei, told - integrated_ei, not told" in text
    wanted = list(cases(("Branin", "Hartmann3"), 2, 0))
    assert len(set(wanted)) == len(wanted) == 12
    assert [case.seed for case in wanted] == [100] * 6 + [101] * 6

"""Every width against its formula written out, at random arguments."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import widths
from tests.helpers import tolerance


@dataclass
class Model:
    """What a width asks of a model, with numbers of our choice."""

    noise_variance: torch.Tensor
    gain: torch.Tensor
    num_observations: int
    dim: int
    candidates: torch.Tensor | None = None

    def information_gain(self):
        return self.gain


def uniform(g, low, high, size=()):
    return low + (high - low) * torch.rand(size, generator=g, dtype=torch.float64)


def draw(seed, batch=()):
    g = torch.Generator().manual_seed(seed)
    model = Model(
        noise_variance=uniform(g, 1e-3, 2.0, batch),
        gain=uniform(g, 0.1, 60.0, batch),
        num_observations=int(uniform(g, 2, 300)),
        dim=int(uniform(g, 1, 7)),
    )
    B, sigma, delta = (
        uniform(g, 0, 5).item(),
        uniform(g, 0.01, 2).item(),
        uniform(g, 0.01, 0.9).item(),
    )
    return model, B, sigma, delta, model.num_observations + 1, g


def scalars(model):
    """lambda and I as floats."""
    return model.noise_variance.item(), model.gain.item()


def self_normalized(seed):
    model, B, sigma, delta, t, _ = draw(seed)
    lam, gain = scalars(model)
    expected = sigma / math.sqrt(lam) * math.sqrt(2 * math.log(1 / delta) + 2 * gain) + B
    return widths.SelfNormalized(B, sigma, delta), model, t, expected, 0.0


def chowdhury_gopalan(seed):
    model, B, sigma, delta, t, _ = draw(seed)
    lam, gain = scalars(model)
    expected = B + sigma / math.sqrt(lam) * math.sqrt(2 * (gain + 1 + math.log(1 / delta)))
    return widths.ChowdhuryGopalan(B, sigma, delta), model, t, expected, 0.0


def chowdhury_gopalan_printed(seed):
    model, B, sigma, delta, t, _ = draw(seed)
    expected = B + sigma * math.sqrt(2 * (model.gain.item() + 1 + math.log(1 / delta)))
    return widths.ChowdhuryGopalan(B, sigma, delta, printed=True), model, t, expected, 0.0


def chowdhury_gopalan_gamma(seed):
    model, B, sigma, delta, t, _ = draw(seed)
    gamma = 3.0 * math.log(t)  # gamma_{t-1} of the table below
    expected = B + sigma / math.sqrt(model.noise_variance.item()) * math.sqrt(
        2 * (gamma + 1 + math.log(1 / delta))
    )
    width = widths.ChowdhuryGopalan(
        B, sigma, delta, max_information_gain=lambda n: 3.0 * math.log(n + 1)
    )
    return width, model, t, expected, 0.0


def srinivas(seed):
    model, B, _, delta, t, _ = draw(seed)
    lam, gain = scalars(model)
    gamma = gain + 0.5 * math.log(1 + 1 / lam)
    expected = math.sqrt(2 * B**2 + 300 * gamma * math.log(t / delta) ** 3)
    return widths.SrinivasRKHS(B, delta), model, t, expected, 0.0


def srinivas_gamma(seed):
    model, B, _, delta, t, _ = draw(seed)
    expected = math.sqrt(2 * B**2 + 300 * (2.0 * t) * math.log(t / delta) ** 3)
    width = widths.SrinivasRKHS(B, delta, max_information_gain=lambda n: 2.0 * n)
    return width, model, t, expected, 0.0


def bayes_finite(seed):
    model, _, _, delta, t, g = draw(seed)
    N = int(uniform(g, 1, 10_000))
    expected = math.sqrt(2 * math.log(N * math.pi**2 * t**2 / (6 * delta)))
    return widths.BayesFinite(N, delta), model, t, expected, 0.0


def bayes_continuous(seed):
    model, _, _, delta, t, g = draw(seed)
    d, a, b, r = int(uniform(g, 1, 8)), *(uniform(g, 0.5, 4).item() for _ in range(3))
    expected = math.sqrt(
        2 * math.log(2 * math.pi**2 * t**2 / (3 * delta))
        + 2 * d * math.log(t**2 * d * b * r * math.sqrt(math.log(4 * d * a / delta)))
    )
    return widths.BayesContinuous(d, a, b, r, delta), model, t, expected, 0.0


def fixed_design(seed):
    model, B, sigma, delta, t, g = draw(seed)
    N, R = int(uniform(g, 1, 10_000)), int(uniform(g, 1, 9))
    lam = model.noise_variance.item()
    expected = B + sigma / math.sqrt(lam) * math.sqrt(2 * math.log(4 * R * N / delta))
    return widths.FixedDesign(B, sigma, delta, N, R), model, t, expected, 0.0


def anytime_fixed_design(seed):
    model, B, sigma, delta, t, g = draw(seed)
    N = int(uniform(g, 1, 10_000))
    model.candidates = torch.zeros(N, model.dim)
    share = delta / (N * math.pi**2 * t**2 / 3)
    expected = B + sigma / math.sqrt(model.noise_variance.item()) * math.sqrt(
        2 * math.log(1 / share)
    )
    return widths.AnytimeFixedDesign(B, sigma, delta), model, t, expected, 0.0


def fixed_design_continuous(seed):
    model, B, sigma, delta, t, g = draw(seed)
    R, c = int(uniform(g, 1, 9)), uniform(g, 0.5, 3).item()
    lam, q, d = model.noise_variance.item(), model.num_observations, model.dim
    share = delta / (4 * R)
    C = B + max(sigma, 1.0) * math.sqrt(q) / math.sqrt(lam) * math.sqrt(2 * math.log(4 * q / share))
    Gamma = c * C**d * q**d
    expected = B + sigma / math.sqrt(lam) * math.sqrt(2 * math.log(2 * Gamma / share))
    offset = 2 / q + expected * 2 / math.sqrt(q)
    return widths.FixedDesignContinuous(B, sigma, delta, R, c), model, t, expected, offset


def constant(seed):
    model, B, _, _, t, _ = draw(seed)
    return widths.Constant(B), model, t, B, 0.0


def scaled_enlarged(seed):
    model, B, sigma, delta, t, g = draw(seed)
    lam, gain = scalars(model)
    eps, factor = uniform(g, 0, 1).item(), uniform(g, 0.1, 2).item()
    inner = sigma / math.sqrt(lam) * math.sqrt(2 * math.log(1 / delta) + 2 * gain) + B
    expected = factor * (inner + eps * math.sqrt(t) / math.sqrt(lam))
    width = widths.Scaled(widths.Enlarged(widths.SelfNormalized(B, sigma, delta), eps), factor)
    return width, model, t, expected, 0.0


def scaled_offset(seed):
    width, model, t, expected, offset = fixed_design_continuous(seed)
    enlarged = widths.Enlarged(width, 0.3)
    lam = model.noise_variance.item()
    expected += 0.3 * math.sqrt(t) / math.sqrt(lam)
    return widths.Scaled(enlarged, 0.5), model, t, 0.5 * expected, 0.5 * offset


FORMULAS = [
    self_normalized,
    chowdhury_gopalan,
    chowdhury_gopalan_printed,
    chowdhury_gopalan_gamma,
    srinivas,
    srinivas_gamma,
    bayes_finite,
    bayes_continuous,
    fixed_design,
    anytime_fixed_design,
    fixed_design_continuous,
    constant,
    scaled_enlarged,
    scaled_offset,
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_width_is_its_formula(formula):
    for seed in range(20):
        width, model, t, expected, offset = formula(seed)
        assert_close(float(width(t, model)), expected, **tolerance(torch.float64))
        assert_close(float(width.offset(t, model)), offset, **tolerance(torch.float64))


@pytest.mark.parametrize(
    "width",
    [
        widths.SelfNormalized(1.0, 0.1, 0.1),
        widths.ChowdhuryGopalan(1.0, 0.1, 0.1),
        widths.SrinivasRKHS(1.0, 0.1),
        widths.FixedDesign(1.0, 0.1, 0.1, 10, 2),
        widths.AnytimeFixedDesign(1.0, 0.1, 0.1),
        widths.FixedDesignContinuous(1.0, 0.1, 0.1, 2),
        widths.Scaled(widths.Enlarged(2.0, 0.1), 0.5),
    ],
)
def test_batched_models_get_one_width_each(width):
    model, *_ = draw(3, batch=(4,))
    model.candidates = torch.zeros(9, model.dim)
    got = width(7, model)
    assert got.shape == (4,)
    for i in range(4):
        single = replace(model, noise_variance=model.noise_variance[i], gain=model.gain[i])
        assert_close(got[i], width(7, single))


def test_a_union_over_candidates_needs_candidates():
    model, *_ = draw(0)
    with pytest.raises(ValueError, match=r"model must have finitely many .*got a Model"):
        widths.AnytimeFixedDesign(1.0, 0.1, 0.1)(3, model)


def test_widths_say_what_they_are():
    width = widths.Scaled(widths.Enlarged(widths.SelfNormalized(2.0, 0.1, 0.05), 0.1), 0.5)
    assert repr(width) == (
        "Scaled(width=Enlarged(width=SelfNormalized(rkhs_bound=2.0, noise_std=0.1, delta=0.05), "
        "misspecification=0.1), factor=0.5)"
    )
    assert widths.Enlarged(2.0, 0.1) == widths.Enlarged(widths.Constant(2.0), 0.1)


nan, inf = math.nan, math.inf


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("rkhs_bound", lambda: widths.SelfNormalized(-0.1, 0.1, 0.1)),
        ("rkhs_bound", lambda: widths.ChowdhuryGopalan(nan, 0.1, 0.1)),
        ("rkhs_bound", lambda: widths.SrinivasRKHS(inf, 0.1)),
        ("rkhs_bound", lambda: widths.FixedDesign(-1.0, 0.1, 0.1, 5, 1)),
        ("rkhs_bound", lambda: widths.AnytimeFixedDesign(-1.0, 0.1, 0.1)),
        ("rkhs_bound", lambda: widths.FixedDesignContinuous(-1.0, 0.1, 0.1, 5)),
        ("noise_std", lambda: widths.SelfNormalized(1.0, 0.0, 0.1)),
        ("noise_std", lambda: widths.ChowdhuryGopalan(1.0, -1.0, 0.1)),
        ("noise_std", lambda: widths.FixedDesign(1.0, nan, 0.1, 5, 1)),
        ("noise_std", lambda: widths.AnytimeFixedDesign(1.0, 0.0, 0.1)),
        ("noise_std", lambda: widths.FixedDesignContinuous(1.0, 0.0, 0.1, 5)),
        ("delta", lambda: widths.SelfNormalized(1.0, 0.1, 0.0)),
        ("delta", lambda: widths.ChowdhuryGopalan(1.0, 0.1, 1.0)),
        ("delta", lambda: widths.SrinivasRKHS(1.0, -0.1)),
        ("delta", lambda: widths.AnytimeFixedDesign(1.0, 0.1, 1.0)),
        ("delta", lambda: widths.BayesFinite(5, 1.5)),
        ("delta", lambda: widths.BayesContinuous(2, 1.0, 1.0, 1.0, nan)),
        ("num_points", lambda: widths.BayesFinite(0, 0.1)),
        ("num_points", lambda: widths.FixedDesign(1.0, 0.1, 0.1, 0, 1)),
        ("num_rounds", lambda: widths.FixedDesign(1.0, 0.1, 0.1, 5, 0)),
        ("num_rounds", lambda: widths.FixedDesignContinuous(1.0, 0.1, 0.1, 0)),
        ("dim", lambda: widths.BayesContinuous(0, 1.0, 1.0, 1.0, 0.1)),
        ("b must", lambda: widths.BayesContinuous(1, 1.0, 0.0, 1.0, 0.1)),
        ("r must", lambda: widths.BayesContinuous(1, 1.0, 1.0, -1.0, 0.1)),
        ("a must", lambda: widths.BayesContinuous(1, 0.01, 1.0, 1.0, 0.1)),
        ("c must", lambda: widths.FixedDesignContinuous(1.0, 0.1, 0.1, 2, 0.0)),
        ("max_kernel", lambda: widths.FixedDesignContinuous(1.0, 0.1, 0.1, 2, max_kernel=-1.0)),
        ("value", lambda: widths.Constant(-1.0)),
        ("width", lambda: widths.Scaled(nan, 0.5)),
        ("factor", lambda: widths.Scaled(1.0, 0.0)),
        ("misspecification", lambda: widths.Enlarged(1.0, -0.1)),
        ("misspecification", lambda: widths.Enlarged(1.0, inf)),
    ],
)
def test_impossible_parameters_are_refused(name, make):
    with pytest.raises(ValueError, match=name):
        make()

"""Thompson sampling: the frequencies of the maximisers of joint draws, with false alarms of at most
1e-4 each. That the draws are exact is in tests/models."""

import math

import pytest
import torch

import botorch_ext as bx
from botorch_ext.models.joint_draws import JointDraw
from botorch_ext.search import draws
from botorch_ext.search.draws import best_in_box, best_of_points
from botorch_ext.widths import ChowdhuryGopalan
from tests.helpers import drawn, rbf
from tests.oracles.posterior import dense_posterior

LAMBDA = 0.05


def data():
    X = drawn(6, 1, seed=3, low=2.0, high=5.0)
    return X, torch.sin(2 * X[:, 0])


def candidates(num_points):
    return torch.linspace(2, 5, num_points, dtype=torch.float64).unsqueeze(-1)


def model(points, on_points=False):
    """The posterior with some data, and one pending row."""
    posterior = bx.KernelGP(rbf(0.5), LAMBDA)
    if on_points:
        posterior = bx.FinitePosterior(rbf(0.5), points, LAMBDA)
    posterior.add(*data())
    posterior.add(points[:1], None)
    return posterior


@torch.no_grad()
def dense(points):
    """Mean and covariance by dense algebra; the pending row counts in the covariance."""
    X, Y = data()
    mean, _ = dense_posterior(rbf(0.5), X, Y, points, LAMBDA)
    rows, zeros = torch.cat([X, points[:1]]), Y.new_zeros(len(Y) + 1)
    return mean, dense_posterior(rbf(0.5), rows, zeros, points, LAMBDA)[1]


@pytest.mark.parametrize("limit", [pytest.param(1536, marks=pytest.mark.slow), 8])
def test_candidates_are_asked_as_often_as_they_are_the_maximiser(limit, monkeypatch):
    """Against 100,000 dense draws; each count is within 4.8 standard deviations, over 14 cells."""
    monkeypatch.setattr(draws, "_AT_ONCE", limit)
    monkeypatch.setattr(draws, "_MORE", 3)
    points, number = candidates(14), 250
    mean, covariance = dense(points)
    posterior, g = model(points, on_points=True), torch.Generator().manual_seed(2)
    L = torch.linalg.cholesky(covariance + 1e-9 * torch.eye(14).double())
    normals = torch.randn(100_000, 14, generator=g, dtype=torch.float64)
    expected = (mean + normals @ L.mT).argmax(dim=-1).bincount(minlength=14) / 100_000
    rows = [best_of_points(JointDraw(posterior, g), points, seed) for seed in range(number)]
    counts = torch.tensor(rows).bincount(minlength=14).double()
    deviation = (number * expected * (1 - expected)).sqrt().clamp_min(1.0)
    assert float(((counts - number * expected).abs() / deviation).max()) < 4.8
    assert int((counts > 5).sum()) >= 3  # it is no certainty


def test_the_maximiser_in_a_box_is_that_of_a_fine_grid_of_the_same_draw():
    box = bx.Box([[2.0], [5.0]])
    for seed in range(5):
        draw = JointDraw(model(candidates(3)), torch.Generator().manual_seed(seed))
        x = best_in_box(draw, box, seed, box.sample(2, seed))
        found = float(draw.mean(x.unsqueeze(0)))
        assert found >= float(draw.at(candidates(300)).max()) - 2e-3


def test_the_model_is_drawn_by_the_evidence():
    domain = bx.FiniteSet(candidates(30))
    models, X = bx.CandidateModels.lengthscales(rbf(0.4), [0.4, 0.7], 0.05), domain.points[::6]
    strategy = bx.algorithms.thompson_sampling(domain, models, initial=(X, X[:, 0].sin()), seed=2)
    share = float(strategy.evidence().softmax(dim=0)[0])
    played = [trial.info["model"] for trial in strategy.ask(100)]
    # Five standard deviations.
    assert abs(played.count(0) / 100 - share) < 5 * math.sqrt(share * (1 - share) / 100)
    assert 0.05 < share < 0.95
    with pytest.raises(ValueError, match="noise_variance"):
        bx.algorithms.thompson_sampling(domain, models, noise_variance=0.1)


def test_the_width_scales_the_draw():
    domain, width = bx.FiniteSet(candidates(30)), ChowdhuryGopalan(2.0, 0.1, 0.05)
    X = domain.points[::7]

    def make(width, **more):
        options = {"noise_variance": LAMBDA, "width": width, **more}
        return bx.algorithms.thompson_sampling(domain, rbf(0.4), **options)

    expected = float(width(1, bx.KernelGP(rbf(0.4), noise_variance=LAMBDA)))
    assert make(width).ask().info["width"] == pytest.approx(expected)
    # Without a width it is the mean that is maximised.
    strategy = make(1e-9, initial=(X, X[:, 0].sin()))
    top = int(strategy.bands(domain.points)[0][0].argmax())
    assert {trial.info["index"] for trial in strategy.ask(6)} == {top}

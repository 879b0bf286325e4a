"""CertifiedSafe: what it certifies, loops around other acquisition functions, and refutation."""

import numpy as np
import pytest
import torch
from botorch.acquisition import UpperConfidenceBound, qLogNoisyExpectedImprovement
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler

import botorch_ext as bx
from botorch_ext.exceptions import ModelRefutedWarning
from botorch_ext.widths.tight import RIDGES
from tests.helpers import drawn, matern, rbf
from tests.oracles.tight import Tight

B, SIGMA, LAMBDA, DELTA = 2.0, 0.1, 0.02, 0.1
THRESHOLDS = {"pressure": "<= 0.4", "purity": ">= -0.7"}
SEED = [[0.5, 0.5]]
KERNELS = {"pressure": rbf(0.4, 0.6), "purity": matern(0.7)}


def mean(X):
    return 0.1 * X[..., 0]


def model_of(kernel, n, seed, mean=None):
    model = bx.KernelGP(kernel, LAMBDA, mean)
    if n:
        model.add(drawn(n, 2, seed=seed), drawn(n, seed=seed + 1, low=-0.3, high=0.3))
    return model


def made(models, acqf=None, **given):
    acqf = acqf or UpperConfidenceBound(next(iter(models.values())), beta=4.0)
    numbers = {"rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA, "safe_seed": SEED}
    return bx.acquisition.CertifiedSafe(acqf, models, THRESHOLDS, **numbers | given)


@pytest.mark.parametrize("bounds", ["mixture", "ladder"])
@pytest.mark.parametrize(("n", "eps"), [(0, 0.0), (9, 0.0), (9, 0.05)])
def test_slack_is_that_of_dense_algebra(n, eps, bounds):
    models = {
        "pressure": model_of(KERNELS["pressure"], n, 1, mean),
        "purity": model_of(KERNELS["purity"], n, 3),
    }
    acqf = made(models, misspecification=eps, bounds=bounds)
    X, slacks = drawn(6, 2, 2, seed=7), []
    flat = X.view(-1, 2)
    for seed, prior, (name, limit) in zip(
        (1, 3), (mean, lambda X: 0 * X[..., 0]), (("pressure", -0.4), ("purity", -0.7)), strict=True
    ):
        Z, y = drawn(n, 2, seed=seed), drawn(n, seed=seed + 1, low=-0.3, high=0.3)
        kernel = KERNELS[name]
        with torch.no_grad():
            K, k = (
                kernel(Z, A).to_dense().numpy() if n else np.zeros((n, len(A))) for A in (Z, flat)
            )
        ridges = (1.0,) if bounds == "mixture" else RIDGES
        m0, one = prior(flat).numpy(), np.ones(len(flat))
        # Until there are data, nothing is certified.
        lower, upper = np.full((2, len(flat)), [[-np.inf], [np.inf]])
        told = Tight(K, k, one, (y - prior(Z)).numpy(), LAMBDA, B, SIGMA, DELTA / 2, ridges)
        for ridge in ridges if n else ():
            a = ridge * LAMBDA
            half = told.width(a) * told.std(a) + eps * told.norms(a) + eps
            lower = np.maximum(lower, m0 + told.mean(a) - half)
            upper = np.minimum(upper, m0 + told.mean(a) + half)
        slacks.append(lower - limit if name == "purity" else -limit - upper)
    expected = np.min(slacks, axis=0).reshape(6, 2).min(axis=1)
    np.testing.assert_allclose(acqf.slack(X).numpy(), expected, atol=1e-9)
    assert not acqf.refuted


@pytest.mark.parametrize("bounds", ["mixture", "ladder"])
def test_slack_and_constraints_have_the_gradients_of_differences(bounds):
    models = {name: model_of(kernel, 9, 1) for name, kernel in KERNELS.items()}
    acqf = made(models, misspecification=0.05, bounds=bounds)
    X = drawn(3, 1, 2, seed=8).requires_grad_()
    assert torch.autograd.gradcheck(acqf.slack, (X,))
    for constraint, is_of_one_point in acqf.constraints():
        assert is_of_one_point
        assert torch.autograd.gradcheck(constraint, (X[0, 0],))


def test_points_that_are_not_finite_are_refused():
    models = {name: model_of(kernel, 3, 1) for name, kernel in KERNELS.items()}
    with pytest.raises(ValueError, match="X must be finite"):
        made(models).slack([[[0.5, float("nan")]]])


def test_pending_points_and_seeds():
    """Pending points of the models change nothing; seeds are certified, whatever is known."""
    models = {name: model_of(kernel, 9, 1) for name, kernel in KERNELS.items()}
    before, X = made(models), drawn(5, 1, 2, seed=9)
    for model in models.values():
        model.add([[0.9, 0.1]], None)
    after = made(models, acqf=before.acqf)
    torch.testing.assert_close(after.slack(X), before.slack(X))
    assert made(models).slack(torch.tensor([SEED], dtype=X.dtype)).tolist() == [torch.inf]
    with_seed = torch.stack([X[0, 0], torch.tensor(SEED[0], dtype=X.dtype)])
    torch.testing.assert_close(before.slack(with_seed), before.slack(X[:1]))


def test_a_transform_of_the_inputs_is_applied():
    box = torch.tensor([[2.0, -3.0], [5.0, -1.0]], dtype=torch.float64)
    Z, y = drawn(9, 2, seed=1), drawn(9, seed=2, low=-0.3, high=0.3)
    gp = SingleTaskGP(
        box[0] + Z * (box[1] - box[0]),
        y[:, None],
        outcome_transform=None,
        input_transform=Normalize(2, bounds=box),
        covar_module=rbf(0.4, 0.6),
    )
    frozen = bx.KernelGP.from_botorch(gp)
    plain = bx.KernelGP(rbf(0.4, 0.6), frozen.noise_variance, frozen.mean)
    plain.add(Z, y)
    purity = model_of(KERNELS["purity"], 0, 0)
    X = drawn(5, 1, 2, seed=3)
    models = {"pressure": plain, "purity": purity}
    acqf = bx.acquisition.CertifiedSafe(
        UpperConfidenceBound(plain, beta=4.0),
        {"pressure": frozen},
        {"pressure": "<= 0.4"},
        safe_seed=box[:1],
        rkhs_bound=B,
        noise_std=SIGMA,
        delta=DELTA / 2,
    )
    one = made(models | {"purity": plain})._set.outcomes[0]
    torch.testing.assert_close(
        acqf.slack(box[0] + X * (box[1] - box[0])), one.slack(X.squeeze(-2)), atol=1e-6, rtol=0
    )
    assert len(acqf.X_baseline_certified) <= 9


# --- loops ----------------------------------------------------------------------------------------


class Loop:
    """An objective and an outcome of norm B on a box, with noisy results."""

    def __init__(self, dim, seed):
        box = bx.Box([[0.0] * dim, [1.0] * dim])
        kernel = rbf(*[0.3 * dim**0.5] * dim)
        self.truths = [
            bx.problems.RKHSFunction.random(box, kernel, norm=B, seed=2 * seed + place)
            for place in range(2)
        ]
        X = box.sample(256, seed=0)
        safety = self.truths[1](X)
        self.limit, self.bounds = float(safety.quantile(0.3)), box.bounds
        self.safe_seed = X[safety.argsort()[[-13]]]
        self.generator = torch.Generator().manual_seed(seed)
        self.models = [bx.KernelGP(kernel, SIGMA**2) for _ in range(2)]

    def tell(self, X):
        for truth, model in zip(self.truths, self.models, strict=True):
            noise = torch.randn(len(X), generator=self.generator, dtype=X.dtype)
            model.add(X, truth(X) + SIGMA * noise)

    def certified(self, kind, **given):
        model = self.models[0]
        (X,) = model.train_inputs
        if kind == "UCB":
            acqf = UpperConfidenceBound(model, beta=4.0)
        elif kind == "qLogNEI":
            sampler = SobolQMCNormalSampler(torch.Size([32]), seed=0)
            acqf = qLogNoisyExpectedImprovement(
                model, X.unique(dim=0), sampler, prune_baseline=False
            )
        else:
            acqf = bx.acquisition.IntegratedLogEI(model, X_baseline=X)
        return bx.acquisition.CertifiedSafe(
            acqf,
            {"safety": self.models[1]},
            {"safety": f">= {self.limit!r}"},
            safe_seed=self.safe_seed,
            rkhs_bound=B,
            noise_std=SIGMA,
            **given,
        )

    def is_safe(self, X):
        return bool((self.truths[1](X) >= self.limit).all()) or torch.equal(X, self.safe_seed)


@pytest.mark.filterwarnings("ignore:A not p.d.")  # qLogNEI, at points that were evaluated
@pytest.mark.parametrize(
    ("kind", "dim", "q", "bounds"),
    [
        ("UCB", 1, 1, "mixture"),
        ("qLogNEI", 1, 1, "mixture"),
        ("IntegratedLogEI", 2, 2, "ladder"),
    ],
)
def test_loops_ask_certified_points(kind, dim, q, bounds):
    loop = Loop(dim, seed=1)
    loop.tell(loop.safe_seed.repeat(3, 1))
    for step in range(4):
        acqf = loop.certified(kind, bounds=bounds)
        starts = acqf.initial_conditions(loop.bounds, 5, q)
        X, values = acqf.optimize(loop.bounds, q=q, num_restarts=1, raw_samples=32, seed=step)
        assert starts.shape == (5, q, dim)
        assert bool((acqf.slack(torch.cat([X, starts.flatten(0, 1)]).unsqueeze(-2)) >= 0).all())
        torch.testing.assert_close(values[:1], acqf(X[:1].unsqueeze(0)))
        assert acqf.X_pending is None
        assert loop.is_safe(X)
        loop.tell(X)
    assert len(loop.models[1].train_inputs[0].unique(dim=0)) > 1


def test_the_constraints_keep_optimize_acqf_within_the_certified_set():
    loop = Loop(1, seed=1)
    loop.tell(loop.safe_seed)
    acqf = loop.certified("UCB")
    start = acqf.initial_conditions(loop.bounds, 1)
    X, _ = optimize_acqf(
        acqf.acqf,
        loop.bounds,
        q=1,
        num_restarts=1,
        batch_initial_conditions=start,
        nonlinear_inequality_constraints=acqf.constraints(),
        options={"batch_limit": 1},
    )
    assert 0 <= float(acqf.slack(X)) < 1e-3
    assert acqf.optimize(loop.bounds)[1] >= acqf(X) - 1e-6


def test_choices_and_bounds_without_a_certified_point_are_refused():
    loop = Loop(1, seed=1)
    loop.tell(loop.safe_seed)
    acqf, choices = loop.certified("UCB"), torch.linspace(0, 1, 101, dtype=torch.float64)[:, None]
    values = acqf(choices.unsqueeze(-2))
    x, value = acqf.optimize(choices=choices)
    assert value == values.max() == acqf(x)
    assert 0 < int(values.isfinite().sum()) < 101
    unsafe = choices[values.isinf()]
    with pytest.raises(ValueError, match="choices must have a certified point"):
        acqf.optimize(choices=unsafe)
    with pytest.raises(ValueError, match="bounds must contain a certified point"):
        acqf.optimize(torch.tensor([[2.0], [3.0]]))
    with pytest.raises(ValueError, match="bounds or choices must be given"):
        acqf.optimize()


def test_a_refuted_model_leaves_the_seeds():
    loop = Loop(1, seed=1)
    loop.tell(loop.safe_seed)
    X = torch.linspace(0, 1, 12, dtype=torch.float64)[:, None]
    loop.models[1].add(X, 20 * torch.sin(20 * X[:, 0]))
    with pytest.warns(ModelRefutedWarning, match="the model of 'safety' is refuted"):
        acqf = loop.certified("UCB")
    assert acqf.refuted
    assert acqf(X.unsqueeze(-2)).tolist() == [-torch.inf] * 12
    assert torch.equal(acqf.optimize(loop.bounds)[0], loop.safe_seed)
    assert torch.equal(acqf.X_baseline_certified, loop.safe_seed)


def test_models_that_are_not_exact_and_plain_are_refused():
    X, y = drawn(5, 2, seed=1), drawn(5, 1, seed=2)
    gp = SingleTaskGP(X, y, outcome_transform=Standardize(1))
    good = model_of(KERNELS["purity"], 5, 1)
    batched = bx.KernelGP(rbf(1.0), torch.tensor([0.1, 0.2], dtype=torch.float64))
    for model, message in (
        (gp, "models must be single KernelGPs"),
        (batched, "models must be single KernelGPs"),
        (bx.KernelGP.from_botorch(gp), "models must have no outcome transform"),
    ):
        with pytest.raises(ValueError, match=message):
            made({"pressure": model, "purity": good}, UpperConfidenceBound(good, beta=4.0))
    with pytest.raises(ValueError, match="thresholds must have the names"):
        made({"pressure": good})
    with pytest.raises(ValueError, match="acqf must be"):
        made({"pressure": good, "purity": good}, good)


@torch.no_grad()
def test_models_without_data_certify_seeds_alone():
    models = {name: model_of(kernel, 0, 0) for name, kernel in KERNELS.items()}
    told = model_of(KERNELS["purity"], 5, 1)
    acqf = made(models, UpperConfidenceBound(told, beta=4.0), rkhs_bound=0.3)
    X, _ = acqf.optimize([[0.0, 0.0], [1.0, 1.0]], num_restarts=1, raw_samples=8)
    assert X.tolist() == SEED
    assert acqf.slack(drawn(9, 1, 2, seed=3)).tolist() == [-torch.inf] * 9

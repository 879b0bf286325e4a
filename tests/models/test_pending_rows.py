"""Sessions with pending rows against dense algebra: they count in the variance alone."""

import copy

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

from botorch_ext.models import FinitePosterior, KernelGP
from tests.helpers import devices, pairwise, steps_on, tolerance
from tests.oracles.posterior import dense_information_gain, dense_posterior

NOISE = 0.03
LENGTHSCALES = (0.4, 0.9)


def rbf(*lengthscales):
    shape = torch.Size([len(lengthscales)]) if len(lengthscales) > 1 else torch.Size()
    kernel = RBFKernel(batch_shape=shape).double()
    kernel.lengthscale = torch.tensor(lengthscales, dtype=torch.float64).reshape(*shape, 1, 1)
    return kernel


def draw(n, seed):
    g = torch.Generator().manual_seed(seed)
    return torch.rand(n, 2, generator=g, dtype=torch.float64) * 2 + torch.tensor([2.0, -3.0])


CANDIDATES = draw(40, 99)


class Session:
    """A model next to the rows it should have: pairs of a point and a value, None if it pends."""

    def __init__(self, kind, device="cpu"):
        lengthscales = LENGTHSCALES if "batched" in kind else LENGTHSCALES[:1]
        self.kernels = [rbf(scale) for scale in lengthscales]
        kernel = rbf(*lengthscales)
        if "finite" in kind:
            # A capacity of 4, so that the buffers grow in between.
            self.model = FinitePosterior(kernel, CANDIDATES.to(device), NOISE, capacity=4)
        else:
            self.model = KernelGP(kernel, NOISE, device=device)
        self.device = device
        self.rows = []

    def add(self, X, Y):
        self.model.add(X.to(self.device), None if Y is None else Y.to(self.device))
        self.rows += [[x, None if Y is None else Y[i]] for i, x in enumerate(X)]

    def set_targets(self, rows, Y):
        self.model.set_targets(rows, Y.to(self.device))
        for row, y in zip(rows, Y, strict=True):
            self.rows[row][1] = y

    def remove(self, row):
        self.model.remove(row)
        del self.rows[row]

    def check(self):
        X = torch.stack([x for x, _ in self.rows])
        known = [i for i, (_, y) in enumerate(self.rows) if y is not None]
        Y = torch.stack([self.rows[i][1] for i in known]) if known else X.new_zeros(0)
        means, variances, gains, inflations = [], [], [], []
        for kernel in self.kernels:
            means.append(dense_posterior(kernel, X[known], Y, CANDIDATES, NOISE)[0])
            covariance = dense_posterior(kernel, X, X[:, 0], CANDIDATES, NOISE)[1]
            variances.append(covariance.diagonal())
            gains.append(dense_information_gain(kernel, X, NOISE))
            inflations.append(gains[-1] - dense_information_gain(kernel, X[known], NOISE))
        if isinstance(self.model, FinitePosterior):
            mean, std = self.model.mean, self.model.std
        else:
            mean, std = self.model.mean_and_std(CANDIDATES.to(self.device))
        inflation = self.model.factor.pending_information_gain()
        got = mean, std, self.model.information_gain(), inflation
        expected = torch.stack(means), torch.stack(variances).sqrt(), gains, inflations
        for a, b in zip(got, expected, strict=True):
            b = torch.as_tensor(b, dtype=torch.float64)
            assert_close(a.cpu().reshape(b.shape), b, **tolerance(torch.float64))
        if isinstance(self.model, FinitePosterior):
            of_known = [dense_posterior(k, X[known], Y, CANDIDATES, NOISE)[1] for k in self.kernels]
            b = torch.stack([covariance.diagonal() for covariance in of_known]).sqrt()
            a = self.model.std_of_known()
            assert_close(a.cpu().reshape(b.shape), b, **tolerance(torch.float64))


KINDS = ["kernel_gp", "finite", "batched kernel_gp", "batched finite"]


@pairwise(kind=KINDS, seed=range(4), device=devices())
def test_random_sessions_are_the_dense_algebra(kind, seed, device):
    g = torch.Generator().manual_seed(seed)

    def integer(high):
        return int(torch.randint(high, (), generator=g))

    session = Session(kind, device)
    for step in range(steps_on(device, 30)):
        points = draw(1 + integer(4) * integer(2), 1000 * seed + step)
        values = torch.randn(len(points), generator=g, dtype=torch.float64)
        n = len(session.rows)
        action = integer(7) if n else 0
        if action < 3:
            session.add(points, values if action == 0 else None)
        elif action < 5:  # tell some that pend, or replace what is known
            rows = torch.randperm(n, generator=g)[: 1 + integer(3)].tolist()
            session.set_targets(rows, torch.randn(len(rows), generator=g, dtype=torch.float64))
        elif action == 5 and n > 3:
            session.remove(integer(n))
        else:  # looking changes nothing
            session.model.factor.pending_information_gain()
        if session.rows:
            session.check()


@pytest.mark.parametrize("kind", KINDS)
def test_several_rows_told_at_once_in_any_order(kind):
    session = Session(kind)
    X = draw(9, 5)
    Y = torch.tensor([1.0, -2.0, 0.5, 3.0, -1.0], dtype=torch.float64)
    session.add(X[:5], None)
    session.add(X[5:6], Y[:1])
    session.add(X[6:], None)
    session.set_targets([4, 7, 1, 2], Y[1:])
    session.check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_removed_row_leaves_no_effect_on_a_mean_that_pends(kind):
    session = Session(kind)
    X = torch.tensor([[2.3, -2.0], [2.4, -2.0]], dtype=torch.float64)
    session.add(X[:1], None)
    session.add(X[1:], torch.ones(1, dtype=torch.float64))
    session.remove(1)
    session.check()


@pytest.mark.parametrize("kind", ["kernel_gp", "batched kernel_gp"])
def test_conditioning_leaves_pending_rows_out_of_the_mean(kind):
    session = Session(kind)
    X = draw(9, 1)
    session.add(X[:2], None)
    session.add(X[2:5], torch.randn(3, generator=torch.Generator().manual_seed(0)).double())
    session.add(X[5:6], None)
    Y = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    parent = copy.deepcopy(session)

    def mean(new, Y):
        conditioned = parent.model.condition_on_observations(new, Y[:, None])
        return conditioned.mean_and_std(CANDIDATES[:5])[0]

    session.add(X[6:], Y)
    session.check()
    expected, _ = session.model.mean_and_std(CANDIDATES[:5])
    assert_close(mean(X[6:], Y), expected, **tolerance(torch.float64))
    assert torch.autograd.gradcheck(mean, (X[6:].clone().requires_grad_(), Y.requires_grad_()))
    # It can be told on; its parent stays as it was.
    told = parent.model.condition_on_observations(X[6:], Y.detach()[:, None])
    for model in (told, session.model):
        model.set_targets([0], torch.ones(1, dtype=torch.float64))
    a, b = (model.mean_and_std(CANDIDATES)[0] for model in (told, session.model))
    assert_close(a, b, **tolerance(torch.float64))
    parent.check()


def test_fantasies_with_pending_rows():
    session = Session("kernel_gp")
    X = draw(6, 2)
    session.add(X[:2], None)
    session.add(X[2:4], torch.tensor([1.0, -1.0], dtype=torch.float64))
    Y = torch.randn(3, 2, 1, generator=torch.Generator().manual_seed(1)).double()
    fantasies = session.model.condition_on_observations(X[4:], Y)
    mean, _ = fantasies.mean_and_std(CANDIDATES)
    again = fantasies.condition_on_observations(CANDIDATES[:1], Y[:, :1])
    mean_again, _ = again.mean_and_std(CANDIDATES)
    for i in range(3):
        one = copy.deepcopy(session)
        one.add(X[4:], Y[i, :, 0])
        assert_close(mean[i], one.model.mean_and_std(CANDIDATES)[0], **tolerance(torch.float64))
        one.add(CANDIDATES[:1], Y[i, :1, 0])
        expected = one.model.mean_and_std(CANDIDATES)[0]
        assert_close(mean_again[i], expected, **tolerance(torch.float64))


@pytest.mark.parametrize("kind", ["kernel_gp", "batched kernel_gp"])
def test_a_finite_posterior_takes_over_what_pends(kind):
    session = Session(kind)
    X = draw(8, 3)
    session.add(X[:2], None)
    session.add(X[2:6], torch.randn(4, generator=torch.Generator().manual_seed(2)).double())
    session.add(X[6:], None)
    finite = Session(kind.replace("kernel_gp", "finite"))
    finite.model = FinitePosterior.from_model(session.model, CANDIDATES)
    finite.rows = [list(row) for row in session.rows]
    finite.check()
    finite.set_targets([1, 7], torch.tensor([0.3, -0.6], dtype=torch.float64))
    finite.remove(3)
    finite.check()

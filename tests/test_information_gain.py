import itertools
import math

import pytest
import torch
from gpytorch.kernels import AdditiveKernel, LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, counting
from botorch_ext import Box, FiniteSet, KernelGP
from botorch_ext.information_gain import (
    GREEDY_SHARE,
    additive_kernel_bound,
    greedy_information_gain,
    max_information_gain,
    product_kernel_bound,
)
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from tests.helpers import tolerance
from tests.oracles.posterior import dense_information_gain, dense_posterior

TOL = tolerance(torch.float64)
BOX = Box([[2.0, -3.0], [5.0, -1.5]])


def rbf(lengthscale=0.7, **options):
    kernel = RBFKernel(**options).double()
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    return kernel


def matern(lengthscale=0.7, **options):
    kernel = MaternKernel(nu=1.5, **options).double()
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    return kernel


def linear(**options):
    """x x', at most 1 on [-1, 1]: of rank 1."""
    kernel = LinearKernel(**options).double()
    kernel.variance = torch.tensor(1.0, dtype=torch.float64)
    return kernel


def greedy_by_hand(kernel, points, num_points, noise):
    """Always the largest posterior variance, each from scratch."""
    rows, gains = [], []
    for _ in range(num_points):
        X = points[rows]
        if rows:
            variance = dense_posterior(kernel, X, X.new_zeros(len(X)), points, noise)[1].diagonal()
        else:
            variance = kernel(points, diag=True).detach()
        rows.append(int(variance.argmax()))
        gains.append(dense_information_gain(kernel, points[rows], noise))
    return torch.tensor(gains, dtype=torch.float64)


def best_of_all(kernel, points, num_points, noise):
    """gamma: the largest gain of all multisets of points."""
    multisets = itertools.combinations_with_replacement(range(len(points)), num_points)
    return max(dense_information_gain(kernel, points[list(rows)], noise) for rows in multisets)


# --- the greedy maximum ---------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.01, 0.5])
@pytest.mark.parametrize("kernel", [rbf(), matern(), linear()], ids=["rbf", "matern", "linear"])
def test_the_greedy_curve_is_the_plain_loop(kernel, noise, device):
    points = BOX.sample(20, seed=1)
    if isinstance(kernel, LinearKernel):
        points = points / 6  # k(x, x) at most 1
    domain = FiniteSet(points, device=device)
    curve = greedy_information_gain(kernel.to(device), domain, 30, noise)
    assert curve.device == domain.device
    # Ties decide between designs of equal gain: only the gains are compared.
    assert_close(curve.cpu(), greedy_by_hand(kernel.cpu(), points, 30, noise), **TOL)
    steps = curve.cpu().diff(prepend=torch.zeros(1).double())
    assert bool((steps > 0).all())
    assert bool((steps.diff() <= 1e-9).all())  # concave


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.05, 1.0])
@pytest.mark.parametrize("make", [rbf, matern])
def test_the_maximum_of_all_designs_lies_between_the_ends(make, noise, seed):
    kernel, domain = make(1.1), FiniteSet(BOX.sample(6, seed))
    greedy = max_information_gain(kernel, domain, 3, noise)
    upper = max_information_gain(kernel, domain, 3, noise, upper=True)
    gamma = best_of_all(kernel, domain.points, 3, noise)
    assert greedy <= gamma * (1 + 1e-12)
    assert gamma <= upper
    assert upper == pytest.approx(greedy / (1 - 1 / math.e), rel=1e-12)
    assert pytest.approx(1 - 1 / math.e) == GREEDY_SHARE
    assert greedy == greedy_information_gain(kernel, domain, 3, noise)[-1]


def test_greedy_can_fall_short_of_the_maximum():
    # Of a plateau it takes the first point, here the middle, which is in no best pair.
    domain = FiniteSet([[3.0], [2.0], [4.0]])
    greedy = max_information_gain(rbf(), domain, 2, 0.1)
    gamma = best_of_all(rbf(), domain.points, 2, 0.1)
    assert gamma == pytest.approx(dense_information_gain(rbf(), domain.points[1:], 0.1))
    assert GREEDY_SHARE * gamma < greedy < 0.98 * gamma


@pytest.mark.parametrize("kernel", [rbf(0.5), matern(1.2)], ids=["rbf", "matern"])
def test_greedy_on_a_box_is_no_worse_than_on_a_dense_set(kernel, device):
    box = BOX.to(device=device)
    kernel = kernel.to(device)
    num = 25
    curve = greedy_information_gain(kernel, box, num, 0.05, seed=1)
    # A stationary prior is the same everywhere: what comes first is a matter of choice, and decides
    # by up to 2 % what ten points gain, of a seed as of any set. Both begin at a corner.
    points = torch.cat([box.bounds[:1], box.sample(2000, seed=4)])
    dense = greedy_information_gain(kernel, FiniteSet(points), num, 0.05)
    assert curve.shape == (num,)
    assert bool((curve >= 0.99 * dense).all())
    assert curve[-1] >= dense[-1]
    assert torch.equal(curve, greedy_information_gain(kernel, box, num, 0.05, seed=1))


def test_greedy_on_a_box_finds_the_corners():
    # Of few points far apart under a long lengthscale, the best four are the corners.
    kernel = rbf(1.5)
    corners = torch.cartesian_prod(*BOX.bounds.T)
    curve = greedy_information_gain(kernel, BOX, 4, 0.01)
    best = dense_information_gain(kernel, corners, 0.01)
    assert curve[-1].item() == pytest.approx(best, rel=0.01)


def test_the_gain_of_a_model_is_at_most_the_upper_end():
    domain = FiniteSet(BOX.sample(30, seed=5))
    for seed in range(5):
        X = domain.points[domain.sample_indices(12, seed)]
        model = KernelGP(rbf(), 0.05)
        model.add(X, X.new_zeros(12))
        gain = model.information_gain().item()
        assert gain == pytest.approx(dense_information_gain(rbf(), X, 0.05), rel=1e-9)
        assert gain <= max_information_gain(rbf(), domain, 12, 0.05, upper=True)


# --- composite kernels ----------------------------------------------------------------------------


ACTIONS = torch.tensor([[2.0], [2.6], [3.7]], dtype=torch.float64)
CONTEXTS = torch.tensor([[-0.9], [0.4]], dtype=torch.float64)
PAIRS = torch.cat(
    [ACTIONS.repeat_interleave(2, dim=0), CONTEXTS.repeat(3, 1)], dim=-1
)  # every action with every context


@pytest.mark.parametrize("noise", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("horizon", [1, 2, 4])
@pytest.mark.parametrize("rank", [1, 2])
def test_the_product_bound_holds_for_the_exact_maxima(noise, horizon, rank):
    context = linear if rank == 1 else rbf  # two contexts: an RBF matrix has rank 2
    joint = best_of_all(rbf(active_dims=(0,)) * context(active_dims=(1,)), PAIRS, horizon, noise)
    action = best_of_all(rbf(), ACTIONS, horizon, noise)
    bound = product_kernel_bound(action, rank, horizon)
    assert joint <= bound + 1e-12
    assert bound == pytest.approx(rank * action + rank * math.log(horizon), rel=1e-12)
    upper = max_information_gain(rbf(), FiniteSet(ACTIONS), horizon, noise, upper=True)
    assert bound <= product_kernel_bound(upper, rank, horizon)


@pytest.mark.parametrize("noise", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("horizon", [1, 2, 4])
def test_the_additive_bound_holds_for_the_exact_maxima(noise, horizon):
    parts = rbf(active_dims=(0,)), matern(active_dims=(1,))
    halved = ScaleKernel(AdditiveKernel(*parts)).double()
    halved.outputscale = torch.tensor(0.5, dtype=torch.float64)
    joint = best_of_all(AdditiveKernel(*parts), PAIRS, horizon, noise)
    action = best_of_all(rbf(), ACTIONS, horizon, noise)
    context = best_of_all(matern(), CONTEXTS, horizon, noise)
    bound = additive_kernel_bound(action, context, horizon)
    assert best_of_all(halved, PAIRS, horizon, noise) <= joint <= bound + 1e-12
    assert bound == pytest.approx(action + context + 2 * math.log(horizon), rel=1e-12)


def largest_gain(kernel, points, num_points, noise):
    """gamma, of all multisets at once."""
    with torch.no_grad():
        K = kernel(points, points).to_dense()
    multisets = itertools.combinations_with_replacement(range(len(points)), num_points)
    rows = torch.tensor(list(multisets))
    matrices = K[rows.unsqueeze(-1), rows.unsqueeze(-2)] / noise
    eye = torch.eye(num_points, dtype=K.dtype)
    return 0.5 * torch.linalg.slogdet(eye + matrices).logabsdet.max().item()


def covariance_of_rank(rank, num_tasks=4):
    """With k(z, z) = 1 for all but the last, where it is less."""
    generator = torch.Generator().manual_seed(rank)
    B = torch.randn(num_tasks, rank, generator=generator, dtype=torch.float64)
    B = B / B.norm(dim=-1, keepdim=True)
    B[-1] *= 0.6
    return B @ B.mT


@pytest.mark.parametrize("noise", [0.01, 2.0])
@pytest.mark.parametrize("horizon", [1, 2, 5])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_bounds_hold_for_tasks(rank, horizon, noise):
    tasks = TaskKernel(covariance_of_rank(rank))
    numbers = torch.arange(4, dtype=torch.float64).unsqueeze(-1)
    pairs = torch.cat([ACTIONS.repeat_interleave(4, dim=0), numbers.repeat(3, 1)], dim=-1)
    action = largest_gain(rbf(), ACTIONS, horizon, noise)
    assert action == pytest.approx(best_of_all(rbf(), ACTIONS, horizon, noise), rel=1e-12)
    context = largest_gain(tasks, numbers, horizon, noise)
    product = largest_gain(ActionContextKernel(rbf(), tasks, 1), pairs, horizon, noise)
    assert product <= product_kernel_bound(action, rank, horizon)
    assert product <= rank * action * (1 + 1e-12)  # without ln T
    # A task alone can be played all the time, and one action in all tasks.
    assert product >= max(action, context) * (1 - 1e-12)
    summed = ActionContextKernel(rbf(), tasks, 1, combination="sum")
    halved = largest_gain(summed, pairs, horizon, noise)
    doubled = largest_gain(summed, pairs, horizon, noise / 2)  # k_S + k_Z itself
    assert halved <= doubled <= additive_kernel_bound(action, context, horizon)
    assert doubled <= (action + context) * (1 + 1e-12)  # without ln T


def test_the_bounds_are_their_formulas():
    assert product_kernel_bound(3.5, 4, 100) == pytest.approx(4 * 3.5 + 4 * math.log(100))
    assert additive_kernel_bound(3.5, 1.25, 100) == pytest.approx(3.5 + 1.25 + 2 * math.log(100))
    assert product_kernel_bound(3.5, 2, 1) == 7.0
    assert additive_kernel_bound(0.0, 0.0, 1) == 0.0


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [BOX, FiniteSet(ACTIONS)], ids=["box", "set"])
@pytest.mark.parametrize("function", [greedy_information_gain, max_information_gain])
def test_impossible_designs_are_refused(domain, function):
    with pytest.raises(ValueError, match="num_points must be at least 1, got 0"):
        function(rbf(), domain, 0, 0.1)
    for noise in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=f"noise_variance must be positive .*got {noise}"):
            function(rbf(), domain, 3, noise)
    with pytest.raises(ValueError, match=r"kernel must .*batch.* got .*\(2,\)"):
        function(RBFKernel(batch_shape=torch.Size([2])).double(), domain, 3, 0.1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: product_kernel_bound(-1.0, 2, 10), "action_gain must be non-negative and finite"),
        (lambda: product_kernel_bound(math.nan, 2, 10), "action_gain must be .*got nan"),
        (lambda: product_kernel_bound(1.0, 0, 10), "context_rank must be at least 1, got 0"),
        (lambda: product_kernel_bound(1.0, 2, 0), "horizon must be at least 1, got 0"),
        (lambda: additive_kernel_bound(math.inf, 1.0, 10), "action_gain must be .*got inf"),
        (lambda: additive_kernel_bound(1.0, -0.5, 10), "context_gain must be .*got -0.5"),
        (lambda: additive_kernel_bound(1.0, 1.0, 0), "horizon must be at least 1, got 0"),
    ],
)
def test_impossible_bounds_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_running_sums_are_those_of_the_host():
    domain = FiniteSet(Box([[2.0], [5.0]]).sample(20, 0))
    expected = greedy_information_gain(RBFKernel(), domain, 6, 0.1)
    with PretendCUDA(), counting() as tally:
        gains = greedy_information_gain(RBFKernel(), domain.to(device="cuda"), 6, 0.1)
        assert gains.is_cuda and not tally.nondeterministic
        assert_close(gains.cpu(), expected, **tolerance(torch.float64))

"""The worst cases of misspecification: each shows the property it was made for, by replay."""

import math
import pickle

import pytest
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel

import botorch_ext as bx
from botorch_ext.problems import (
    LockOut,
    NoisyLockOut,
    Perturbed,
    RKHSFunction,
    hidden_arm,
    random_linear,
    white,
)
from tests.helpers import tolerance

CLOSE = tolerance(torch.float64)


def _gp_ucb(problem, horizon, seed, **options):
    """The trace of GP-UCB with its theoretical width."""
    options = {"noise_variance": problem.noise_variance, "delta": problem.delta} | options
    strategy = bx.algorithms.gp_ucb(
        problem.domain,
        problem.kernel,
        noise_std=problem.noise_std,
        rkhs_bound=problem.rkhs_bound,
        seed=seed,
        **options,
    )
    return bx.simulate(strategy, problem, horizon, seed=seed)


def _plays(trace):
    return int((trace.regret < 1e-9).sum())


@pytest.mark.parametrize("dim", [2, 3, 6])
def test_gp_ucb_stays_locked_out_in_several_dimensions(dim: int) -> None:
    problem = LockOut(dim)
    assert problem.domain.num_points == 3 * (dim - 1)
    values = problem(problem.domain.points)
    assert values.max() == pytest.approx(1.008, abs=1e-12)
    assert problem.rkhs_part.norm == pytest.approx(1.0, abs=1e-12)
    assert sorted(values.tolist())[-2] < 0.3
    for seed in range(3):
        trace = _gp_ucb(problem, 200, seed)
        assert _plays(trace) == 0
        # Each decoy of the best arm is tried and found bad.
        assert int((trace.values < 0.2).sum()) >= dim - 2


def test_several_dimensions_have_the_plain_lock_out_in_their_first_two() -> None:
    rows = [0, 1, 6]
    inside, plain = LockOut(4), LockOut()
    points = inside.domain.points[rows]
    torch.testing.assert_close(points[:, :2], plain.domain.points, **CLOSE)
    torch.testing.assert_close(inside(points), plain(plain.domain.points), **CLOSE)
    assert repr(inside) == "LockOut(dim=4)"
    for dim in (1, 7):
        with pytest.raises(ValueError, match="dim must"):
            LockOut(dim)


@pytest.mark.parametrize("gap", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("width", [None, 0.5, 20.0])
def test_gp_ucb_never_plays_the_better_arm_whatever_its_width(
    gap: float, width: float | None
) -> None:
    problem = NoisyLockOut(gap)
    long, short = problem(problem.domain.points).tolist()
    assert short - long == pytest.approx(gap * problem.noise_std, abs=1e-12)
    assert problem.misspecification == pytest.approx((short - 0.9 * long) / 1.9, abs=1e-12)
    assert _plays(_gp_ucb(problem, 100, 4, width=width)) == 0
    assert torch.equal(
        pickle.loads(pickle.dumps(problem))(problem.domain.points), problem(problem.domain.points)
    )


def test_a_few_random_linear_instances_lock_gp_ucb_out() -> None:
    def is_locked(seed: int) -> bool:
        problem = random_linear(seed)
        return _plays(_gp_ucb(problem, 60, seed)) == 0

    locked = [seed for seed in range(35) if is_locked(seed)]
    # One of fourteen is about what 400 give; these are the first.
    assert locked == [3, 17, 33]


def test_random_linear_instances_are_what_they_say() -> None:
    problem = random_linear(5, dim=4, num_arms=9, misspecification=0.5)
    arms = problem.domain.points
    assert arms.shape == (9, 4)
    assert bool((arms.norm(dim=-1) <= 1).all())
    assert problem.rkhs_part.norm == pytest.approx(1.0, abs=1e-12)
    m = problem(arms) - problem.rkhs_part(arms)
    torch.testing.assert_close(m.abs(), torch.full_like(m, 0.5), **CLOSE)
    assert torch.equal(random_linear(5, dim=4, num_arms=9).domain.points, arms)
    with pytest.raises(ValueError, match="num_arms must be"):
        random_linear(0, num_arms=0)


def _smooth(seed):
    """A function of norm 2 on a grid, away from the origin."""
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.2
    domain = bx.FiniteSet(torch.linspace(3.0, 4.0, 80, dtype=torch.float64).unsqueeze(-1))
    return RKHSFunction.random(domain, kernel, norm=2.0, noise_std=0.1, seed=seed), kernel


def _of_smooth(problem, kernel):
    """The same with what `_gp_ucb` asks for."""
    problem.kernel, problem.noise_variance, problem.delta, problem.rkhs_bound = (
        kernel,
        0.01,
        0.1,
        2.0,
    )
    return problem


def test_a_hidden_arm_changes_nothing_of_the_run_it_was_made_of() -> None:
    f, kernel = _smooth(1)
    before = _gp_ucb(_of_smooth(f, kernel), 150, seed=3)
    problem = hidden_arm(f, before.X, gap=0.5)
    after = _gp_ucb(_of_smooth(problem, kernel), 150, seed=3)
    assert torch.equal(after.X, before.X)
    torch.testing.assert_close(after.regret, before.regret + 0.5, **CLOSE)
    # Made of the runs of several seeds, it is hidden with other noise as well.
    runs = [_gp_ucb(_of_smooth(f, kernel), 150, seed).X for seed in range(8)]
    problem = hidden_arm(f, torch.cat(runs), gap=0.5)
    for seed in range(8, 16):
        assert _plays(_gp_ucb(_of_smooth(problem, kernel), 150, seed)) == 0


def test_a_hidden_arm_keeps_to_a_misspecification() -> None:
    f, kernel = _smooth(1)
    played = _gp_ucb(_of_smooth(f, kernel), 150, seed=3).X
    free, kept = hidden_arm(f, played, 0.5), hidden_arm(f, played, 0.5, misspecification=1.2)
    assert free.misspecification > 1.2
    assert 1.0 < kept.misspecification <= 1.2
    assert kept.optimal_value == pytest.approx(free.optimal_value, abs=1e-12)
    for value in (0.4, -1.0, math.nan):
        with pytest.raises(ValueError, match="misspecification must"):
            hidden_arm(f, played, 0.5, misspecification=value)


def test_the_decoys_of_a_hidden_arm_are_bad() -> None:
    f, kernel = _smooth(1)
    trace = _gp_ucb(_of_smooth(f, kernel), 150, seed=3)
    problem = hidden_arm(f, trace.X, gap=0.5)
    points = problem.domain.points
    row = int(problem(points).argmax())
    near = [i for i in (row - 2, row - 1, row + 1, row + 2) if 0 <= i < len(points)]
    assert float(problem(points[near]).max()) < float(f.optimal_value) - 1
    assert problem.optimal_value == pytest.approx(f.optimal_value + 0.5, abs=1e-12)
    assert float(kernel(points[row], points[near]).to_dense().detach().min()) > 0.9


def test_the_run_speaks_against_a_nugget_that_belongs_to_f() -> None:
    # What a candidate test with c = ln(2 / 0.1) goes by: the plain model is ahead by more.
    f, kernel = _smooth(1)
    problem = hidden_arm(f, _gp_ucb(_of_smooth(f, kernel), 150, seed=3).X, gap=0.5)
    trace = _gp_ucb(_of_smooth(problem, kernel), 150, seed=3)
    K = kernel(trace.X).to_dense().detach()
    same = (trace.X == trace.X.T).double()
    noise = 0.01 * torch.eye(len(K), dtype=torch.float64)

    def evidence(gram: torch.Tensor) -> float:
        normal = torch.distributions.MultivariateNormal(torch.zeros(len(K)).double(), gram + noise)
        return float(normal.log_prob(trace.observations))

    assert evidence(K) - evidence(K + (2.0 / 4) ** 2 * same) > math.log(2 / 0.1)


def test_a_white_perturbation_is_plus_or_minus_eps_at_each_point() -> None:
    domain = bx.FiniteSet(bx.Box([[2.0, -1.0], [5.0, 1.0]]).sample(500, 0))
    m = white(domain, 0.5, seed=7)(domain.points)
    assert set(m.tolist()) == {-0.5, 0.5}
    assert abs(float(m.mean())) < 4 * 0.5 / math.sqrt(500)
    # No structure: neighbouring rows agree as often as not.
    assert abs(float((m[1:] * m[:-1]).mean())) < 4 * 0.25 / math.sqrt(499)
    assert torch.equal(m, white(domain, 0.5, seed=7)(domain.points))
    assert not torch.equal(m, white(domain, 0.5, seed=8)(domain.points))


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.LengthscaleWarning")
def test_a_white_perturbation_makes_a_nugget_try_the_points() -> None:
    domain = bx.FiniteSet(bx.Box([[2.0, -1.0], [5.0, 1.0]]).sample(100, 0))
    kernel = RBFKernel().double()
    f = RKHSFunction.random(domain, kernel, norm=2.0, noise_std=0.1, seed=0)
    problem = _of_smooth(Perturbed(f, white(domain, 0.5, seed=1), 0.5), kernel)
    plain = _gp_ucb(problem, 100, seed=1, width=3.0)
    # So short that it is 0 between two points of the set.
    nugget = ScaleKernel(RBFKernel()).double()
    nugget.outputscale, nugget.base_kernel.lengthscale = 0.25, 1e-4
    smooth = ScaleKernel(kernel)
    smooth.outputscale = 0.75
    problem.kernel = smooth + nugget
    with_nugget = _gp_ucb(problem, 100, seed=1, width=3.0)
    tried = [len(trace.X.unique(dim=0)) for trace in (plain, with_nugget)]
    assert tried[1] > 2 * tried[0]

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from botorch_ext.delays import Fixed, FromScipy, Geometric, LogNormal, Poisson, as_delay

NUM = 20_000


def draws(delay, num: int = NUM, seed: int = 0) -> np.ndarray:
    sample = as_delay(delay).sample(num, np.random.default_rng(seed))
    assert sample.dtype == np.int64
    assert sample.shape == (num,)
    assert sample.min() >= 0
    return sample


def chances(sample: np.ndarray, upto: int) -> np.ndarray:
    return np.bincount(sample, minlength=upto + 1)[: upto + 1] / len(sample)


def close_to(expected: np.ndarray) -> np.ndarray:
    """Five standard errors of a frequency, at most: a false alarm in 6e-7 for each."""
    return 5 * np.sqrt(expected * (1 - expected) / NUM) + 1e-12


def test_poisson_follows_its_formula() -> None:
    expected = np.array([math.exp(-3.5) * 3.5**k / math.factorial(k) for k in range(12)])
    assert (np.abs(chances(draws(Poisson(3.5)), 11) - expected) <= close_to(expected)).all()


def test_geometric_starts_at_zero_and_has_the_mean() -> None:
    p = 1 / (1 + 3.5)
    expected = np.array([p * (1 - p) ** k for k in range(12)])
    assert (np.abs(chances(draws(Geometric(3.5)), 11) - expected) <= close_to(expected)).all()
    assert Geometric(3.5).distribution.mean() == pytest.approx(3.5)


def test_log_normal_is_rounded_up() -> None:
    normal = stats.norm()
    above = normal.cdf(np.log(np.arange(1, 13) / 4.0) / 0.7)
    below = np.concatenate([[0.0], above[:-1]])
    expected = np.concatenate([[0.0], above - below])  # 0 steps never; k: between k - 1 and k
    assert (np.abs(chances(draws(LogNormal(4.0, 0.7)), 12) - expected) <= close_to(expected)).all()
    assert LogNormal(4.0, 0.7).distribution.median() == pytest.approx(4.0)


@pytest.mark.parametrize("none", [None, 0, Poisson(0), Geometric(0), stats.poisson(0)])
def test_no_delay(none) -> None:
    assert (draws(none, 50) == 0).all()


@pytest.mark.parametrize("steps", [3, np.int64(3), Fixed(3), stats.randint(3, 4)])
def test_a_constant_delay(steps) -> None:
    assert (draws(steps, 50) == 3).all()


def test_any_frozen_scipy_distribution_rounded_up() -> None:
    sample = draws(stats.gamma(2.0, scale=3.0))
    rng = np.random.default_rng(0)
    assert (sample == np.ceil(stats.gamma(2.0, scale=3.0).rvs(NUM, random_state=rng))).all()
    shifted = draws(stats.poisson(2.0, loc=1))
    assert shifted.min() == 1
    own = stats.rv_discrete(name="two", values=([0, 7], [0.5, 0.5]))()
    assert set(draws(own).tolist()) == {0, 7}


def test_the_generator_given_is_the_only_randomness() -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002, RUF100
    for delay in (Poisson(5), Geometric(5), LogNormal(5, 1), stats.gamma(2.0)):
        assert (draws(delay, 100, seed=1) == draws(delay, 100, seed=1)).all()
        assert (draws(delay, 100, seed=1) != draws(delay, 100, seed=2)).any()
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002, RUF100


def test_a_tail_beyond_the_integers_is_cut() -> None:
    sample = draws(LogNormal(1.0, 200.0), 200)
    assert sample.max() == 2**53


def test_values_compare_print_and_travel() -> None:
    assert Poisson(50) == Poisson(50)
    assert repr(Poisson(50)) == "Poisson(mean=50)"
    assert repr(LogNormal(20, 1.5)) == "LogNormal(median=20, sigma=1.5)"
    assert repr(as_delay(stats.gamma(2.0, scale=3.0))) == "FromScipy(gamma(2.0, scale=3.0))"
    assert as_delay(Poisson(50)) == Poisson(50)
    assert as_delay(None) == as_delay(0) == Fixed(0)
    assert pickle.loads(pickle.dumps(Geometric(4))) == Geometric(4)
    assert isinstance(pickle.loads(pickle.dumps(as_delay(stats.gamma(2.0)))), FromScipy)


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        (-1, "delay must be None, a whole number of steps not below 0.*got -1"),
        (2.5, r"delay must be None, a whole number .* got 2\.5"),
        (True, "delay must be None, a whole number .* got True"),
        ("Poisson", "delay must be None, a whole number .* got 'Poisson'"),
        (stats.poisson, "with its parameters"),
        (stats.norm(50, 5), r"support not below 0, got norm\(50, 5\) with lowest value -inf"),
        (stats.poisson(3, loc=-1), "support not below 0, got .* lowest value -1"),
        (stats.gamma(-1.0), "support not below 0, got .* lowest value nan"),
        (stats.pareto(0.9), r"delay must have a finite mean, got pareto\(0.9\) with mean inf"),
        (stats.gamma([1.0, 2.0]), "delay must"),
    ],
)
def test_what_is_no_delay_is_named(delay, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        as_delay(delay)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Poisson(-1), "mean must be finite and at least 0, got -1"),
        (lambda: Geometric(math.inf), "mean must be finite and at least 0, got inf"),
        (lambda: Poisson(math.nan), "mean must be finite and at least 0, got nan"),
        (lambda: LogNormal(0, 1), "median must be finite and positive, got 0"),
        (lambda: LogNormal(1, 0), "sigma must be finite and positive, got 0"),
        (lambda: Fixed(-2), "steps must be finite and at least 0, got -2"),
        (lambda: FromScipy(3), "delay must be a frozen scipy distribution, got 3"),
    ],
)
def test_bad_parameters_are_named(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()

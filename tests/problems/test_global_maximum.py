import math
import warnings

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.problems import RKHSFunction, global_maximum

BOX = Box([[2.0, -7.0, 100.0], [5.0, -6.2, 140.0]])


def bowl(peak: Tensor, height: float, scale: float):
    side = BOX.upper - BOX.lower
    return lambda X: height - scale * ((X - peak) / side).square().sum(dim=-1)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_smooth_maximum_inside_is_found_to_1e9_of_the_spread(scale: float) -> None:
    peak = torch.tensor([3.1, -6.51, 117.0], dtype=torch.float64)
    x, value = global_maximum(bowl(peak, 3.0 * scale, scale), BOX, seed=3, num_raw=64)
    assert abs(value - 3.0 * scale) <= 1e-9 * scale
    torch.testing.assert_close(x, peak, rtol=1e-6, atol=0.0)


def test_a_maximum_outside_is_clipped_to_the_face() -> None:
    peak = torch.tensor([3.1, -5.0, 117.0], dtype=torch.float64)
    x, value = global_maximum(bowl(peak, 3.0, 1.0), BOX, seed=3, num_raw=64)
    face = torch.tensor([3.1, -6.2, 117.0], dtype=torch.float64)
    assert bool(BOX.contains(x))
    assert value == pytest.approx(3.0 - (1.2 / 0.8) ** 2, abs=1e-9)
    torch.testing.assert_close(x, face, rtol=1e-6, atol=0.0)


def test_the_highest_of_many_bumps_is_found() -> None:
    def bumps(X: Tensor) -> Tensor:
        return (14.0 * X[:, 0]).cos() + 0.1 * X[:, 0] + (19.0 * X[:, 1]).cos()

    box = Box([[2.0, -7.0], [5.0, -6.2]])
    grid = np.linspace(2.0, 5.0, 3_000_001)
    first = (np.cos(14.0 * grid) + 0.1 * grid).max()
    assert -7.0 < -40 * math.pi / 19.0 < -6.2  # where the second cosine is 1
    _, value = global_maximum(bumps, box, seed=0)
    assert value == pytest.approx(first + 1.0, abs=1e-9)


def test_extra_points_are_screened_and_may_be_all_there_is() -> None:
    peak = torch.tensor([3.1, -6.51, 117.0], dtype=torch.float64)
    narrow = lambda X: bowl(peak, 0.0, 1e10)(X).exp()  # noqa: E731
    missed, _ = global_maximum(narrow, BOX, seed=0, num_raw=16, extra=BOX.bounds)
    assert not torch.allclose(missed, peak)
    x, value = global_maximum(narrow, BOX, seed=0, num_raw=0, extra=peak.unsqueeze(0))
    torch.testing.assert_close(x, peak)
    assert value == 1.0


def test_a_cusp_with_no_gradient_ends_its_start_only() -> None:
    peak = torch.tensor([3.1, -6.51, 117.0], dtype=torch.float64)

    def cusp(X: Tensor) -> Tensor:
        return -(X - peak).abs().sqrt().sum(dim=-1)  # NaN gradient at the peak

    x, value = global_maximum(cusp, BOX, seed=0, num_raw=32, extra=peak.unsqueeze(0))
    torch.testing.assert_close(x, peak)
    assert value == 0.0


def test_the_same_seed_gives_the_same_bits_and_leaves_the_global_generator_alone() -> None:
    peak = torch.tensor([3.1, -6.51, 117.0], dtype=torch.float64)
    state = torch.get_rng_state()
    first = global_maximum(bowl(peak, 3.0, 1.0), BOX, seed=5, num_raw=64)
    second = global_maximum(bowl(peak, 3.0, 1.0), BOX, seed=5, num_raw=64)
    assert torch.equal(first[0], second[0])
    assert first[1] == second[1]
    assert torch.equal(state, torch.get_rng_state())


def test_a_curved_valley_is_followed_to_its_end() -> None:
    def valley(X: Tensor) -> Tensor:  # Rosenbrock, shifted; its spread here is about 1e4
        u, v = X[:, 0] - 4.0, X[:, 1] + 8.0
        return -100 * (v - u.square()).square() - (1 - u).square()

    _, value = global_maximum(valley, Box([[2.0, -9.0], [5.5, -6.5]]), seed=0, num_raw=32)
    assert value == pytest.approx(0.0, abs=1e-7)


def test_a_flat_top_is_climbed_to_1e9_of_the_spread() -> None:
    def flat(X: Tensor) -> Tensor:
        return 5.0 - (X[:, 0] - 3.7).pow(4) - 0.3 * (X[:, 0] - 3.7).pow(5)

    _, value = global_maximum(flat, Box([[2.0], [5.0]]), seed=0, num_raw=5)
    assert value == pytest.approx(5.0, rel=0.0, abs=1e-9)


def test_the_best_extra_points_are_refined_even_where_others_are_better() -> None:
    def hills(X: Tensor) -> Tensor:  # a broad one of height 1, a narrow one of height 2
        broad = torch.exp(-(X[:, 0] - 3.0).square())
        return broad + (2 - broad) * torch.exp(-1e4 * (X[:, 0] - 4.5).square())

    extra = torch.tensor([[4.51]], dtype=torch.float64)  # worth 0.73
    arguments = {"box": Box([[2.0], [5.0]]), "seed": 0, "num_raw": 9, "num_starts": 1}
    assert global_maximum(hills, **arguments)[1] == pytest.approx(1.0, abs=1e-9)
    assert global_maximum(hills, **arguments, extra=extra)[1] == pytest.approx(2.0, abs=1e-9)


def test_warnings_of_the_optimiser_are_hidden_and_those_of_the_function_are_not() -> None:
    kernel = MaternKernel(nu=0.5).to(torch.float64)
    cusps = RKHSFunction.random(Box([[2.0, -7.0], [5.0, -6.2]]), kernel, 2.0, seed=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        global_maximum(cusps, cusps.domain, seed=0, extra=cusps.centers)
    assert not caught

    def complaining(X: Tensor) -> Tensor:
        if X.requires_grad:
            warnings.warn("heard", UserWarning, stacklevel=1)
        return X.sum(dim=-1)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        global_maximum(complaining, BOX, seed=0, num_raw=8)
    assert {str(w.message) for w in caught} == {"heard"}

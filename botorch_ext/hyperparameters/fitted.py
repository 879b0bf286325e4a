"""A kernel whose hyperparameters are fitted to the data, and the schedule of the fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.hyperparameters.density import Density
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.records import Finite, Positive
from botorch_ext.search.ascent import batched_lbfgsb
from botorch_ext.state import Immutable

# Up to _FEW observations each new one makes a fit due; beyond, one _GROWTH-th more of them.
_FEW, _GROWTH = 50, 10
# The starts of a fit besides the mode of the prior and the last fit: a lengthscale for all columns,
# in sides of the cube, and a noise variance.
_STARTS = ((0.2, 1e-3), (1.0, 0.1))
# The range of smoothness, whose lower end is held: it gives a Matern kernel.
_ROUGH = (1e-12, 0.5)
# The range of scales whose squares neither overflow nor vanish.
_SCALES = (1e-150, 1e150)
# With BoTorch's prior of the noise variance, which a mode, unlike an average over samples, needs to
# distinguish noise from short lengthscales.
_PRIOR = Prior(noise_location=-5.0, noise_spread=1.0)


@dataclass(frozen=True)
class Fitted(Immutable):
    """A Matern 5/2 kernel whose hyperparameters are fitted to the observations: a lengthscale for
    each column, the noise variance, the variance of f and its mean.

    Pass it as the kernel of any adaptive method that takes one. A fit maximises the posterior
    density for standardised observations. The first `ask` after enough new data makes the fit and
    records it in the ``info`` of its trial, so that replaying events fits nothing. Before the first
    fit the hyperparameters are those of the mode of the prior, so give about 8 observations as
    ``initial``, or ask for about 8 points by ``num_initial``.

    Widths multiply posterior standard deviations of the fitted model. They are practical widths:
    since the hyperparameters come from the same data, no guarantee of a published width holds.

    Lengthscales are in sides of the domain; those of logarithmic columns in sides of the logarithm.
    Tasks of a `ContextSpace` are categories, as those of a `Box` are.

    Args:
        prior: The prior of lengthscales, in sides of the domain, and of the noise variance, in
            variances of the observations. Its part for smoothness is unused.
        every: The number of new observations that make a fit due. None: each new one up to 50, and
            a tenth more from then on.

    Raises:
        ValueError: If ``prior`` is not a `Prior`, or if ``every`` is less than 1.

    Example:
        >>> import botorch_ext as bx
        >>> box = bx.Box([[0.0], [1.0]])
        >>> strategy = bx.algorithms.gp_ucb(box, bx.Fitted(), width=2.0, num_initial=4)
        >>> for trial in strategy.ask(4):
        ...     strategy.tell(trial, 3.0 * trial.x.item())
        >>> sorted(strategy.ask().info["fit"])
        ['lengthscales', 'mean', 'noise_variance', 'outputscale']
    """

    prior: Prior = _PRIOR
    every: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.prior, Prior):
            raise ValueError(f"prior must be a Prior, got {self.prior!r}")
        if self.every is not None:
            whole_number(self.every, "every", least=1)

    def num_due(self, num_data: int) -> int:
        """The number of fits that were due with this number of observations; the first is due with
        2."""
        if num_data < 2:
            return 0
        if self.every is not None:
            return 1 + (num_data - 2) // self.every
        number, count = min(num_data, _FEW) - 1, _FEW
        while (count := count + count // _GROWTH) <= num_data:
            number += 1
        return number


@dataclass(frozen=True)
class Hyperparameters:
    """The numbers of a fitted model, in the units of the observations.

    Args:
        lengthscales: The lengthscale of each column, in sides of the unit cube.
        noise_variance: The noise variance, in squared units of the observations.
        outputscale: k(x, x), in squared units of the observations.
        mean: The constant prior mean.
    """

    lengthscales: tuple[Positive, ...]
    noise_variance: Positive
    outputscale: Positive
    mean: Finite


def location_and_scale(Y: Tensor) -> tuple[float, float]:
    """The mean and the standard deviation of observations, or their size if they are all equal."""
    if not len(Y):
        return 0.0, 1.0
    size = float(Y.abs().max())
    if size == 0:
        return 0.0, 1.0
    relative = Y / size
    scale = float(relative.std()) if len(Y) > 1 else 0.0
    if scale < 1e-14:  # all equal up to rounding
        return float(relative.mean()) * size, _clamped(size)
    return float(relative.mean()) * size, _clamped(scale * size)


def _clamped(scale: float) -> float:
    return min(max(scale, _SCALES[0]), _SCALES[1])


def prior_mode(prior: Prior, num_lengthscales: int, Y: Tensor) -> Hyperparameters:
    """The hyperparameters at the mode of the prior, in units of the observations ``Y``."""
    location, _ = prior.moments(num_lengthscales, Y.double())
    return _in_units(location[:-1], 0.0, *location_and_scale(Y))


@torch.no_grad()
def most_probable(
    prior: Prior,
    features: Tensor,
    Y: Tensor,
    groups: Tensor | None = None,
    near: Sequence[float] | None = None,
) -> Hyperparameters:
    """The hyperparameters of highest posterior density that ascents from several starts find.

    Args:
        prior: The prior of the hyperparameters.
        features: The ``n x p`` features in the unit cube.
        Y: The ``n`` observations, not all equal.
        groups: The index of the lengthscale of each feature, ``p``; None for one each.
        near: One more start, such as the last fit: the lengthscales, then the noise variance in
            variances of the observations.

    Returns:
        The hyperparameters, in units of the observations.
    """
    mean, scale = location_and_scale(Y.double())
    rough = replace(prior, smoothness=_ROUGH)
    density = Density(features.double(), (Y.double() - mean) / scale, rough, groups)
    lower, upper, odds = density.lower[:-1], density.upper[:-1], density.lower[-1:]
    side = upper - lower

    def inside(U: Tensor) -> Tensor:
        held = odds.expand(*U.shape[:-1], 1)
        return torch.cat([torch.minimum(lower + side * U, upper), held], dim=-1)

    def on_cube(U: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = density.value_and_gradient(inside(U))
        return value, gradient[..., :-1] * side

    d = density.num_lengthscales
    location, _ = prior.moments(d, lower)
    starts = [location[:-1], *(lower.new_tensor([a] * d + [b]).log() for a, b in _STARTS)]
    if near is not None:
        starts.append(lower.new_tensor(near).log())
    U = ((torch.stack(starts) - lower) / side).clamp(0, 1)
    ends, values = batched_lbfgsb(on_cube, U, 1e-5, 100)
    best = inside(ends[values.argmax()])
    constant = float(density.constants(best.unsqueeze(0)))
    return _in_units(best[:-1], constant, mean, scale)


def _in_units(parameters: Tensor, constant: float, mean: float, scale: float) -> Hyperparameters:
    *lengthscales, noise = parameters.exp().tolist()
    square = scale**2
    return Hyperparameters(tuple(lengthscales), noise * square, square, mean + scale * constant)

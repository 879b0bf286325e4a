"""One function for each published algorithm, by its paper's name. Each returns a `Strategy`.

The arguments mean the same everywhere, in the units of the observations. The docstring of a
function describes those that are its own; the others are:

- ``domain``: a `Box` or a `FiniteSet`; ``kernel``: a GPyTorch kernel with k(x, x) <= 1.
- ``noise_variance``: lambda, the ridge of the model; ``noise_std``: sigma, the sub-Gaussian
  constant of the noise; ``rkhs_bound``: B; ``delta``: failure probability.
- ``width``: a width object or a number in place of the published one; ``noise_std``,
  ``rkhs_bound`` and ``delta`` are then optional.
- ``mean``: the prior mean of the model; zero if None.
- ``pending``: "ignore", "hallucinate" or "censor", what to do about trials that are asked and not
  told; with its options ``inflate``, ``minimum`` and ``timeout``, see `OptimisticStrategy`.
- ``seed``, ``initial``, ``num_initial``: see `OptimisticStrategy`.

An impossible or missing argument is a ValueError that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.domains import Domain
from botorch_ext.models.kernel_gp import KernelGP, PriorMean
from botorch_ext.strategies.optimistic import OptimisticStrategy, Pending
from botorch_ext.widths import ChowdhuryGopalan, Enlarged, SelfNormalized, Width


class _Common(TypedDict, total=False):
    noise_std: float | None
    rkhs_bound: float | None
    delta: float
    width: Width | float | None
    mean: PriorMean | None
    pending: Pending
    seed: int
    initial: tuple[Tensor, Tensor] | None
    num_initial: int


class _Optimistic(_Common, total=False):
    inflate: bool
    minimum: float | None
    timeout: int | None


_OF_THE_STRATEGY = ("pending", "inflate", "minimum", "timeout", "seed", "initial", "num_initial")


def gp_ucb(
    domain: Domain, kernel: Kernel, *, noise_variance: float, **options: Unpack[_Optimistic]
) -> OptimisticStrategy:
    """GP-UCB with the `SelfNormalized` width (Srinivas et al. 2010; the width of Bogunovic and
    Krause 2021, lemma 1).

    Args:
        options: The arguments all methods share, described with this module.
    """
    width = _published(SelfNormalized, options)
    return _strategy(domain, kernel, noise_variance, width, options)


def igp_ucb(
    domain: Domain, kernel: Kernel, *, noise_variance: float, **options: Unpack[_Optimistic]
) -> OptimisticStrategy:
    """IGP-UCB: GP-UCB with the `ChowdhuryGopalan` width at the realised information gain
    (Chowdhury and Gopalan 2017, algorithm 1).

    Args:
        options: The arguments all methods share, described with this module.
    """
    width = _published(ChowdhuryGopalan, options)
    return _strategy(domain, kernel, noise_variance, width, options)


def ec_gp_ucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    misspecification: float,
    **options: Unpack[_Optimistic],
) -> OptimisticStrategy:
    """EC-GP-UCB: GP-UCB with confidence bounds enlarged for a known misspecification
    (Bogunovic and Krause 2021, algorithm 1).

    Args:
        misspecification: eps >= 0, the max-norm distance of f to the RKHS ball, in the units of f.
        options: The arguments all methods share, described with this module; ``width`` is the width
            that is enlarged.
    """
    width = Enlarged(_published(SelfNormalized, options), misspecification)
    return _strategy(domain, kernel, noise_variance, width, options)


def gp_bucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    inflate: bool = False,
    **options: Unpack[_Common],
) -> OptimisticStrategy:
    """GP-BUCB: GP-UCB that hallucinates pending evaluations (Desautels et al. 2014, algorithm 1).

    Args:
        inflate: Multiply the width by exp(information gain of the pending points given the told
            ones). The bound is valid with it; practice does without.
        options: The arguments all methods share, described with this module; ``pending`` can only
            be "hallucinate".
    """
    _fix_pending(options, "hallucinate", "gp_bucb")
    width = _published(SelfNormalized, options)
    return _strategy(domain, kernel, noise_variance, width, {**options, "inflate": inflate})


def gp_ucb_sdf(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    minimum: float,
    timeout: int | None = None,
    **options: Unpack[_Common],
) -> OptimisticStrategy:
    """GP-UCB-SDF: GP-UCB that censors pending evaluations at a known minimum (Verma et al. 2022).

    Args:
        minimum: The least value f can take.
        timeout: m: a trial asked at step s and not told before the ask of step s + m + 1 stays
            censored for ever. None for no timeout.
        options: The arguments all methods share, described with this module; ``pending`` can only
            be "censor".
    """
    _fix_pending(options, "censor", "gp_ucb_sdf")
    width = _published(SelfNormalized, options)
    options_of_policy = {"minimum": minimum, "timeout": timeout}
    return _strategy(domain, kernel, noise_variance, width, {**options, **options_of_policy})


def _published(kind: type[SelfNormalized | ChowdhuryGopalan], options: _Common) -> Width | float:
    width = options.get("width")
    if width is not None:
        return width
    rkhs_bound, noise_std = options.get("rkhs_bound"), options.get("noise_std")
    if rkhs_bound is None:
        raise ValueError("rkhs_bound must be given unless width is, got None")
    if noise_std is None:
        raise ValueError("noise_std must be given unless width is, got None")
    return kind(rkhs_bound, noise_std, options.get("delta", 0.1))


def _fix_pending(options: _Common, policy: Pending, name: str) -> None:
    given = options.setdefault("pending", policy)
    if given != policy:
        raise ValueError(f"pending must be {policy!r} for {name}, got {given!r}")


def _strategy(
    domain: Domain,
    kernel: Kernel,
    noise_variance: float,
    width: Width | float,
    options: Mapping[str, Any],
) -> OptimisticStrategy:
    model = KernelGP(
        kernel, noise_variance, mean=options.get("mean"), dtype=domain.dtype, device=domain.device
    )
    unknown = sorted(options.keys() - _Optimistic.__optional_keys__)
    if unknown:  # Unpack is for type checkers; Python itself lets any keyword through
        raise TypeError(f"unexpected keyword arguments: {', '.join(unknown)}")
    kept = {name: value for name, value in options.items() if name in _OF_THE_STRATEGY}
    return OptimisticStrategy(domain, model, width, **kept)

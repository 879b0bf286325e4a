"""Optimistic selection: GP-UCB, IGP-UCB, EC-GP-UCB, GP-BUCB and GP-UCB-SDF."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.arguments import (
    Common,
    make_model,
    published_width,
    refuse_unknown,
)
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.strategies.adaptive.optimistic import OptimisticStrategy
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.widths import ChowdhuryGopalan, Enlarged, SelfNormalized, Width


class _OfAll(Common, total=False):
    pending: Pending
    initial: tuple[Tensor, Tensor] | None
    num_initial: int
    context_domain: Domain | int | ContextSpace | None


class Optimistic(_OfAll, total=False):
    """What the methods of optimistic selection take, whatever their pending policy."""

    inflate: bool
    minimum: float | None
    timeout: int | None


_OF_THE_STRATEGY = (
    "pending",
    "inflate",
    "minimum",
    "timeout",
    "seed",
    "initial",
    "num_initial",
    "context_domain",
)


def gp_ucb(
    domain: Domain, kernel: Kernel, *, noise_variance: float, **options: Unpack[Optimistic]
) -> OptimisticStrategy:
    """GP-UCB with the `SelfNormalized` width (Srinivas et al. 2010; the width of Bogunovic and
    Krause 2021, lemma 1).

    Args:
        options: The arguments all methods share, described with the package.
    """
    width = published_width(SelfNormalized, options)
    return optimistic_strategy(domain, kernel, noise_variance, width, options)


def igp_ucb(
    domain: Domain, kernel: Kernel, *, noise_variance: float, **options: Unpack[Optimistic]
) -> OptimisticStrategy:
    """IGP-UCB: GP-UCB with the `ChowdhuryGopalan` width at the realised information gain
    (Chowdhury and Gopalan 2017, algorithm 1).

    Args:
        options: The arguments all methods share, described with the package.
    """
    width = published_width(ChowdhuryGopalan, options)
    return optimistic_strategy(domain, kernel, noise_variance, width, options)


def ec_gp_ucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    misspecification: float,
    **options: Unpack[Optimistic],
) -> OptimisticStrategy:
    """EC-GP-UCB: GP-UCB with confidence bounds enlarged for a known misspecification
    (Bogunovic and Krause 2021, algorithm 1).

    Args:
        misspecification: eps >= 0, the max-norm distance of f to the RKHS ball, in the units of f.
        options: The arguments all methods share, described with the package; ``width`` is the width
            that is enlarged.
    """
    misspecification = one_number(misspecification, "misspecification")
    width = Enlarged(published_width(SelfNormalized, options), misspecification)
    return optimistic_strategy(domain, kernel, noise_variance, width, options)


def gp_bucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    inflate: bool = False,
    **options: Unpack[_OfAll],
) -> OptimisticStrategy:
    """GP-BUCB: GP-UCB that hallucinates pending evaluations (Desautels et al. 2014, algorithm 1).

    Args:
        inflate: Multiply the width by exp(information gain of the pending points given the told
            ones). The bound is valid with it; practice does without.
        options: The arguments all methods share, described with the package; ``pending`` can only
            be "hallucinate".
    """
    _fix_pending(options, "hallucinate", "gp_bucb")
    width = published_width(SelfNormalized, options)
    return optimistic_strategy(
        domain, kernel, noise_variance, width, {**options, "inflate": inflate}
    )


def gp_ucb_sdf(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    minimum: float,
    timeout: int | None = None,
    **options: Unpack[_OfAll],
) -> OptimisticStrategy:
    """GP-UCB-SDF: GP-UCB that censors pending evaluations at a known minimum (Verma et al. 2022).

    Args:
        minimum: The least value f can take.
        timeout: m: a trial asked at step s and not told before the ask of step s + m + 1 stays
            censored for ever. None for no timeout.
        options: The arguments all methods share, described with the package; ``pending`` can only
            be "censor".
    """
    _fix_pending(options, "censor", "gp_ucb_sdf")
    width = published_width(SelfNormalized, options)
    options_of_policy = {"minimum": minimum, "timeout": timeout}
    return optimistic_strategy(
        domain, kernel, noise_variance, width, {**options, **options_of_policy}
    )


def _fix_pending(options: _OfAll, policy: Pending, name: str) -> None:
    given = options.setdefault("pending", policy)
    if given != policy:
        raise ValueError(f"pending must be {policy!r} for {name}, got {given!r}")


def optimistic_strategy(
    domain: Domain,
    kernel: Kernel,
    noise_variance: float,
    width: Width | float,
    options: Mapping[str, Any],
) -> OptimisticStrategy:
    """A strategy of this width, with the options that are the strategy's or its model's."""
    refuse_unknown(options, Optimistic)
    kept = {name: value for name, value in options.items() if name in _OF_THE_STRATEGY}
    return OptimisticStrategy(
        domain, make_model(domain, kernel, noise_variance, options), width, **kept
    )

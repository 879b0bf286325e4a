"""Practical methods: what works from data alone, without a guarantee."""

from __future__ import annotations

from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.strategies.adaptive.improvement import ImprovementStrategy


@checked_names
def integrated_ei(
    domain: Domain,
    particles: Particles | None = None,
    *,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int | None = None,
    context_domain: Domain | int | ContextSpace | None = None,
) -> ImprovementStrategy:
    """Noisy expected improvement averaged over the hyperparameters that the data allow: the default
    where nothing is known but the domain.

    There is no guarantee for its regret; it needs no kernel, no noise variance and no width.

    Source: Snoek et al. 2012 (integrated expected improvement); Letham et al. 2019 (where
    observations are noisy); Ament et al. 2023 (its logarithm).

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        particles: How hyperparameters are drawn; ``Particles()`` if None.
        seed: Seeds particles, search and first points.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``.
        num_initial: How many Sobol points are asked first; None for 8, less those in
            ``initial`` and results attached before.
        context_domain: The contexts that every ask is then given: a domain, their dimension d_z or
            a `ContextSpace`. ``initial`` then has joint rows. None: no contexts.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that the function does not take.
        ValueError: An impossible argument; the message names it.
    """
    return ImprovementStrategy(
        domain,
        particles,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )

"""Optimism over the candidate models whose marginal likelihood is nearly the largest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from botorch_ext.algorithms.argument_checks import (
    PRACTICAL_WIDTH,
    algorithm,
    options_of,
    published_width,
    taken,
)
from botorch_ext.algorithms.signatures import SHARED, OfCandidates
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsStrategy, Start
from botorch_ext.strategies.adaptive.credible_particles import CredibleParticles
from botorch_ext.strategies.adaptive.judges import Credible
from botorch_ext.widths import SelfNormalized, Width

#: What the method takes over `Particles` too.
_OF_PARTICLES = ("delta", *Start.__annotations__)


@algorithm
def credible_ucb(
    domain: Domain,
    models: CandidateModels | Particles,
    *,
    width: Width | float | Sequence[Width | float] | None = None,
    credibility: float | None = None,
    **given: Unpack[OfCandidates],
) -> BoundsStrategy | CredibleParticles:
    """Credible UCB: optimism over points and the models whose log marginal likelihood is nearly the
    largest.

    A model is credible if its log marginal likelihood is within c = ln(M/delta) of the largest, of
    M models. All models see all data, so models that never play are tested too, and a model may
    become credible again.

    For a fixed set of models the following is proven. Let f be drawn from model u*, with its prior
    mean; let the noise be Gaussian with the noise variance of u*; and let delays not depend on the
    noise. The marginal likelihood of any other model divided by that of u* is then a non-negative
    martingale of mean 1, which exceeds M/delta at some step with probability at most delta/M
    (Ville's inequality). So the probability that u* ever stops being credible is at most delta; and
    while it is credible, the largest value of f is below the bound that is played wherever the
    width of u* holds. No regret bound is proven, and no frequentist guarantee: if the data of a
    fixed f are unlikely under the model whose RKHS it lies in, that model can stop being credible.
    With `CandidateModels.growing` nothing is proven.

    With `Particles`, which draw and move hyperparameters by themselves, the credible particles are
    those whose log posterior density is within c of the largest. This is a practical method; no
    theoretical result covers it.

    Source: this library; line 12 of algorithm 1 of Ziomek et al. 2024 with another test.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> models = bx.CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> strategy = bx.algorithms.credible_ucb(points, models, width=2.0)
        >>> for _ in range(5):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> [(model["name"], model["credible"]) for model in strategy.report()["models"]]
        [('lengthscale 0.2', True), ('lengthscale 0.8', True)]

    Args:
        models: The candidate models. With contexts they are models of joint rows: the d columns of
            the action, then those of the context. The marginal likelihood compares their noise
            variances too. Or `Particles`, which then needs ``initial`` data or ``num_initial``
            points, and takes neither ``rkhs_bound`` nor ``noise_std`` nor other values of
            ``pending``, ``inflate``, ``minimum`` and ``timeout`` than their defaults.
        width: A width, or a number, in place of `SelfNormalized`; or a sequence with one for each
            model. With `Particles` a number. None: `SelfNormalized` with ``rkhs_bound``,
            ``noise_std`` and ``delta``; with `Particles` 2.
        delta: The probability that the true model stops being credible, in (0, 1), and the failure
            probability of the published width.
        credibility: c >= 0, by how much the log marginal likelihood of a credible model may lie
            below the largest. None: ln(M/delta).
        pending: How pending trials (asked, not told) count. "ignore": not at all. "hallucinate": in
            the standard deviation and the width. "censor": in both, and in the mean as observations
            of ``minimum``. They never count in the marginal likelihood.

    Returns:
        A `BoundsStrategy`, or with `Particles` a `CredibleParticles`, to ask and to tell; see there
        for the keys of ``trial.info`` and of the report. The report of the former also has
        ``credibility``, which is c, and in the dict of each model ``log_evidence_below_best``, by
        how much its log marginal likelihood is below the largest, and ``credible``, whether it may
        play.
    """
    if isinstance(models, Particles):
        for name, value in given.items():
            default = SHARED[name].default
            if name not in _OF_PARTICLES and value != default:
                raise ValueError(
                    f"credible_ucb(): {name} must be {default!r} over Particles, got {value!r}"
                )
        return CredibleParticles(
            domain,
            models,
            PRACTICAL_WIDTH if width is None else one_number(width, "width"),
            credibility=credibility,
            **taken(given, *_OF_PARTICLES),
        )
    return BoundsStrategy(
        domain,
        models,
        published_width("credible_ucb", SelfNormalized, {**given, "width": width}),
        judge=Credible(credibility=credibility, **taken(given, "delta")),
        **options_of(given),
    )

"""Credible models: optimism over those that the evidence does not speak against."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from botorch_ext.algorithms.argument_checks import PRACTICAL_WIDTH, checked_names, published_width
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.credible import CredibleBounds
from botorch_ext.strategies.adaptive.credible_particles import CredibleParticles
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.widths import SelfNormalized, Width


@checked_names
def credible_ucb(
    domain: Domain,
    models: CandidateModels | Particles,
    *,
    width: Width | float | Sequence[Width | float] | None = None,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    credibility: float | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> CredibleBounds | CredibleParticles:
    """Optimism over points and credible models: those whose log evidence is within c = ln(M/delta)
    of the largest of the M models. All see all data, those that never play are tested too, and one
    may come back.

    What is proven, for a fixed set of models: let f be drawn from model u*, prior mean included,
    with Gaussian noise of u*'s noise variance, and let delays not depend on the noise. The evidence
    of any other model over that of u* is then a non-negative martingale of mean 1, which exceeds
    M/delta at some step with probability at most delta/M (Ville's inequality). So u* ever leaves
    the credible models with probability at most delta, and while it is one, the largest value of f
    is below the bound played wherever u*'s own width holds. No regret bound is shown, and there is
    no frequentist guarantee: a fixed f whose data are unlikely under the model whose RKHS it lies
    in can make that model leave. With ``growing`` models nothing is shown.

    Over `Particles`, which draw and move hyperparameters by themselves, those play whose log
    posterior density is within c of the largest. This is a practical method: nothing is shown.

    Source: this library; line 12 of algorithm 1 of Ziomek et al. 2024 with another test.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        models: The candidates; with contexts on joint rows, the d columns of the action first.
            Their noise variances are part of what is compared. Or `Particles`: with the defaults of
            ``pending`` and ``inflate``, without ``rkhs_bound`` and ``noise_std``, and with some
            points asked first or ``initial`` ones.
        width: A width, or a number, in place of `SelfNormalized` with the numbers below; or one for
            each model. Over `Particles` a number, 2 unless given.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: The probability that the true model leaves, in (0, 1); and that of the width's
            failure, where it is not given.
        credibility: c >= 0, in place of ln(M/delta): how far the log evidence of a model that plays
            may be below the largest.
        pending: What trials that are asked and not told count for: "ignore", nothing;
            "hallucinate", the standard deviation and the width; "censor", these and, as
            ``minimum``, the mean. They never count in the evidence.
        inflate: Whether "hallucinate" multiplies the width by exp(information gain of the pending
            points given the told ones). The bound is valid with it; practice does without.
        minimum: The least value f can take, in units of f: for "censor", which needs it.
        timeout: m, in steps, for "censor": a trial asked at step s and not told before the ask of
            step s + m + 1 stays censored for ever. None: no trial does.
        seed: Seeds the search and the first points. On a finite set ties go to the first one.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``. They count as
            steps.
        num_initial: How many Sobol points are asked first. They count as steps.
        context_domain: The contexts that every ask is then given: a domain, their dimension d_z or
            a `ContextSpace`. ``initial`` then has joint rows. None: no contexts.

    Returns:
        A strategy to ask and to tell. Its report says of each model how far its log evidence is
        below the largest, and whether it is credible.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    if isinstance(models, Particles):
        fixed = {
            "rkhs_bound": (rkhs_bound, None),
            "noise_std": (noise_std, None),
            "pending": (pending, "hallucinate"),
            "inflate": (inflate, False),
            "minimum": (minimum, None),
            "timeout": (timeout, None),
        }
        for name, (given, only) in fixed.items():
            if given != only:
                raise ValueError(
                    f"credible_ucb(): {name} must be {only!r} over Particles, got {given!r}"
                )
        return CredibleParticles(
            domain,
            models,
            PRACTICAL_WIDTH if width is None else one_number(width, "width"),
            delta=delta,
            credibility=credibility,
            seed=seed,
            initial=initial,
            num_initial=num_initial,
            context_domain=context_domain,
        )
    width = published_width("credible_ucb", SelfNormalized, width, rkhs_bound, noise_std, delta)
    return CredibleBounds(
        domain,
        models,
        width,
        delta=delta,
        credibility=credibility,
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )

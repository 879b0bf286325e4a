"""Optimism over the candidate models whose marginal likelihood is nearly the largest."""

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
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        models: The candidate models. With contexts they are models of joint rows: the d columns of
            the action, then those of the context. The marginal likelihood compares their noise
            variances too. Or `Particles`, which then needs ``initial`` data or ``num_initial``
            points, and takes neither ``rkhs_bound`` nor ``noise_std`` nor other values of
            ``pending``, ``inflate``, ``minimum`` and ``timeout`` than their defaults.
        width: A width, or a number, in place of `SelfNormalized`; or a sequence with one for each
            model. With `Particles` a number. None: `SelfNormalized` with ``rkhs_bound``,
            ``noise_std`` and ``delta``; with `Particles` 2.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: The probability that the true model stops being credible, in (0, 1), and the failure
            probability of the published width.
        credibility: c >= 0, by how much the log marginal likelihood of a credible model may lie
            below the largest. None: ln(M/delta).
        pending: How pending trials (asked, not told) count. "ignore": not at all. "hallucinate": in
            the standard deviation and the width. "censor": in both, and in the mean as observations
            of ``minimum``. They never count in the marginal likelihood.
        inflate: Whether ``pending="hallucinate"`` multiplies the width by exp(information gain of
            the pending points given the told ones). This makes the confidence bound valid; it is
            rarely used in practice.
        minimum: A lower bound on the values of f, in units of f. Needed with ``pending="censor"``,
            and only there.
        timeout: m, in steps, with ``pending="censor"`` only: a trial that was asked at step s and
            is not told before the ask of step s + m + 1 stays censored for ever. None: a result
            counts however late it is told.
        seed: The seed of the search and of the first points. On a finite set the first of several
            equally good points is chosen.
        initial: Observations from before the study: a pair ``(X, Y)`` of shapes ``n x d`` and ``n``
            (or ``n x 1``). They count as steps. None: no observations.
        num_initial: The number of Sobol points that are asked first. They count as steps.
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. Every ask
            then needs a context, and ``initial`` has joint rows (the action, then the context).
            None: no contexts.

    Returns:
        A `CredibleBounds`, or with `Particles` a `CredibleParticles`, to ask and to tell; see there
        for the keys of ``trial.info`` and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``width`` is None and an argument
            that the published width needs is missing. The message names the argument.
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

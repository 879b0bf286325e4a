"""Insured methods: GP-UCB that may stay switched on where its model is wrong."""

from __future__ import annotations

from typing import Literal

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names, make_model
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.checks import PriorMean
from botorch_ext.strategies.adaptive.insured import InsuredStrategy
from botorch_ext.strategies.adaptive.ledger import Terms
from botorch_ext.strategies.fixed_design.safe import SafeStrategy
from botorch_ext.widths import Width


@checked_names
def insured_ucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    noise_std: float,
    rkhs_bound: float,
    delta: float = 0.1,
    width: Width | float | None = None,
    mean: PriorMean | float | None = None,
    terms: Terms | None = None,
    pending: Literal["hallucinate"] = "hallucinate",
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> InsuredStrategy:
    """Insured GP-UCB: it plays GP-UCB, and now and then, within a budget that is a small share of
    what GP-UCB itself may lose, a point that GP-UCB's model excludes.

    Where f lies in the RKHS it plays GP-UCB but for these probes. Where f is up to eps away from
    it, for an eps that nobody needs to know, GP-UCB may exclude the best point for ever; a probe
    that does better than the model allows refutes the model, and the method goes on with bounds
    for the next larger of seven levels of misspecification, from 0 to B. Its regret has a bound
    where eps = 0; beyond that little is proven (see the page on theory).

    Where the best point is hidden behind a gap of the size of the noise it may miss it, and where
    GP-UCB hardly loses anything the budget, which grows like the root of the steps, is what it
    costs. Source: no paper, the page on theory.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1; with contexts on joint rows, the d columns of
            the action first.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        rkhs_bound: B, at least the RKHS norm of f, in units of f.
        delta: Failure probability, in (0, 1), of the bounds of the model and of those of averages
            each.
        width: Of the index alone, a number or a width; None takes `SelfNormalized`. The tests
            always use that one: narrower ones refute a model that is right.
        mean: The prior mean: a GPyTorch `Mean`, a callable from ``... x n x d`` to ``... x n``, or
            a number. None: zero.
        terms: What the insurance may cost; None takes those that were measured.
        pending: The policy: pending evaluations count in the index, told data alone in the tests.
        seed: Seeds the search and the first points. On a finite set ties go to the first one.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``. They count as
            steps.
        num_initial: How many Sobol points are asked first. They count as steps.
        context_domain: The contexts that every ask is then given: a domain, their dimension d_z or
            a `ContextSpace`. ``initial`` then has joint rows. None: no contexts.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument; the message names it.
    """
    return InsuredStrategy(
        domain,
        make_model(domain, kernel, noise_variance, mean),
        rkhs_bound=rkhs_bound,
        noise_std=noise_std,
        delta=delta,
        width=width,
        terms=terms,
        pending=pending,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )


@checked_names
def safe_ucb(
    domain: Domain,
    models: CandidateModels | Kernel,
    *,
    noise_std: float,
    rkhs_bound: float,
    noise_variance: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    credibility: float | None = None,
    certificates: bool = False,
    horizon: int | None = None,
    terms: Terms | None = None,
    pending: Literal["hallucinate"] = "hallucinate",
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> SafeStrategy:
    """Safe UCB: optimism over the models that the data make credible, insured against all of them
    being wrong, with feedback as late as it comes.

    `insured_ucb` over several models: those play whose log evidence is within c = ln(M / delta) of
    the largest, a level of misspecification is given up when every one of them contradicts itself,
    and what is exploited is never a point that the level excludes. Probes may lie elsewhere.

    Source: no paper, the page on theory, where what it promises is argued and not proven; of the
    choice among models nothing is promised where f is misspecified.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        models: The candidates, or one GPyTorch kernel with k(x, x) <= 1, with ``noise_variance``;
            with contexts on joint rows, the d columns of the action first.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        rkhs_bound: B, at least the RKHS norm of f under the right model, in units of f.
        noise_variance: lambda > 0, the ridge of the one kernel, in squared units of f; candidates
            have theirs.
        delta: Failure probability, in (0, 1), of the bounds of a model, of those of averages, of
            the loss of the right model and of the bounds of blocks, each.
        width: Of the index alone, a number or a width; None takes `SelfNormalized`, which the tests
            always use.
        credibility: c itself, in place of ln(M / delta).
        certificates: Whether an eighth of the trials may be spent on blocks of largest variance, by
            the first model, that certify the regret of what is exploited; on a `FiniteSet` without
            contexts, with actions that do not change. Off, because they cost more than they save.
        horizon: T, the number of trials, for certificates.
        terms: What the insurance may cost; None takes those that were measured.
        pending: The policy: pending evaluations count in the index, told data alone in the tests.
        seed: Seeds the search and the first points. On a finite set ties go to the first one.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``. They count as
            steps.
        num_initial: How many Sobol points are asked first. They count as steps.
        context_domain: The contexts that every ask is then given: a domain, their dimension d_z or
            a `ContextSpace`. ``initial`` then has joint rows. None: no contexts.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument; the message names it.
    """
    if isinstance(models, CandidateModels) == (noise_variance is not None):
        raise ValueError(
            "safe_ucb(): noise_variance must be given exactly where models is one kernel, "
            f"got {noise_variance!r}"
        )
    if noise_variance is not None:
        models = CandidateModels.of(make_model(domain, models, noise_variance, None))  # pyright: ignore
    return SafeStrategy(
        domain,
        models,  # pyright: ignore
        rkhs_bound=rkhs_bound,
        noise_std=noise_std,
        delta=delta,
        width=width,
        credibility=credibility,
        terms=terms,
        certificates=certificates,
        horizon=horizon,
        pending=pending,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )

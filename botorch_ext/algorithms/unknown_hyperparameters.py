"""Unknown hyperparameters: HE-GP-UCB, and the baselines MLE-UCB and ExpectedUCB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names, published_width
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.baselines import ExpectedBound, MaximumLikelihood
from botorch_ext.strategies.adaptive.elimination import HyperparameterElimination
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.widths import BayesContinuous, BayesFinite, SelfNormalized, Width

Setting = Literal["frequentist", "bayesian"]


@checked_names
def he_gp_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    noise_std: float,
    setting: Setting = "frequentist",
    misspecification: float = 0.0,
    a: float | None = None,
    b: float | None = None,
    rkhs_bound: float | None = None,
    delta: float = 0.1,
    width: Width | float | Sequence[Width | float] | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> HyperparameterElimination:
    """HE-GP-UCB: optimism over points and models; a model goes when its own predictions are
    refuted.

    The width is valid with probability 1 - delta/2 for the true model, whichever it is; the other
    half of delta is spent on the tests. It is `SelfNormalized` in the frequentist setting; in the
    Bayesian one `BayesFinite`, on a box `BayesContinuous` with the longest side of the box. Source:
    Ziomek et al. 2024, algorithm 1.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        models: The candidates; with contexts on joint rows, the d columns of the action first.
        noise_std: R, the sub-Gaussian constant of the noise, in units of f; the tests need it,
            whatever the width.
        setting: "frequentist": f lies in the RKHS of the true model with norm at most
            ``rkhs_bound``. "bayesian": f is drawn from the true model, prior mean included.
        misspecification: eps >= 0, how far f may be from what the true model can express, in units
            of f: enlarges the width and the tests (beyond the paper).
        a: Tail constant of the derivatives of f, for "bayesian" on a box, which needs it unless
            ``width`` is given.
        b: Tail scale of the derivatives of f, likewise.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed where ``setting`` is
            "frequentist" and no ``width`` is given.
        delta: The probability that the true model is eliminated or a bound fails, in (0, 1).
        width: A width, or a number, in place of the published one, or one for each model. Its
            failure probability becomes delta/2.
        pending: What trials that are asked and not told count for: "ignore", nothing;
            "hallucinate", the standard deviation and the width; "censor", these and, as
            ``minimum``, the mean.
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
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    width = elimination_width(
        "he_gp_ucb", domain, width, rkhs_bound, noise_std, delta, setting, a, b
    )
    return HyperparameterElimination(
        domain,
        models,
        width,
        noise_std=noise_std,
        delta=delta,
        misspecification=one_number(misspecification, "misspecification"),
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )


@checked_names
def mle_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | Sequence[Width | float] | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> MaximumLikelihood:
    """MLE-UCB: GP-UCB with the model of highest marginal likelihood at each step, as is common
    practice. It can be wrong for ever. The width is `SelfNormalized`.

    Source: the baseline of Ziomek et al. 2024, section 7.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        models: The candidates; with contexts on joint rows, the d columns of the action first.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1).
        width: A width, or a number, in place of the published one; or one for each model.
            ``rkhs_bound``, ``noise_std`` and ``delta`` then count for nothing.
        pending: What trials that are asked and not told count for: "ignore", nothing;
            "hallucinate", the standard deviation and the width; "censor", these and, as
            ``minimum``, the mean.
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
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    width = published_width("mle_ucb", SelfNormalized, width, rkhs_bound, noise_std, delta)
    return MaximumLikelihood(
        domain,
        models,
        width,
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )


@checked_names
def expected_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | Sequence[Width | float] | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> ExpectedBound:
    """ExpectedUCB: the average of the upper confidence bounds under P(model | data), from a uniform
    prior. The width is `SelfNormalized`.

    Source: the baseline of Ziomek et al. 2024, section 7.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        models: The candidates; with contexts on joint rows, the d columns of the action first.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1).
        width: A width, or a number, in place of the published one; or one for each model.
            ``rkhs_bound``, ``noise_std`` and ``delta`` then count for nothing.
        pending: What trials that are asked and not told count for: "ignore", nothing;
            "hallucinate", the standard deviation and the width; "censor", these and, as
            ``minimum``, the mean.
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
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    width = published_width("expected_ucb", SelfNormalized, width, rkhs_bound, noise_std, delta)
    return ExpectedBound(
        domain,
        models,
        width,
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )


def elimination_width(
    name: str,
    domain: Domain,
    width: Width | float | Sequence[Width | float] | None,
    rkhs_bound: float | None,
    noise_std: float,
    delta: float,
    setting: Setting,
    a: float | None,
    b: float | None,
) -> Width | float | Sequence[Width | float]:
    """The width (or one for each model) of the methods that eliminate models, as it is for a single
    well-specified one. The arguments are those of `he_gp_ucb`, after the name of the function they
    were given to.

    Raises:
        ValueError: An unknown setting, numbers that it has no use for, or no width and not what the
            published one needs.
    """
    if setting not in ("frequentist", "bayesian"):
        raise ValueError(f'setting must be "frequentist" or "bayesian", got {setting!r}')
    is_continuous = setting == "bayesian" and not isinstance(domain, FiniteSet)
    if not is_continuous and (a, b) != (None, None):
        raise ValueError(
            f'a and b must be None unless setting is "bayesian" on a box, got {a} and {b}'
        )
    if setting == "bayesian" and width is None:
        return _bayesian_width(name, domain, delta, a, b)
    return published_width(name, SelfNormalized, width, rkhs_bound, noise_std, delta)


def _bayesian_width(
    name: str, domain: Domain, delta: float, a: float | None, b: float | None
) -> Width:
    if isinstance(domain, FiniteSet):
        return BayesFinite(domain.num_points, delta)
    if a is None or b is None:
        raise ValueError(
            f'{name}(): a and b must be given on a box where setting is "bayesian", unless width '
            f"is, got {a} and {b}"
        )
    return BayesContinuous(domain.dim, a, b, float((domain.upper - domain.lower).max()), delta)

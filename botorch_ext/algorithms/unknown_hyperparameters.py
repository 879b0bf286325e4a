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
    """HE-GP-UCB: optimism over points and candidate models, with models eliminated by their
    prediction errors.

    The published width is valid with probability 1 - delta/2 for the true model, whichever it is;
    the tests spend the other half of delta. The width is `SelfNormalized` in the frequentist
    setting. In the Bayesian setting it is `BayesFinite` on a finite set, and on a box
    `BayesContinuous` with the longest side of the box.

    Source: Ziomek et al. 2024, algorithm 1.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> models = bx.CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> strategy = bx.algorithms.he_gp_ucb(points, models, noise_std=0.1, rkhs_bound=1.0)
        >>> for _ in range(5):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> [(model["name"], model["status"]) for model in strategy.report()["models"]]
        [('lengthscale 0.2', 'alive'), ('lengthscale 0.8', 'alive')]

    Args:
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        models: The candidate models. With contexts they are models of joint rows: the d columns of
            the action, then those of the context.
        noise_std: R, the sub-Gaussian constant of the noise, in units of f. The tests need it even
            if ``width`` is given.
        setting: The assumption on f. "frequentist": f lies in the RKHS of the true model with norm
            at most ``rkhs_bound``. "bayesian": f is drawn from the true model, with its prior mean.
        misspecification: eps >= 0, the largest distance of f to a function that the true model can
            express, in units of f. It enlarges the width and the tests, which the paper does not
            do. 0: the model is well specified.
        a: The constant a of the tail bound on the derivatives of f. Needed with
            ``setting="bayesian"`` on a box unless ``width`` is given.
        b: The scale b of the tail bound on the derivatives of f. Needed where ``a`` is.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed with
            ``setting="frequentist"`` unless ``width`` is given.
        delta: The probability that the true model is eliminated or that a confidence bound fails,
            in (0, 1).
        width: A width, or a number, in place of the published width; or a sequence with one for
            each model. Its failure probability is set to delta/2. None: the published width.
        pending: How pending trials (asked, not told) count. "ignore": not at all. "hallucinate": in
            the standard deviation and the width. "censor": in both, and in the mean as observations
            of ``minimum``.
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
        A `HyperparameterElimination` to ask and to tell; see `HyperparameterElimination` for the
        keys of ``trial.info`` and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``width`` is None and an argument
            that the published width needs is missing. The message names the argument.
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
    """MLE-UCB: GP-UCB with the model of highest marginal likelihood at each step.

    This is common practice, and the model can be wrong for ever. The published width is
    `SelfNormalized`.

    Source: the baseline of Ziomek et al. 2024, section 7.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> models = bx.CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> strategy = bx.algorithms.mle_ucb(points, models, width=2.0)
        >>> for _ in range(5):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> trial.info["model"], [model["times_played"] for model in strategy.report()["models"]]
        (1, [2, 3])

    Args:
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        models: The candidate models. With contexts they are models of joint rows: the d columns of
            the action, then those of the context.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: The probability that a confidence bound fails, in (0, 1).
        width: A width, or a number, in place of the published width; or a sequence with one for
            each model. ``rkhs_bound``, ``noise_std`` and ``delta`` are then unused. None: the
            published width.
        pending: How pending trials (asked, not told) count. "ignore": not at all. "hallucinate": in
            the standard deviation and the width. "censor": in both, and in the mean as observations
            of ``minimum``.
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
        A `MaximumLikelihood` to ask and to tell; see `BoundsStrategy` for the keys of
        ``trial.info`` and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``width`` is None and an argument
            that the published width needs is missing. The message names the argument.
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
    """ExpectedUCB: GP-UCB with the average of the upper confidence bounds of all models.

    The weights are P(model | data), with a uniform prior. The published width is `SelfNormalized`.

    Source: the baseline of Ziomek et al. 2024, section 7.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> models = bx.CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> strategy = bx.algorithms.expected_ucb(points, models, width=2.0)
        >>> for _ in range(5):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> trial.x.tolist(), trial.info["model"]
        ([0.0], 1)

    Args:
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        models: The candidate models. With contexts they are models of joint rows: the d columns of
            the action, then those of the context.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: The probability that a confidence bound fails, in (0, 1).
        width: A width, or a number, in place of the published width; or a sequence with one for
            each model. ``rkhs_bound``, ``noise_std`` and ``delta`` are then unused. None: the
            published width.
        pending: How pending trials (asked, not told) count. "ignore": not at all. "hallucinate": in
            the standard deviation and the width. "censor": in both, and in the mean as observations
            of ``minimum``.
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
        An `ExpectedBound` to ask and to tell; see `BoundsStrategy` for the keys of ``trial.info``
        and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``width`` is None and an argument
            that the published width needs is missing. The message names the argument.
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
    """The width, or one for each model, of a method that eliminates models.

    It is the width of a single well-specified model; the strategy halves its failure probability
    and enlarges it. The arguments are those of `he_gp_ucb`, after the name of the function that
    they were given to.

    Raises:
        ValueError: If the setting is unknown, if ``a`` or ``b`` is given where it is unused, or if
            ``width`` is None and an argument that the published width needs is missing.
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

"""Insured GP-UCB and Safe UCB: GP-UCB that tests, within a budget, whether its model is wrong."""

from __future__ import annotations

from typing import Literal, Unpack

from gpytorch.kernels import Kernel

from botorch_ext.algorithms.argument_checks import algorithm, make_model, options_of
from botorch_ext.algorithms.signatures import GivenModel
from botorch_ext.domains import Domain
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.bounds_strategy import Start
from botorch_ext.strategies.adaptive.insured import InsuredStrategy
from botorch_ext.strategies.adaptive.ledger import Terms
from botorch_ext.strategies.fixed_design.safe import SafeStrategy
from botorch_ext.widths import Width
from botorch_ext.widths.composed import BoundsKind


class _Insured(GivenModel, Start, total=False):
    """What `insured_ucb` shares with other methods."""


@algorithm
def insured_ucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_std: float,
    rkhs_bound: float,
    delta: float = 0.1,
    width: Width | float | None = None,
    terms: Terms | None = None,
    pending: Literal["hallucinate"] = "hallucinate",
    **given: Unpack[_Insured],
) -> InsuredStrategy:
    """Insured GP-UCB: GP-UCB that also evaluates, within a small budget, points that its model
    excludes.

    The budget of these probes is a small share of what GP-UCB itself may lose. If f lies in the
    RKHS, the method plays GP-UCB apart from the probes. If f is up to eps away from the RKHS ball,
    GP-UCB may exclude the best point for ever; eps need not be known. A probe that does better than
    the model allows refutes the model, and the method goes on with bounds for the next larger of
    seven levels of misspecification, from 0 to B. Its regret has a bound if eps = 0; beyond that
    little is proven (see the page on theory).

    The method may miss a best point that is hidden behind a gap of the size of the noise. Where
    GP-UCB loses hardly anything, the method costs its budget, which grows like the square root of
    the number of steps.

    Source: no paper; the page on theory.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.insured_ucb(
        ...     points, RBFKernel(), noise_variance=0.01, noise_std=0.1, rkhs_bound=1.0
        ... )
        >>> for _ in range(5):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> trial.info["kind"], trial.info["level"], strategy.report()["misspecification"]
        ('exploit', 0, 0.0)

    Args:
        delta: The failure probability, in (0, 1), of the confidence bounds of the model, and again
            of the bounds of averages.
        width: The width of the index alone (the upper confidence bound that is maximised): a width
            or a number. None: `SelfNormalized`. The tests always use `SelfNormalized`, since
            narrower bounds refute a model that is right.
        terms: The limits on what the insurance may cost. None: ``Terms()``, whose numbers were
            chosen by experiments.
        pending: The treatment of pending trials: they count in the index (the upper confidence
            bound that is maximised), and the tests use told data alone. No other value is allowed.
    """
    return InsuredStrategy(
        domain,
        make_model(domain, kernel, given),
        rkhs_bound=rkhs_bound,
        noise_std=noise_std,
        delta=delta,
        width=width,
        terms=terms,
        pending=pending,
        **options_of(given),
    )


@algorithm
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
    bounds: BoundsKind = "published",
    terms: Terms | None = None,
    pending: Literal["hallucinate"] = "hallucinate",
    **given: Unpack[Start],
) -> SafeStrategy:
    """Safe UCB: `insured_ucb` over several candidate models; it is not safe exploration, and its
    trials may violate constraints.

    "Safe" is about regret: a point is exploited only if no bound of the current level excludes it
    from being the best. Nothing keeps f, or any other outcome, above a threshold, and probes are
    asked at points of low predicted value on purpose. Feedback may be late.

    The models that play are those whose log marginal likelihood is within c = ln(M / delta) of the
    largest, of M models. A level of misspecification is given up when each of these models
    contradicts itself. An exploited point is never one that the level excludes; a probe may be.

    Source: no paper; the page on theory, where the promises are argued and not proven. Nothing is
    promised about the choice among models if f is misspecified.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> models = bx.CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> strategy = bx.algorithms.safe_ucb(points, models, noise_std=0.1, rkhs_bound=1.0)
        >>> for _ in range(5):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> trial.info["kind"], trial.info["model"], strategy.report()["level"]
        ('exploit', 0, 0)

    Args:
        models: The candidate models; or one GPyTorch kernel with k(x, x) <= 1, together with
            ``noise_variance``. With contexts they are models of joint rows: the d columns of the
            action, then those of the context.
        rkhs_bound: B, at least the RKHS norm of f under the right model, in units of f.
        noise_variance: lambda > 0, the noise variance (the ridge) that goes with one kernel, in
            squared units of f. None with `CandidateModels`, which have their own.
        delta: The failure probability, in (0, 1), of each of four events: a confidence bound of a
            model fails, a bound of an average fails, the right model is dropped, a bound of a block
            fails.
        width: The width of the index alone (the upper confidence bound that is maximised): a width
            or a number. None: `SelfNormalized`, or `Mixture` as ``bounds`` says, which the tests
            always use.
        credibility: c >= 0, by how much the log marginal likelihood of a credible model may lie
            below the largest. None: ln(M / delta).
        certificates: Whether up to an eighth of the trials go to blocks of points of largest
            variance under the first model, which certify the regret of the exploited points. Needs
            a `FiniteSet` without contexts whose actions do not change. False by default, because
            certificates cost more than they save.
        horizon: T, the number of trials. Needed with ``certificates``, and only there.
        terms: The limits on what the insurance may cost. None: ``Terms()``, whose numbers were
            chosen by experiments.
        pending: The treatment of pending trials: they count in the index (the upper confidence
            bound that is maximised), and the tests use told data alone. No other value is allowed.
    """
    if isinstance(models, CandidateModels) == (noise_variance is not None):
        raise ValueError(
            "safe_ucb(): noise_variance must be given if models is one kernel, and only then, "
            f"got {noise_variance!r}"
        )
    if not isinstance(models, CandidateModels):
        models = CandidateModels.of(make_model(domain, models, {"noise_variance": noise_variance}))
    return SafeStrategy(
        domain,
        models,
        rkhs_bound=rkhs_bound,
        noise_std=noise_std,
        delta=delta,
        width=width,
        credibility=credibility,
        terms=terms,
        certificates=certificates,
        horizon=horizon,
        bounds=bounds,
        pending=pending,
        **options_of(given),
    )

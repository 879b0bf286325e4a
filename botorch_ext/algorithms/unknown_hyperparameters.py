"""Unknown hyperparameters: HE-GP-UCB, and the baselines MLE-UCB and ExpectedUCB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from botorch_ext.algorithms.argument_checks import algorithm, options_of, published_width
from botorch_ext.algorithms.signatures import OfCandidates
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.elimination import HyperparameterElimination
from botorch_ext.strategies.adaptive.judges import Averaging, Likeliest
from botorch_ext.widths import BayesContinuous, BayesFinite, SelfNormalized, Width
from botorch_ext.widths.composed import EnlargementForm

Setting = Literal["frequentist", "bayesian"]


@algorithm
def he_gp_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    noise_std: float,
    setting: Setting = "frequentist",
    misspecification: float = 0.0,
    enlargement: EnlargementForm = "published",
    a: float | None = None,
    b: float | None = None,
    rkhs_bound: float | None = None,
    delta: float = 0.1,
    width: Width | float | Sequence[Width | float] | None = None,
    alarm: bool = False,
    **given: Unpack[BoundsOptions],
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
        alarm: Whether a model is also eliminated when the certified lower bound of the RKHS norm of
            f for its kernel exceeds ``rkhs_bound``. This spends no further part of delta. Needs
            widths with an RKHS bound, as those of the frequentist setting.
    """
    numbers = {"rkhs_bound": rkhs_bound, "noise_std": noise_std, "delta": delta, "width": width}
    return HyperparameterElimination(
        domain,
        models,
        elimination_width("he_gp_ucb", domain, numbers, setting, a, b),
        noise_std=noise_std,
        delta=delta,
        misspecification=one_number(misspecification, "misspecification"),
        enlargement=enlargement,
        alarm=alarm,
        **options_of(given),
    )


@algorithm
def mle_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    width: Width | float | Sequence[Width | float] | None = None,
    **given: Unpack[OfCandidates],
) -> BoundsStrategy:
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
        width: A width, or a number, in place of the published width; or a sequence with one for
            each model. ``rkhs_bound``, ``noise_std`` and ``delta`` are then unused. None: the
            published width.
    """
    published = published_width("mle_ucb", SelfNormalized, {**given, "width": width})
    return BoundsStrategy(domain, models, published, judge=Likeliest(), **options_of(given))


@algorithm
def expected_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    width: Width | float | Sequence[Width | float] | None = None,
    **given: Unpack[OfCandidates],
) -> BoundsStrategy:
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
        width: A width, or a number, in place of the published width; or a sequence with one for
            each model. ``rkhs_bound``, ``noise_std`` and ``delta`` are then unused. None: the
            published width.

    Returns:
        A `BoundsStrategy` to ask and to tell; see there for the keys of ``trial.info``, which is
        about the most probable model, and of the report.
    """
    published = published_width("expected_ucb", SelfNormalized, {**given, "width": width})
    return BoundsStrategy(domain, models, published, judge=Averaging(), **options_of(given))


def elimination_width(
    name: str,
    domain: Domain,
    given: Mapping[str, Any],
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
    if setting == "bayesian" and given["width"] is None:
        return _bayesian_width(name, domain, given["delta"], a, b)
    return published_width(name, SelfNormalized, given)


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

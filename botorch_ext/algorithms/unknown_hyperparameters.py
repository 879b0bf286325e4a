"""Unknown hyperparameters: HE-GP-UCB and what it is compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Unpack

from botorch_ext.algorithms.arguments import (
    DEFAULT_DELTA,
    published_width,
    refuse_unknown,
)
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.kernel_variants import default_growth
from botorch_ext.strategies.adaptive.baselines import (
    ExpectedBound,
    LengthscaleBalancing,
    MaximumLikelihood,
    ShrinkingLengthscale,
    checked_lengthscale_0,
    require_lengthscales,
)
from botorch_ext.strategies.adaptive.elimination import HyperparameterElimination
from botorch_ext.strategies.adaptive.multi_model import MultiModelOptions
from botorch_ext.widths import (
    BayesContinuous,
    BayesFinite,
    Enlarged,
    SelfNormalized,
    Width,
    check_rkhs_bound,
)

Setting = Literal["frequentist", "bayesian"]


class MultiModel(MultiModelOptions, total=False):
    """What every method over several models takes."""

    rkhs_bound: float | None
    delta: float
    width: Width | float | Sequence[Width | float] | None


class _Baseline(MultiModel, total=False):
    noise_std: float | None


def he_gp_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    noise_std: float,
    setting: Setting = "frequentist",
    misspecification: float = 0.0,
    a: float | None = None,
    b: float | None = None,
    **options: Unpack[MultiModel],
) -> HyperparameterElimination:
    """HE-GP-UCB: optimism over points and models; a model goes when its own predictions are refuted
    (Ziomek et al. 2024, algorithm 1).

    The width is valid with probability 1 - delta/2 for the true model, whichever it is; the other
    half of delta is spent on the tests.

    Args:
        noise_std: R, the sub-Gaussian constant of the noise; the tests need it, whatever the width.
        setting: "frequentist": f lies in the RKHS of the true model with norm at most
            ``rkhs_bound``, and the width is `SelfNormalized`. "bayesian": f is drawn from the true
            model, prior mean included, and the width is `BayesFinite`, on a box `BayesContinuous`
            with the longest side of the box.
        misspecification: eps, how far f may be from what the true model can express; enlarges the
            width and the tests (beyond the paper).
        a: Tail constant of the derivatives of f, for "bayesian" on a box.
        b: Tail scale of the derivatives of f, for "bayesian" on a box.
        options: The arguments all methods share, described with the package; ``width`` may be a
            sequence with one for each model.
    """
    delta = options.get("delta", DEFAULT_DELTA)
    misspecification = one_number(misspecification, "misspecification")
    width = elimination_width(domain, noise_std, setting, misspecification, a, b, options)
    return HyperparameterElimination(
        domain,
        models,
        width,
        noise_std=noise_std,
        delta=delta,
        misspecification=misspecification,
        **of_strategy(options),
    )


def mle_ucb(
    domain: Domain, models: CandidateModels, **options: Unpack[_Baseline]
) -> MaximumLikelihood:
    """MLE-UCB: GP-UCB with the model of highest marginal likelihood at each step (the baseline of
    Ziomek et al. 2024, section 7, and of common practice). It can be wrong for ever.

    Args:
        options: The arguments all methods share, described with the package.
    """
    width = published_width(SelfNormalized, options)
    return MaximumLikelihood(domain, models, width, **of_strategy(options))


def expected_ucb(
    domain: Domain, models: CandidateModels, **options: Unpack[_Baseline]
) -> ExpectedBound:
    """ExpectedUCB: the average of the upper confidence bounds under P(model | data), from a uniform
    prior (the baseline of Ziomek et al. 2024, section 7).

    Args:
        options: The arguments all methods share, described with the package.
    """
    width = published_width(SelfNormalized, options)
    return ExpectedBound(domain, models, width, **of_strategy(options))


def a_gp_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    lengthscale_0: float | None = None,
    growth: Callable[[int], float] = default_growth,
    **options: Unpack[_Baseline],
) -> ShrinkingLengthscale:
    """A-GP-UCB: the lengthscale shrinks and the norm bound grows with time, whatever is observed
    (Berkenkamp et al. 2019, eq. 18).

    The width is `SelfNormalized` with the bound B_0 (lengthscale_0 / l)^d of the lengthscale l in
    play.

    Args:
        models: Candidates told apart by one lengthscale each.
        lengthscale_0: The first lengthscale; None takes the longest of the candidates.
        growth: g in lengthscale_0 / g(t).
        options: The arguments all methods share, described with the package; ``rkhs_bound`` is B_0.
    """
    scales = require_lengthscales(models).tolist()
    if models.grows:
        raise ValueError("models must all be there from the start for a_gp_ucb, got a growing set")
    longest = max(scales) if lengthscale_0 is None else checked_lengthscale_0(lengthscale_0)

    def published(rkhs_bound: float, noise_std: float, delta: float) -> list[Width]:
        check_rkhs_bound(rkhs_bound)
        bounds = [rkhs_bound * (longest / scale) ** domain.dim for scale in scales]
        return [SelfNormalized(bound, noise_std, delta) for bound in bounds]

    return ShrinkingLengthscale(
        domain,
        models,
        published_width(published, options),
        lengthscale_0=longest,
        growth=growth,
        **of_strategy(options),
    )


def lb_gp_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    noise_std: float,
    **options: Unpack[MultiModel],
) -> LengthscaleBalancing:
    """LB-GP-UCB, length-scale balancing: the lengthscale with the smallest suspected regret bound
    plays, and goes when its rewards are too low for it (arXiv 2410.10384).

    Without ``rkhs_bound`` and ``width``, B = 1 and outputs are standardised as they come; the noise
    variance of the models is then in squared standard deviations of the outputs, ``noise_std`` in
    their units all the same. A trial that is abandoned counts as a play.

    Args:
        models: Candidates told apart by one lengthscale each, such as `CandidateModels.growing`.
        noise_std: R, the sub-Gaussian constant of the noise.
        options: The arguments all methods share, described with the package.
    """
    standardize = options.get("rkhs_bound") is None and options.get("width") is None
    rkhs_bound = options.get("rkhs_bound")
    rkhs_bound = 1.0 if rkhs_bound is None else rkhs_bound
    known = {"noise_std": noise_std, "rkhs_bound": rkhs_bound}
    width = published_width(SelfNormalized, {**options, **known})
    if isinstance(width, Sequence):
        raise ValueError(f"width must be one for all models of lb_gp_ucb, got {len(width)}")
    return LengthscaleBalancing(
        domain,
        models,
        width,
        noise_std=noise_std,
        delta=options.get("delta", DEFAULT_DELTA),
        rkhs_bound=rkhs_bound,
        standardize=standardize,
        **of_strategy(options),
    )


def elimination_width(
    domain: Domain,
    noise_std: float,
    setting: Setting,
    misspecification: float,
    a: float | None,
    b: float | None,
    options: Mapping[str, Any],
) -> Any:
    """The width (or one for each model) of the methods that eliminate models: valid with
    probability 1 - delta/2, enlarged. The arguments are those of `he_gp_ucb`.

    Raises:
        ValueError: An unknown setting, numbers that it has no use for, or no width and not what the
            published one needs.
    """
    refuse_unknown(options, _Baseline)
    delta = options.get("delta", DEFAULT_DELTA)
    if setting not in ("frequentist", "bayesian"):
        raise ValueError(f'setting must be "frequentist" or "bayesian", got {setting!r}')
    is_continuous = setting == "bayesian" and not isinstance(domain, FiniteSet)
    if not is_continuous and (a, b) != (None, None):
        raise ValueError(
            f'a and b must be None unless setting is "bayesian" on a box, got {a} and {b}'
        )
    if setting == "bayesian" and options.get("width") is None:
        width = _bayesian_width(domain, delta / 2, a, b)
    else:
        width = published_width(
            SelfNormalized, {**options, "noise_std": noise_std, "delta": delta / 2}
        )
    if isinstance(width, Sequence):
        return [Enlarged(own, misspecification) for own in width]
    return Enlarged(width, misspecification) if misspecification else width


def _bayesian_width(domain: Domain, delta: float, a: float | None, b: float | None) -> Width:
    if isinstance(domain, FiniteSet):
        return BayesFinite(domain.num_points, delta)
    if a is None or b is None:
        raise ValueError(
            'a and b must be given on a box where setting is "bayesian", unless width is, got '
            f"{a} and {b}"
        )
    return BayesContinuous(domain.dim, a, b, float((domain.upper - domain.lower).max()), delta)


def of_strategy(options: Mapping[str, Any]) -> MultiModelOptions:
    """What goes on to the strategy."""
    refuse_unknown(options, _Baseline)
    known = MultiModelOptions.__optional_keys__
    kept: Any = {name: value for name, value in options.items() if name in known}
    return kept

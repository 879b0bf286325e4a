"""Thompson sampling."""

from __future__ import annotations

from typing import Unpack

from gpytorch.kernels import Kernel

from botorch_ext.algorithms.argument_checks import algorithm, model_or_fitted, options_of, taken
from botorch_ext.algorithms.signatures import Model
from botorch_ext.domains import Domain
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.bounds_strategy import Start
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.strategies.adaptive.thompson import ThompsonSampling
from botorch_ext.widths import Width


class _Thompson(Model, Start, total=False):
    """What Thompson sampling shares with other methods."""


@algorithm
def thompson_sampling(
    domain: Domain,
    kernel: Kernel | Fitted | CandidateModels,
    *,
    width: Width | float = 1.0,
    pending: Pending = "ignore",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    **given: Unpack[_Thompson],
) -> ThompsonSampling:
    """Thompson sampling: asks the maximiser of a function that is drawn from the posterior.

    Values of the draw are exact draws from the joint posterior, without random features. On a
    finite set a point is asked with the probability that it is the maximiser, up to 2e-11 per
    point, if at most 4096 points can be the maximiser; if there are more, only the most promising
    ones are drawn. On a box the search evaluates the draw where it may be large, and finds its
    maximiser as well as a search can.

    Source: Thompson 1933; scaled draws: GP-TS, Chowdhury and Gopalan 2017, algorithm 2; in
    parallel: Kandasamy, Krishnamurthy, Schneider and Poczos 2018.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.thompson_sampling(points, RBFKernel(), noise_variance=0.01)
        >>> [trial.x.tolist() for trial in strategy.ask(3)]
        [[1.0], [1.0], [0.4]]

    Args:
        kernel: A GPyTorch kernel. With contexts it is a kernel of joint rows: the d columns of the
            action, then those of the context. Or `Fitted`, which fits the hyperparameters to the
            data. Or `CandidateModels`: each step draws one model from P(model | data), with a
            uniform prior.
        noise_variance: lambda > 0, the noise variance (the ridge) of the model, in squared units of
            f. Needed unless ``kernel`` is `Fitted` or `CandidateModels`, which have their own.
        width: A width, or a number, that multiplies the deviation of the draw from the posterior
            mean. 1 draws from the posterior. The guarantee of GP-TS, for f in an RKHS, needs
            `ChowdhuryGopalan` with half of delta, and a finite set.
        pending: How pending trials (asked, not told) count. "ignore": not at all; draws are
            independent, so parallel trials still differ. "hallucinate": in the standard deviation
            and the width. "censor": in both, and in the mean as observations of ``minimum``.
        inflate: Whether ``pending="hallucinate"`` multiplies the width by exp(information gain of
            the pending points given the told ones).
        seed: The seed of the draws, of the search and of the first points.
    """
    if isinstance(kernel, CandidateModels):
        for argument, value in taken(given, "noise_variance", "mean").items():
            if value is not None:
                raise ValueError(
                    f"thompson_sampling(): {argument} must not be given with CandidateModels, "
                    f"which have it, got {value!r}"
                )
        model = kernel
    else:
        model = model_or_fitted("thompson_sampling", domain, kernel, given)
    return ThompsonSampling(
        domain,
        model,
        width,
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        **options_of(given),
    )

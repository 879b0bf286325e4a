"""Thompson sampling."""

from __future__ import annotations

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names, model_or_fitted
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.checks import PriorMean
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.strategies.adaptive.thompson import ThompsonSampling
from botorch_ext.widths import Width


@checked_names
def thompson_sampling(
    domain: Domain,
    kernel: Kernel | Fitted | CandidateModels,
    *,
    noise_variance: float | None = None,
    width: Width | float = 1.0,
    mean: PriorMean | float | None = None,
    pending: Pending = "ignore",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
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
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        kernel: A GPyTorch kernel. With contexts it is a kernel of joint rows: the d columns of the
            action, then those of the context. Or `Fitted`, which fits the hyperparameters to the
            data. Or `CandidateModels`: each step draws one model from P(model | data), with a
            uniform prior.
        noise_variance: lambda > 0, the noise variance (the ridge) of the model, in squared units of
            f. Needed unless ``kernel`` is `Fitted` or `CandidateModels`, which have their own.
        width: A width, or a number, that multiplies the deviation of the draw from the posterior
            mean. 1 draws from the posterior. The guarantee of GP-TS, for f in an RKHS, needs
            `ChowdhuryGopalan` with half of delta, and a finite set.
        mean: The prior mean, in units of f: a GPyTorch `Mean`, a callable from ``... x n x d`` to
            ``... x n``, or a number. None: zero.
        pending: How pending trials (asked, not told) count. "ignore": not at all; draws are
            independent, so parallel trials still differ. "hallucinate": in the standard deviation
            and the width. "censor": in both, and in the mean as observations of ``minimum``.
        inflate: Whether ``pending="hallucinate"`` multiplies the width by exp(information gain of
            the pending points given the told ones).
        minimum: A lower bound on the values of f, in units of f. Needed with ``pending="censor"``,
            and only there.
        timeout: m, in steps, with ``pending="censor"`` only: a trial that was asked at step s and
            is not told before the ask of step s + m + 1 stays censored for ever. None: a result
            counts however late it is told.
        seed: The seed of the draws, of the search and of the first points.
        initial: Observations from before the study: a pair ``(X, Y)`` of shapes ``n x d`` and ``n``
            (or ``n x 1``). They count as steps. None: no observations.
        num_initial: The number of Sobol points that are asked first. They count as steps.
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. Every ask
            then needs a context, and ``initial`` has joint rows (the action, then the context).
            None: no contexts.

    Returns:
        A `ThompsonSampling` to ask and to tell; see `BoundsStrategy` for the keys of ``trial.info``
        and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value. The message names the argument.
    """
    if isinstance(kernel, CandidateModels):
        for argument, given in (("noise_variance", noise_variance), ("mean", mean)):
            if given is not None:
                raise ValueError(
                    f"thompson_sampling(): {argument} must not be given with CandidateModels, "
                    f"which have it, got {given!r}"
                )
        model = kernel
    else:
        model = model_or_fitted("thompson_sampling", domain, kernel, noise_variance, mean)
    return ThompsonSampling(
        domain,
        model,
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

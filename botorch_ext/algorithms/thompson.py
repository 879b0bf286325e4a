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
    """Thompson sampling: the next point is where a function drawn from the posterior is largest.

    Values of the draw are exact draws from the joint posterior, without random features. On a
    finite set the point has the probability of being the maximiser, but for 2e-11 per point, up to
    4096 points that can be the maximiser; of more the most promising are drawn. On a box the draw
    is looked at where it may be large, so that its maximiser is found as well as the search finds
    it.

    Source: Thompson 1933; scaled draws: GP-TS, Chowdhury and Gopalan 2017, algorithm 2; in
    parallel: Kandasamy, Krishnamurthy, Schneider and Poczos 2018.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel; with contexts on joint rows, the d columns of the action first.
            Or `Fitted`: hyperparameters from the data. Or `CandidateModels`, of which one is drawn
            at each step by P(model | data), from a uniform prior.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f. Needed unless the
            kernel is `Fitted` or `CandidateModels`, which have it.
        width: What the deviation of the draw from the posterior mean is multiplied with: a width,
            or a number. 1 draws from the posterior. The guarantee of GP-TS, for f in an RKHS, is
            for `ChowdhuryGopalan` with half of delta, on a finite set.
        mean: The prior mean: a GPyTorch `Mean`, a callable from ``... x n x d`` to ``... x n``, or
            a number. None: zero.
        pending: What trials that are asked and not told count for: "ignore", nothing: draws are
            independent, which is what makes parallel questions differ; "hallucinate", the standard
            deviation and the width; "censor", these and, as ``minimum``, the mean.
        inflate: Whether "hallucinate" multiplies the width by exp(information gain of the pending
            points given the told ones).
        minimum: The least value f can take, in units of f: for "censor", which needs it.
        timeout: m, in steps, for "censor": a trial asked at step s and not told before the ask of
            step s + m + 1 stays censored for ever. None: no trial does.
        seed: Seeds the draws, the search and the first points.
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

"""Certified GP-BUCB: most steps are GP-BUCB's, a share of them buys what certifies their regret."""

from __future__ import annotations

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names, make_model, published_width
from botorch_ext.checks import whole_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.strategies.fixed_design.certified import CertifiedElimination, Free
from botorch_ext.strategies.fixed_design.certified_rounds import Buy
from botorch_ext.strategies.fixed_design.progress import Schedule
from botorch_ext.widths import FixedDesign, FixedDesignNet, SelfNormalized, Width, check_delta


@checked_names
def certified_bucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    horizon: int,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: float | None = None,
    free_width: Width | float | None = None,
    share: float = 1 / 8,
    kappa: float = 1.0,
    buy: Buy = "useful",
    free: Free = "gp_bucb",
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
) -> CertifiedElimination:
    """Certified GP-BUCB: GP-BUCB in a region whose points all have a certified regret. A small
    share of the steps renews the certificate, and nothing needs to be known of the delays.

    The widths are `FixedDesign` (on a box `FixedDesignNet`, a heuristic off its net) for blocks and
    `SelfNormalized` for all told data, with delta/2 each: on a finite set, with probability at
    least 1 - delta, no asked point has more regret than ``info["certificate"]`` says, whatever the
    delays and the free rule, where noise is independent and delays do not depend on it. A delay is
    the number of trials asked before the result comes. With workers that ask as soon as they are
    free, and evaluations whose duration depends on their point, delays depend on the noise: a value
    changes the next point, so the time of the next question. Then no proof covers the certificates
    of blocks that close before all of their points are told (``kappa`` above 1), or that a second
    plan extended. With a number as width the certificates are worth what the number is. The first
    ones are wide: at ordinary horizons those of the published widths are more than f can vary.
    Source: none; the proof is that of Vakili et al. 2023, theorem 6.1, which uses of most steps
    only that they lie in the region.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f.
        horizon: T, the number of trials.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given;
            where it is known all bounds are clipped to [-B, B].
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1).
        width: A number in place of both widths of the certificates; ``noise_std`` and ``delta``
            then count for nothing.
        free_width: The width of GP-BUCB in the free steps, which no certificate depends on. None:
            ``width``, or 2 where that is None.
        share: The share of the steps that buys certificates, in (0, 1]. With the published widths
            an eighth, with a number a quarter does no harm.
        kappa: A round closes when the largest standard deviation is at most this many times what
            its block promised: 1 for delays with light tails, sqrt(2) for heavy ones.
        buy: "useful": a block only where the certificate may become half of what it is. "always":
            in every round, for the regret bound.
        free: "gp_bucb", or a function of a `KernelGP` with the told data, the region (a `Region`;
            on a finite set a `FiniteSet` of the survivors), the ``p x d`` pending points and a
            seed, which returns a point of the region.
        seed: Seeds every random choice. On a finite set ties of free steps go to the first point.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``: for the free
            steps and the bounds of all told data.
        num_initial: How many Sobol points are asked first, anywhere; the rounds share the rest.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published ones need; the
            message names it. When asked: a free rule that leaves the region.
    """
    num_initial = whole_number(num_initial, "num_initial", least=0)
    rounds_of = whole_number(horizon, "horizon", least=num_initial + 1) - num_initial
    model = make_model(domain, kernel, noise_variance, None)

    def published(rkhs_bound: float, noise_std: float, delta: float) -> tuple[Width, Width]:
        check_delta(delta)  # half of it may be possible
        told = SelfNormalized(rkhs_bound, noise_std, delta / 2)
        num_rounds = Schedule(rounds_of, share).num_rounds
        numbers = rkhs_bound, noise_std, delta / 2
        if isinstance(domain, FiniteSet):
            return FixedDesign(*numbers, domain.num_points, num_rounds), told
        return FixedDesignNet.on_box(*numbers, num_rounds, domain, kernel), told

    given = None if width is None else (width, width)
    block_width, told_width = published_width(
        "certified_bucb", published, given, rkhs_bound, noise_std, delta
    )
    if free_width is None:
        free_width = 2.0 if width is None else width
    return CertifiedElimination(
        domain,
        model,
        horizon,
        block_width,
        told_width,
        free_width,
        rkhs_bound=rkhs_bound,
        share=share,
        kappa=kappa,
        buy=buy,
        free=free,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
    )

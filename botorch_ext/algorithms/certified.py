"""Certified GP-BUCB: GP-BUCB, with a share of the steps spent on certificates of its regret."""

from __future__ import annotations

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import algorithm, make_model, published_width
from botorch_ext.algorithms.phased import width_of_rounds
from botorch_ext.checks import whole_number
from botorch_ext.domains import Domain
from botorch_ext.strategies.fixed_design.certified import Buy, CertifiedElimination, Free
from botorch_ext.strategies.fixed_design.progress import Schedule
from botorch_ext.widths import Width, as_width
from botorch_ext.widths.composed import BoundsKind, kinds_of_widths


@algorithm
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
    bounds: BoundsKind = "published",
    free_width: Width | float | None = None,
    share: float = 1 / 8,
    kappa: float = 1.0,
    buy: Buy = "useful",
    free: Free = "gp_bucb",
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    minimize: bool | None = None,
) -> CertifiedElimination:
    """Certified GP-BUCB: GP-BUCB inside a region whose points all have a certified regret.

    A small share of the steps renews the certificate. Nothing needs to be known about the delays.

    The published widths are `FixedDesign` for blocks (on a box `FixedDesignNet`, a heuristic off
    its net) and `SelfNormalized` for all told data, with delta/2 each. On a finite set, with
    probability at least 1 - delta, no asked point has more regret than ``info["certificate"]``
    says, whatever the delays and the free rule. This assumes that the noise is independent and that
    delays do not depend on it. A delay is the number of trials that are asked before the result
    comes.

    Delays depend on the noise if workers ask as soon as they are free and the duration of an
    evaluation depends on its point: a value changes the next point, and so the time of the next
    ask. No proof then covers the certificates of blocks that close before all of their points are
    told (``kappa`` above 1), or of blocks that a second plan extended. If ``width`` is a number,
    the certificates are only as valid as that number. The first certificates are wide: at ordinary
    horizons those of the published widths are larger than the range of f.

    Source: none. The proof is that of Vakili et al. 2023, theorem 6.1; about most steps it uses
    only that they lie in the region.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.certified_bucb(
        ...     points, RBFKernel(), noise_variance=0.0001, horizon=40, width=1.0, share=0.25
        ... )
        >>> for _ in range(8):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> trial.info["phase"], round(trial.info["certificate"], 2), strategy.survivors.tolist()
        ('free', 0.01, [0])

    Args:
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
            If it is given, all bounds are clipped to [-B, B].
        width: A number in place of both widths of the certificates. ``noise_std`` and ``delta`` are
            then unused. None: the widths that ``bounds`` names.
        free_width: The width of GP-BUCB in the free steps. No certificate depends on it. None:
            ``width`` if that is given, else 2.
        share: The share of the steps that buy certificates, in (0, 1]. An eighth does no harm with
            the published widths, a quarter does no harm with a number as ``width``.
        kappa: At least 1: a round ends once the largest standard deviation is at most kappa times
            the one that its block promised. Use 1 for delays with light tails, sqrt(2) for heavy
            tails.
        buy: When a round buys a block. "useful": if the block may halve the certificate. "always":
            in every round. The regret bound holds for both.
        free: The rule of the free steps: "gp_bucb", or a function of a `KernelGP` with the told
            data, the region (a `Region`; on a finite set a `FiniteSet` of the survivors), the ``p x
            d`` points of pending and failed trials, and a seed. It returns a point of the region.
        seed: The seed of every random choice. On a finite set a free step chooses the first of
            several equally good points.
        initial: Observations from before the study: a pair ``(X, Y)`` of shapes ``n x d`` and ``n``
            (or ``n x 1``). The free steps and the bounds of all told data use them. None: no
            observations.
        num_initial: The number of Sobol points that are asked first, anywhere in the domain. The
            rounds share the rest of the horizon.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``width`` is None and an argument
            that the published widths need is missing. The message names the argument. `ask` raises
            it if ``free`` returns a point outside the region.
    """
    num_initial = whole_number(num_initial, "num_initial", least=0)
    rounds_of = whole_number(horizon, "horizon", least=num_initial + 1) - num_initial
    model = make_model(domain, kernel, {"noise_variance": noise_variance})

    def published(rkhs_bound: float, noise_std: float, delta: float) -> tuple[Width, Width]:
        numbers = rkhs_bound, noise_std, delta / 2
        num_rounds = Schedule(rounds_of, share).num_rounds
        return of_rounds(*numbers, num_rounds), told(*numbers)

    of_rounds, told = width_of_rounds(domain, kernel, bounds), kinds_of_widths(bounds).told
    both = None if width is None else as_width(width)
    numbers = {
        "rkhs_bound": rkhs_bound,
        "noise_std": noise_std,
        "delta": delta,
        "width": None if both is None else (both, both),
    }
    block_width, told_width = published_width("certified_bucb", published, numbers)
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
        minimize=minimize,
    )

"""Optimism with one model: the point with the highest upper confidence bound."""

from __future__ import annotations

from typing import Any, Unpack

from botorch_ext.domains import Domain
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.widths import Width


class OptimisticStrategy(BoundsStrategy):
    """Asks x_t in argmax mean + w_t std, as GP-UCB and its relatives do, which differ in the width
    and in how pending trials count.

    This is a `BoundsStrategy` with one model, with the same ``info`` and report.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, or a `FiniteSet`.
        model: A `KernelGP`, which is copied; data that it holds count as steps. Or `Fitted`.
        width: The confidence width, or a number.
        options: The keyword arguments of `BoundsStrategy`.

    Raises:
        ValueError: If `BoundsStrategy` raises it, or if there are several models.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> model = bx.KernelGP(RBFKernel(), noise_variance=0.01)
        >>> strategy = bx.strategies.OptimisticStrategy(bx.Box([[0.0], [1.0]]), model, 2.0)
        >>> strategy.attach([0.2], 0.5).info
        {'attached': True}
        >>> round(strategy.ask().x.item(), 2)
        1.0
    """

    takes_outside = True

    def __init__(
        self,
        domain: Domain,
        model: KernelGP | Fitted,
        width: Width | float,
        **options: Unpack[BoundsOptions],
    ) -> None:
        if not isinstance(model, KernelGP | Fitted):
            raise ValueError(f"model must be a KernelGP, got a {type(model).__name__}")
        super().__init__(domain, model, width, **options)

    @property
    def posterior(self) -> Any:
        """The posterior given the told data, with pending trials as the policy says. A `KernelGP`,
        or a `FinitePosterior` on a finite set without contexts. It is a copy: changing it
        does not change the strategy."""
        return super().posterior.parts[0].model

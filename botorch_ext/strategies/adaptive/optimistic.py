"""Optimistic: plain optimism, the case of one model and the highest upper bound."""

from __future__ import annotations

from typing import Any, Unpack

from botorch_ext.domains import Domain
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.widths import Width


class OptimisticStrategy(BoundsStrategy):
    """x_t in argmax mean + w_t std: GP-UCB and its relatives, told apart by width and pending
    policy. See `BoundsStrategy`, of which it is the case of one model.

    Args:
        domain: A `Box` or a `FiniteSet`, of actions.
        model: A `KernelGP`; it is copied, and data it holds count as steps. Or `Fitted`.
        width: The confidence width, or a number.
        options: The keyword arguments of `BoundsStrategy`.

    Raises:
        ValueError: What `BoundsStrategy` raises, or several models.
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
        """What is known: the told data, and the pending trials as the policy says. A `KernelGP`, or
        a `FinitePosterior` on a finite set without contexts. Reading it changes nothing."""
        return super().posterior.parts[0].model

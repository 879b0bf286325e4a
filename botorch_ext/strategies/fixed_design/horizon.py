"""What methods with a horizon share, whose rounds start from the prior."""

from __future__ import annotations

from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Domain
from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.repeated_points import means_with_repeats
from botorch_ext.state import Immutable
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.events import History


def require_prior(model: KernelGP, domain: Domain) -> None:
    """Raises a ValueError unless the model takes points of the domain and has neither data nor
    transforms."""
    if not isinstance(model, KernelGP):
        raise ValueError(f"model must be a KernelGP, got {short(model)}")
    model.require_takes(domain.like)
    if model.num_observations:
        raise ValueError(
            "model must have no data, since rounds start from the prior, got "
            f"{model.num_observations} observations"
        )
    if model.has_transforms:
        raise ValueError("model must not have input or outcome transforms")


def require_left(num_trials: int, asked: int, horizon: int) -> None:
    """Raises `HorizonReached` if fewer than ``num_trials`` trials are left."""
    if asked + num_trials > horizon:
        raise HorizonReached(
            f"num_trials must be at most {horizon - asked}, since that many trials are left of the "
            f"horizon of {horizon}, got {num_trials}",
            horizon,
        )


def require_before_horizon(id: int, history: History, horizon: int) -> None:
    """Raises a ValueError if more trials were asked before a recorded one than the horizon
    allows."""
    if history.asked_before(id) >= horizon:
        raise ValueError(f"id must be less than the horizon of {horizon}, got {id}")


def waiting(
    num_trials: int, available: int, missing: list[int], before: str
) -> WaitingForObservations:
    """The error if more trials are asked for than can be asked before all results are told.

    Args:
        num_trials: The number of trials that were asked for.
        available: The number of trials that can be asked.
        missing: The ids of the trials that are neither told nor abandoned.
        before: The event before which all must be told, such as "the round closes".
    """
    if available:
        message = (
            f"num_trials must be at most {available}, what is left before {before}, got "
            f"{num_trials}: ask for {available}, and for others once all its trials are told or "
            "abandoned"
        )
    else:
        message = (
            f"num_trials must be at most 0 before {before}, got {num_trials}: it waits until all "
            f"its trials are told or abandoned, and of those asked these are not: {missing}"
        )
    return WaitingForObservations(message, missing, available)


class ObservedMeans(Immutable):
    """The posterior mean at the evaluated points given all observations, computed when data came.

    Args:
        model: Kernel, noise variance and prior mean, without data.
    """

    def __init__(self, model: KernelGP) -> None:
        self.model = model
        self._last: tuple[Tensor, Tensor, Tensor] | None = None

    def at(self, X: Tensor, Y: Tensor) -> Tensor:
        """The ``n`` means at ``n x d`` points given their ``n`` values."""
        if self._last is None or not (X.equal(self._last[0]) and Y.equal(self._last[1])):
            self._last = X, Y, means_with_repeats(self.model, X, Y)
        return self._last[2]

    def mixture(self, X: Tensor, Y: Tensor) -> GPMixture:
        """The posterior given ``n`` values at ``n x d`` points, of one GP; O(n^3)."""
        model = self.model.fork()
        if len(X):
            model.add(X, Y)
        return GPMixture.of([model])

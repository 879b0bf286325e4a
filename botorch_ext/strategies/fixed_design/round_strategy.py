"""The base class of methods that play rounds of planned points up to a horizon."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from torch import Tensor

from botorch_ext.domains import FiniteSet
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Asked, Event
from botorch_ext.strategies.fixed_design.horizon import require_before_horizon, require_left
from botorch_ext.strategies.fixed_design.progress import Progress
from botorch_ext.strategies.fixed_design.round_records import RoundPlan


class RoundStrategy(Strategy):
    """A strategy that plays rounds, with blocks of points that are planned by their variance.

    A subclass moves `_progress` on when a step begins. For a step that is replayed it takes its
    choices from the record, and chooses nothing again.
    """

    #: T, the number of trials.
    horizon: int
    #: Whether trials are spent on planned blocks; without them there are no rounds and no horizon.
    buys_blocks: bool = True
    # The operations on survivors.
    _space: Any
    _progress: Progress

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        if self.buys_blocks:
            require_left(num_trials, self.history.num_asked, self.horizon)

    def check_event(self, event: Event) -> None:
        super().check_event(event)
        if isinstance(event, Asked) and self.buys_blocks:
            require_before_horizon(event.trial.id, self.history, self.horizon)

    @abstractmethod
    def _planner(self) -> KernelGP:
        """The model by which blocks are planned; nobody changes it."""

    def _taken(self, recorded: Any, name: str) -> Any:
        """An entry of a record; None without a record, when it is to be decided."""
        entry = getattr(recorded, name, None)
        if recorded is not None and entry is None:
            trial = len(self.history.trials)
            raise ValueError(f"{name} in the info of trial {trial} must be given, got None")
        return entry

    def _require_agreement(self, record: Any) -> None:
        """Raises a ValueError unless a record names the round and the phase of the step that has
        begun; after a correction they may differ."""
        for name in ("round", "phase"):
            own = getattr(self._progress, name)
            if not self._is_corrected and getattr(record, name, own) != own:
                raise ValueError(
                    f"{name} in the info of trial {len(self.history.trials)} must be {own!r}, got "
                    f"{getattr(record, name)!r}"
                )

    def _known_threshold(self, record: Any) -> tuple[float, list[float]] | None:
        """The largest lower bound of a recorded elimination and its place; None if it is to be
        found, as there is no record, or other values after a correction."""
        if record is None or self._is_corrected:
            return None
        trial = len(self.history.trials)
        self.domain.require_contains(record.argmax, f"argmax in the info of trial {trial}")
        return record.threshold, list(record.argmax)

    def _plan_block(self, count: int, record: RoundPlan | None) -> RoundPlan:
        """Plans the next points to be asked, or takes them from a record."""
        if record is not None:
            record.check(self.domain)
            choice = record
        else:
            survivors, seed = self._progress.survivors, self._seed_of(self.history.num_asked)
            choice = self._space.choose(survivors, self._planner(), count, seed)
        self._progress = self._progress.planning(choice, self._space.points(choice))
        return choice

    def _planned(self) -> tuple[Tensor, dict[str, Any]]:
        """The planned point to be asked now, and the ``info`` about it."""
        now = self._progress
        k = len(now.bought)
        info: dict[str, Any] = {"round": now.round, "std": now.std[k]}
        if isinstance(self.domain, FiniteSet):
            info["index"] = now.plan[k]
        return now.planned[k].clone(), info  # pyright: ignore

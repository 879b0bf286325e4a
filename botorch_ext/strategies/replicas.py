"""The states of one strategy in many independent runs on a finite set, moved forward together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from botorch_ext.models.replicated import Added, ReplicatedPosterior
from botorch_ext.widths import Width
from botorch_ext.widths.base import ModelNumbers


class NotReplicatedError(ValueError):
    """The runs of a strategy are not moved forward together."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"methods must be strategies whose runs can be moved forward together, got {reason}: "
            "simulate runs it"
        )


@dataclass(frozen=True, eq=False)
class Runs:
    """R runs of a strategy without trials.

    Args:
        seeds: The seed of the strategy in each run.
        horizon: T, the number of trials of a run.
        has_delays: Whether a result may come later than before the next ask.
        first: The rows of the first points, ``R x n``, which no model chooses.
        initial: The rows and the values of the observations from before the runs, ``R x n0`` each.
    """

    seeds: list[int]
    horizon: int
    has_delays: bool
    first: Tensor
    initial: tuple[Tensor, Tensor]

    @property
    def num_runs(self) -> int:
        return len(self.seeds)


@dataclass(frozen=True, eq=False)
class Results:
    """Results that arrive before the same ask, at most k in each of R runs.

    Args:
        step: The number of trials before that ask.
        trials: The numbers of their trials, ``R x k``.
        trials_on_host: The same numbers on the host.
        index: The rows of their points, ``R x k``.
        values: The observations, ``R x k``.
        added: Which of the k results there are in each run; None for all.
        at_once: Whether each run gets the result of the trial that it asked last, and no other.
    """

    step: int
    trials: Tensor
    trials_on_host: np.ndarray
    index: Tensor
    values: Tensor
    added: Added | None
    at_once: bool

    def since(self, first: int) -> Results:
        """The results of the trials from the ``first`` one on."""
        on_host, mask = self.trials_on_host >= first, self.trials >= first
        if self.added is not None:
            on_host, mask = on_host & self.added.on_host, mask & self.added.mask
        return replace(self, added=Added(mask, on_host))


class Replicas:
    """The states of one strategy in R runs on a finite set, which decide as R strategies would.

    This class learns nothing, and asks the first points alone."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        #: The rows that were asked last and are not told yet, ``R x 1``; None for none.
        self.newest: Tensor | None = None

    def ask(self, step: int) -> Tensor:
        """Chooses the next point of each run.

        Args:
            step: The number of the trial, from 0.

        Returns:
            The rows, ``R x 1``.
        """
        self._catch_up()
        first = self.runs.first
        is_first = step < first.shape[1]
        self.newest = first[:, step : step + 1] if is_first else self._decide(step)
        return self.newest

    @property
    def num_bytes(self) -> int:
        """The bytes of the posteriors of all runs, at their most."""
        return 0

    def _catch_up(self) -> None:
        """Notes that the points that were asked last are pending."""
        self.newest = None

    def _decide(self, step: int) -> Tensor:
        raise NotImplementedError

    def tell(self, results: Results) -> None:
        """Learns results."""

    def record(self) -> dict[str, Tensor]:
        """The fields of `Traces` that say what became of the models; none without models."""
        return {}


def widths_of(
    posterior: ReplicatedPosterior, width: Width | Sequence[Width]
) -> tuple[Tensor, Tensor]:
    """The widths and the offsets of all members of a posterior, before their next points.

    Widths read the number of observations on the host, so runs with equally many are evaluated
    together.

    Returns:
        ``M`` widths and ``M`` offsets.
    """
    first, *others = np.unique(posterior.counts).tolist()
    widths, offsets = _widths_after(posterior, first, width)
    for n in others:
        has_n = posterior.of_members(posterior.counts_on_device == n)
        own = _widths_after(posterior, n, width)
        widths, offsets = torch.where(has_n, own[0], widths), torch.where(has_n, own[1], offsets)
    return widths, offsets


def _widths_after(
    posterior: ReplicatedPosterior, n: int, width: Width | Sequence[Width]
) -> tuple[Tensor, Tensor]:
    """The widths and the offsets of all members if each of them had n observations, ``M`` each."""
    noise, points = posterior.noise_variance, posterior.candidates
    gain, form = posterior.information_gain(), posterior.quadratic_form
    model = ModelNumbers(noise, n, points.shape[-1], gain, form, points)

    def at(width: Width) -> tuple[Tensor, Tensor]:
        return _like(width(n + 1, model), noise), _like(width.offset(n + 1, model), noise)

    if isinstance(width, Width):
        return at(width)
    own = torch.arange(len(noise), device=noise.device) // posterior.num_ridges % len(width)
    widths, offsets = (
        torch.stack(each).gather(0, own[None])[0] for each in zip(*map(at, width), strict=True)
    )
    return widths, offsets


def _like(value: float | Tensor, like: Tensor) -> Tensor:
    """A number or a tensor in the shape of a tensor, without an upload."""
    return value.expand(like.shape) if isinstance(value, Tensor) else torch.full_like(like, value)

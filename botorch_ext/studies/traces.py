"""The records of simulations."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from operator import index
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Domain, host
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.answers.tables import frame
from botorch_ext.strategies.events import place_of
from botorch_ext.studies.trial_frames import table

if TYPE_CHECKING:
    import pandas as pd

#: What a mean over runs is taken of.
Score = Literal["cumulative_regret", "simple_regret", "regret", "values", "observations"]
_SCORES: tuple[Score, ...] = get_args(Score)
#: The numbers of each evaluation.
NUMBERS = ("values", "observations", "delays", "told_at", "regret")


@dataclass(frozen=True, eq=False)
class Evaluations:
    """The T evaluations of a simulation, or of R simulations, with all tensors on the CPU.

    Args:
        X: The points that were asked, without their contexts, ``T x d`` or ``R x T x d``.
        values: The noiseless values, ``T`` or ``R x T``.
        observations: The noisy values, in the same shape.
        delays: The delays in steps, in the same shape.
        told_at: The indices of the asks before which the observations arrived, in the same shape,
            -1 for an observation that came too late.
        regret: The maximum over the available actions at the context, minus the value, in the same
            shape. A strategy that waits has no regret for waiting.
        seconds: The time of the strategy, in ask and tell together.
    """

    X: Tensor
    values: Tensor
    observations: Tensor
    delays: Tensor
    told_at: Tensor
    regret: Tensor
    seconds: float

    @property
    def cumulative_regret(self) -> Tensor:
        """The running sums of the regret, in its shape."""
        return self.regret.cumsum(dim=-1)

    @property
    def simple_regret(self) -> Tensor:
        """The least regrets of the steps so far, in the shape of the regret."""
        return self.regret.cummin(dim=-1).values

    def _columns(self) -> dict[str, Tensor]:
        """The last columns of a table of all evaluations."""
        names = (*NUMBERS, "cumulative_regret", "simple_regret")
        return {name.removesuffix("s"): getattr(self, name).flatten() for name in names}


@dataclass(frozen=True, eq=False)
class Trace(Evaluations):
    """The record of a simulation. Further arguments are those of `Evaluations`.

    Args:
        strategy: The strategy, with all its state; None in a pickled trace.
        domain: The domain of the actions.
        contexts: ``T x d_z``, the context of each evaluation, or None.
    """

    strategy: Strategy
    domain: Domain
    contexts: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Posteriors take megabytes, and a trace is sent from process to process.
        return vars(self) | {"strategy": None}

    def __copy__(self) -> Trace:
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Trace:
        return replace(self, **deepcopy(vars(self), memo))

    def __repr__(self) -> str:
        """The counts, the best value and the regret, in a few lines."""
        top = int(self.values.argmax())
        context = None if self.contexts is None else self.contexts[top]
        place = place_of(self.X[top], context, self.domain)
        lines = [
            "Trace" if self.strategy is None else f"Trace of {type(self.strategy).__name__}",
            f"evaluations: {len(self.values)}",
            f"seconds of the strategy: {self.seconds:.3g}",
            f"best value, without noise: {self.values[top]:.6g} at {place}",
            f"simple regret: {self.simple_regret[-1]:.3g}",
            f"cumulative regret: {self.cumulative_regret[-1]:.6g}",
        ]
        return "\n  ".join(lines)

    def to_pandas(self) -> pd.DataFrame:
        """The evaluations as a data frame.

        Returns:
            A row for each evaluation, with the columns ``evaluation``, counted from 1; the
            parameters by name; ``context0`` and so on; ``value``, ``observation``, ``delay``,
            ``told_at``, ``regret``, ``cumulative_regret`` and ``simple_regret``. A column of the
            library whose name a parameter has has an underscore behind it.

        Raises:
            ImportError: pandas is not installed.
        """
        params = [self.domain.params_of(x) for x in self.X.to(self.domain.like)]
        named = {name: [row.get(name) for row in params] for name in params[0]}
        if self.contexts is not None:
            named |= {f"context{i}": column for i, column in enumerate(self.contexts.T)}
        evaluation = list(range(1, len(params) + 1))
        return table({"evaluation": evaluation}, named, self._columns())


@dataclass(frozen=True, eq=False)
class Traces(Evaluations):
    """The records of R simulations.

    ``traces[r]`` is the `Trace` of a run, with its strategy: the run is simulated again for it.
    Further arguments are those of `Evaluations`; ``seconds`` is the time of all runs together.

    Args:
        seeds: The seed of each run.
        simulated: A function that simulates one run again.
        indices: The rows of the points, ``R x T``; None if the runs were simulated one by one.
        models: The positions of the models that chose the trials, ``R x T``, -1 for trials that no
            model chose; None for a strategy of one model or of none, and as ``indices``.
        eliminated: The numbers of observations, initial ones included, at which the m models of a
            strategy that eliminates models were eliminated, ``R x m``, -1 for models that stand;
            None for other strategies, and as ``indices``.
        all_rejected_at: The numbers of observations at which the data refuted the model that was
            left and that stays, ``R``, -1 for runs without; None as ``eliminated``.
    """

    seeds: list[int]
    simulated: Callable[[int], Trace] = field(repr=False)
    indices: Tensor | None = None
    models: Tensor | None = None
    eliminated: Tensor | None = None
    all_rejected_at: Tensor | None = None

    def __getitem__(self, run: int) -> Trace:
        return self.simulated(range(len(self))[index(run)])

    def __len__(self) -> int:
        return len(self.seeds)

    def __repr__(self) -> str:
        """The counts and the regret, in a few lines."""
        lines = [f"Traces of {len(self)} runs", f"evaluations: {self.values.shape[1]}"]
        for name in ("cumulative_regret", "simple_regret"):
            mean, error = self.mean_and_error(name)[-1].tolist()
            lines.append(f"{name.replace('_', ' ')}: {mean:.6g} +- {error:.2g}")
        return "\n  ".join(lines)

    def mean_and_error(self, score: Score = "cumulative_regret") -> Tensor:
        """The mean over the runs at each step, and its standard error.

        Args:
            score: "cumulative_regret", "simple_regret", "regret", "values" or "observations".

        Returns:
            ``T x 2``; the standard errors of one run are nan.

        Raises:
            ValueError: If the score is unknown.
        """
        if score not in _SCORES:
            raise ValueError(f"score must be one of {', '.join(_SCORES)}, got {short(score)}")
        rows: Tensor = getattr(self, score)
        error = rows.std(dim=0) if len(self) > 1 else torch.full_like(rows[0], torch.nan)
        return torch.stack([rows.mean(dim=0), error / len(self) ** 0.5], dim=1)

    def to_pandas(self) -> pd.DataFrame:
        """All evaluations of all runs as a data frame.

        Returns:
            A row for each evaluation, with the columns ``seed``, ``evaluation``, counted from 1,
            ``index`` if there are ``indices``, ``model`` if there are ``models``, ``value``,
            ``observation``, ``delay``, ``told_at``, ``regret``, ``cumulative_regret`` and
            ``simple_regret``. The points are in ``X``.

        Raises:
            ImportError: pandas is not installed.
        """
        R, T = self.values.shape
        columns: dict[str, Any] = {
            "seed": host.tensor(self.seeds).repeat_interleave(T),
            "evaluation": host.arange(1, T + 1).repeat(R),
        }
        for name, values in (("index", self.indices), ("model", self.models)):
            if values is not None:
                columns[name] = values.flatten()
        return frame(columns | self._columns())

"""Optimistic selection: the argmax of an upper confidence bound, with pending evaluations."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any, Literal

import torch
from torch import Tensor

from botorch_ext.checks import one_number, whole_number
from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.optimize import ConfidenceBound, maximize_on_box
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Abandoned, Asked, Event, Told, Trial
from botorch_ext.widths import Width, as_tensor_like, as_width

Pending = Literal["ignore", "hallucinate", "censor"]

# Evaluated points that join the screening of a box.
_NUM_INCUMBENTS = 8
# Multiplications that screening a box may take, n^2 a point: about 20 ms on one core.
_SCREENING_WORK = 2**29


class OptimisticStrategy(Strategy):
    """x_t in argmax mean + w_t std: GP-UCB and its relatives, told apart by width and pending
    policy.

    Pending trials (asked, not yet told) are treated as ``pending`` says:

    - "ignore": as if they had not been asked; the same point is then asked again until it is told.
    - "hallucinate": they count in the standard deviation and in the width, and leave the mean alone
      (GP-BUCB, Desautels et al. 2014). ``inflate=True`` multiplies the width by exp(information
      gain of the pending points given the told ones), which is what makes the bound valid.
    - "censor": they enter as the known ``minimum`` in mean, standard deviation and width until told
      (GP-UCB-SDF, Verma et al. 2022); with ``timeout`` m a trial asked at step s and not told
      before the ask of step s + m + 1 stays censored for ever.

    Args:
        domain: A `Box` or a `FiniteSet`.
        model: A `KernelGP`; it is copied, and data it holds count as steps. They may lie outside
            the domain, so `best` chooses among the points of the study and of ``initial`` alone.
        width: The confidence width, or a number.
        pending: The policy above.
        inflate: Whether "hallucinate" inflates the width.
        minimum: The least value f can take ("censor" only).
        timeout: Steps after which a pending trial stays censored ("censor" only); None for never.
        seed: Seeds the optimiser and the first points. On a finite set ties go to the first one.
        initial: ``(X, Y)`` the user already has.
        num_initial: Sobol points asked first.

    Raises:
        ValueError: A batched model, a kernel or prior mean for points of another dimension, mixed
            devices or dtypes, a model with transforms on a finite set, or options that do not
            belong to the pending policy.

    Warns:
        KernelBoundWarning: k(x, x) exceeds 1 somewhere on the domain.
    """

    def __init__(
        self,
        domain: Domain,
        model: KernelGP,
        width: Width | float,
        *,
        pending: Pending = "hallucinate",
        inflate: bool = False,
        minimum: float | None = None,
        timeout: int | None = None,
        seed: int = 0,
        initial: tuple[Tensor, Tensor] | None = None,
        num_initial: int = 0,
    ) -> None:
        super().__init__(domain, seed, initial, num_initial)
        _check_pending_options(pending, inflate, minimum, timeout)
        model.require_takes(domain.like)
        self.width = as_width(width)
        self.pending_policy: Pending = pending
        self.inflate = inflate
        self.minimum = minimum
        self.timeout = timeout
        if isinstance(domain, FiniteSet):
            if model.has_transforms:
                raise ValueError("model must not have input or outcome transforms on a FiniteSet")
            self._posterior = FinitePosterior.from_model(model, domain.points)
            self._initial_data_rows = (
                [] if self.initial is None else domain.index(self.initial[0]).tolist()
            )
        else:
            self._posterior = deepcopy(model)
        self._warn_of_large_kernel(model)
        if self.initial is not None:
            self._posterior.add(*self.initial)
        # The trial each row of the posterior belongs to; rows before the first ask have none.
        self._row_ids: list[int | None] = [None] * self._posterior.num_observations
        # The trial asked last, while it pends without a row: told at once it costs one update.
        self._newest: Trial | None = None
        self._late: list[int] = []

    @property
    def posterior(self) -> KernelGP | FinitePosterior:
        """What is known: the told data, and the pending trials as the policy says.

        The trial asked last gets its row when the next event comes. Until then this is a copy that
        has it already, so that reading changes nothing.
        """
        if self._newest is None:
            return self._posterior
        posterior = deepcopy(self._posterior)
        _add_row(posterior, self._newest, self.minimum)
        return posterior

    def report(self) -> dict[str, Any]:
        posterior = self.posterior
        summary = super().report()
        summary |= {
            "t": posterior.num_observations + 1,
            "width": repr(self.width),
            "current_width": float(self._width_of(posterior)),
            "information_gain": float(posterior.information_gain()),
            "pending_policy": self.pending_policy,
            "inflated": self.inflate,
            "told_too_late": list(self._late),
            "jittered_rows": int((posterior.factor.jitter > 0).sum()),
        }
        return summary

    # --- decisions --------------------------------------------------------------------------------

    def _decide(self) -> tuple[Tensor, dict[str, Any]]:
        # Brings the model up to date with the events: `posterior` is the same before and after.
        self._enter_newest()
        posterior = self._posterior
        width = self._width_of(posterior)
        if isinstance(posterior, FinitePosterior):
            index, mean, std = self._best_candidate(posterior, width)
            mean, std, width = torch.stack([mean, std, width]).tolist()
            x = posterior.candidates[index].clone()
            return x, {"index": index, "mean": mean, "std": std, "width": width}
        x, mean, std = self._best_in_box(posterior, width)
        mean, std, width = torch.stack([mean, std, width]).tolist()
        return x, {"mean": mean, "std": std, "width": width}

    def _width_of(self, posterior: KernelGP | FinitePosterior) -> Tensor:
        width = self.width(posterior.num_observations + 1, posterior)
        width = as_tensor_like(width, posterior.noise_variance)
        if self.inflate:
            width = width * posterior.factor.pending_information_gain().exp()
        return width

    def _best_candidate(
        self, posterior: FinitePosterior, width: Tensor
    ) -> tuple[int, Tensor, Tensor]:
        mean, std = posterior.mean, posterior.std
        index = int((mean + width * std).argmax())  # of equal ones the first
        return index, mean[index], std[index]

    def _best_in_box(self, model: KernelGP, width: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if not isinstance(self.domain, Box):
            raise TypeError(f"domain must be a Box, got {type(self.domain).__name__}")
        X, Y = self._evaluated()
        incumbents = X[Y.topk(min(_NUM_INCUMBENTS, len(Y))).indices]
        affordable = _SCREENING_WORK // (model.num_observations + 1) ** 2
        x, _ = maximize_on_box(
            ConfidenceBound(model, width),
            self.domain,
            self._seed_of(len(self.history.trials)),
            num_raw=min(max(affordable, 512), 2048),
            extra=incumbents,
        )
        with torch.no_grad():
            mean, std = model.mean_and_std(x.unsqueeze(0))
        return x, mean[0], std[0]

    # --- the fold ---------------------------------------------------------------------------------

    def _absorb(self, event: Event) -> None:
        if isinstance(event, Asked):
            self._enter_newest()
            if self.pending_policy != "ignore":
                self._newest = event.trial
            return
        at_once = self._newest is not None and self._newest.id == event.id
        if at_once:
            self._newest = None
        else:
            self._enter_newest()
        has_row = not at_once and self.pending_policy != "ignore"
        match event:
            case Told(id, value):
                if self._timed_out(id):
                    self._late.append(id)
                elif has_row:
                    Y = _as_values(value, self._posterior)
                    self._posterior.set_targets([self._row_ids.index(id)], Y)
                else:
                    self._enter(self.history.trials[id], value)
            case Abandoned(id):
                if has_row:
                    self._posterior.remove(self._row_ids.index(id))
                    self._row_ids.remove(id)

    def _enter_newest(self) -> None:
        if self._newest is not None:
            self._enter(self._newest, self.minimum)
            self._newest = None

    def _enter(self, trial: Trial, value: float | None) -> None:
        _add_row(self._posterior, trial, value)
        self._row_ids.append(trial.id)

    def _timed_out(self, id: int) -> bool:
        if self.timeout is None:
            return False
        return len(self.history.trials) - id > self.timeout + 1

    def _evaluated_means(self) -> Tensor:
        posterior = self.posterior
        if isinstance(posterior, FinitePosterior):
            told = [self.history.trials[id].info["index"] for id in self.history.values]
            return posterior.mean[self._initial_data_rows + told]
        with torch.no_grad():
            return posterior.mean_and_std(self._evaluated()[0])[0]


def _add_row(posterior: KernelGP | FinitePosterior, trial: Trial, value: float | None) -> None:
    if isinstance(posterior, FinitePosterior):
        posterior.add_candidate(trial.info["index"], value)
    else:
        Y = None if value is None else _as_values(value, posterior)
        posterior.add(trial.x.unsqueeze(0), Y)


def _as_values(value: float, posterior: KernelGP | FinitePosterior) -> Tensor:
    return posterior.noise_variance.new_full((1,), value)


def _check_pending_options(
    pending: str, inflate: bool, minimum: float | None, timeout: int | None
) -> None:
    if pending not in ("ignore", "hallucinate", "censor"):
        raise ValueError(f'pending must be "ignore", "hallucinate" or "censor", got {pending!r}')
    if inflate and pending != "hallucinate":
        raise ValueError(f'inflate must be False unless pending is "hallucinate", got {pending!r}')
    if (minimum is None) == (pending == "censor"):
        raise ValueError(f'minimum must be given exactly when pending is "censor", got {minimum}')
    if minimum is not None and not math.isfinite(one_number(minimum, "minimum")):
        raise ValueError(f"minimum must be finite, got {minimum}")
    if timeout is not None and (pending != "censor" or whole_number(timeout, "timeout") < 0):
        raise ValueError(
            f'timeout must be a non-negative count, with pending "censor", got {timeout}'
        )

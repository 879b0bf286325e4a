"""The baselines that hyperparameter elimination is compared with: other ways to choose a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Unpack

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.models.kernel_variants import shrunk_lengthscale
from botorch_ext.strategies.adaptive.multi_model import MultiModelOptions, MultiModelStrategy
from botorch_ext.strategies.adaptive.prediction_tests import noise_scale
from botorch_ext.strategies.adaptive.predictions import Prediction
from botorch_ext.strategies.events import Asked, Event, Told, Trial
from botorch_ext.widths import (
    SelfNormalized,
    Width,
    check_delta,
    check_noise_std,
    check_rkhs_bound,
    require,
)


class MaximumLikelihood(MultiModelStrategy):
    """MLE-UCB: at each step the upper confidence bound of the model with the highest marginal
    likelihood of the told data; of equal ones the first. Source: Ziomek et al. 2024, section 7.

    Args:
        domain, models, width, options: See `MultiModelStrategy`.
    """

    def _contenders(self, posterior: CandidateModels | FiniteCandidates) -> list[int]:
        return [int(self._evidence(self._rows).argmax())]

    def _judge(self, trial: Trial, value: float) -> None:
        pass  # the likelihood has seen it


class ExpectedBound(MultiModelStrategy):
    """ExpectedUCB: the average of the upper confidence bounds under P(model | data), from a uniform
    prior; trials record the most probable model. Source: Ziomek et al. 2024, section 7.

    Args:
        domain, models, width, options: See `MultiModelStrategy`.
    """

    def _probabilities(self, posterior: CandidateModels | FiniteCandidates) -> Tensor:
        return self._evidence(self._rows).softmax(dim=0)

    def _judge(self, trial: Trial, value: float) -> None:
        pass  # the likelihood has seen it


class ShrinkingLengthscale(MultiModelStrategy):
    """A-GP-UCB: the lengthscale shrinks as lengthscale_0 / g(t), whatever is observed; the nearest
    candidate plays. Source: Berkenkamp et al. 2019, with candidates as in Ziomek et al. 2024.

    Args:
        domain, models, width, options: See `MultiModelStrategy`; the models are told apart by one
            lengthscale each.
        lengthscale_0: The first lengthscale.
        growth: g, of the step t.

    Raises:
        ValueError: What `MultiModelStrategy` raises, contexts, models without a lengthscale, or a
            lengthscale_0 or a growth that is not positive.
    """

    def __init__(
        self,
        domain: Domain,
        models: CandidateModels,
        width: Width | float | Sequence[Width | float],
        *,
        lengthscale_0: float,
        growth: Callable[[int], float],
        **options: Unpack[MultiModelOptions],
    ) -> None:
        _refuse_contexts(self, options)
        self.lengthscale_0 = checked_lengthscale_0(lengthscale_0)
        require_lengthscales(models)
        self.growth = growth
        shrunk_lengthscale(self.lengthscale_0, growth, 1)
        super().__init__(domain, models, width, **options)

    def _contenders(self, posterior: CandidateModels | FiniteCandidates) -> list[int]:
        target = shrunk_lengthscale(self.lengthscale_0, self.growth, self._next_step)
        return [int((require_lengthscales(posterior) - target).abs().argmin())]

    def _judge(self, trial: Trial, value: float) -> None:
        pass  # the schedule does not look at the data


class LengthscaleBalancing(MultiModelStrategy):
    """LB-GP-UCB: the lengthscale with the smallest suspected regret bound at one more play plays;
    one whose rewards are too low for its bound is eliminated.

    The suspected bound of n plays with lengthscale l is C sqrt(n g) (sqrt(g) + B) with g = l^-d
    ln(n)^(d+1), the growth of the information gain of the RBF kernel. Once all have played, u is
    eliminated when mean(y over S_u) + mean(w s over S_u) + sqrt(xi_t / |S_u|) is less than the
    largest mean(y over S_v) - sqrt(xi_t / |S_v|). Source: Ziomek et al. 2024, arXiv 2410.10384.

    Args:
        domain, models, width, options: See `MultiModelStrategy`; the models are told apart by one
            lengthscale each, and may be `CandidateModels.growing`.
        noise_std: R, the sub-Gaussian constant of the noise.
        delta: Failure probability.
        rkhs_bound: B in the suspected bound.
        constant: C in the suspected bound.
        standardize: Whether the models see observations minus their mean, over their standard
            deviation so far; ``width`` must then be `SelfNormalized`, whose noise_std is divided by
            it as well. The numbers of trials and of `best` are in the units of the observations
            all the same.

    Raises:
        ValueError: What `MultiModelStrategy` raises, contexts, models without a lengthscale, an
            impossible number, or models with data, another width or the "censor" policy where
            outputs are standardised.
    """

    def __init__(
        self,
        domain: Domain,
        models: CandidateModels,
        width: Width | float,
        *,
        noise_std: float,
        delta: float = 0.1,
        rkhs_bound: float = 1.0,
        constant: float = 1.0,
        standardize: bool = False,
        **options: Unpack[MultiModelOptions],
    ) -> None:
        _refuse_contexts(self, options)
        noise_std, delta = one_number(noise_std, "noise_std"), one_number(delta, "delta")
        check_rkhs_bound(rkhs_bound)
        check_noise_std(noise_std)
        check_delta(delta)
        require(0 < constant < math.inf, "constant", constant, "positive and finite")
        require_lengthscales(models)
        if standardize and models.num_observations:
            raise ValueError(
                "models must have no data where outputs are standardised: pass initial"
            )
        if standardize and not isinstance(width, SelfNormalized):
            raise ValueError(
                f"width must be SelfNormalized where outputs are standardised, got {width!r}"
            )
        if standardize and options.get("pending") == "censor":
            raise ValueError('pending must not be "censor" where outputs are standardised')
        self.rkhs_bound = rkhs_bound
        self.constant = constant
        self.standardize = standardize
        self.noise_std = noise_std
        self.delta = delta
        # Of each model: told plays, the sum of their observations and that of their half-widths.
        self._sums: dict[int, tuple[int, float, float]] = {}
        # How many models there were when each trial was asked.
        self._num_known: list[int] = []
        self._shift, self._scale = 0.0, 1.0
        super().__init__(domain, models, width, **options)
        if standardize:
            self._retarget([])

    def bands(self, X: Tensor, context: ContextLike | None = None) -> tuple[Tensor, Tensor]:
        mean, half_width = super().bands(X, context)
        return self._shift + self._scale * mean, self._scale * half_width

    def _contenders(self, posterior: CandidateModels | FiniteCandidates) -> list[int]:
        plays = [1] * len(self.names)
        for trial in self.history.trials[len(self._initial_points) :]:
            plays[trial.info["model"]] += 1
        n = torch.tensor([plays[id] for id in self.alive], dtype=torch.float64)
        scale = require_lengthscales(posterior).to(n)
        gain = scale**-self.domain.dim * n.log() ** (self.domain.dim + 1)
        suspected = self.constant * (n * gain).sqrt() * (gain.sqrt() + self.rkhs_bound)
        return [int(suspected.argmin())]

    def _current_width(self) -> Width | list[Width]:
        width = super()._current_width()
        if self.standardize and isinstance(width, SelfNormalized):
            return replace(width, noise_std=width.noise_std / self._scale)
        return width

    def _judge(self, trial: Trial, value: float) -> None:
        played = Prediction.from_record(trial.info)
        count, total, half_widths = self._sums.get(played.model, (0, 0.0, 0.0))
        self._sums[played.model] = count + 1, total + value, half_widths + played.half_width
        # A model that joins with the next question has no say before it.
        there = [id for id in self.alive if id < self._num_known[trial.id] or id in self._sums]
        if not all(id in self._sums for id in there):
            return
        t = self._rows.num_data
        num_models = max(self._num_known[trial.id], 1 + max(self._sums))
        xi = noise_scale(self.noise_std, self.delta, t, num_models)
        upper, lower = {}, {}
        for id in there:
            count, total, half_widths = self._sums[id]
            noise = math.sqrt(xi / count)
            upper[id] = (total + half_widths) / count + noise
            lower[id] = total / count - noise
        best = max(lower.values())
        for id, value_at_most in upper.items():
            if value_at_most < best:
                self._reject(id, t)

    def _absorb(self, event: Event) -> None:
        known = len(self.names)
        super()._absorb(event)
        if isinstance(event, Asked):
            self._num_known.append(known)
        if self.standardize and isinstance(event, Told):
            self._retarget([event])

    def _retarget(self, news: list[Told]) -> None:
        """Standardises the targets of all data again."""
        told = self.history.values | {event.id: event.value for event in news}
        before = [] if self.initial is None else self.initial[1].tolist()
        rows, values = [], []
        for row, id in enumerate(self._rows.ids):
            if id is None or id in told:
                rows.append(row)
                values.append(before[row] if id is None else told[id])
        if not rows:
            return
        Y = self._rows.posterior.noise_variance.new_tensor(values)
        self._shift = float(Y.mean())
        spread = float(Y.std()) if len(values) > 1 else 0.0
        self._scale = spread if spread > 0 else 1.0
        self._rows.posterior.set_targets(rows, (Y - self._shift) / self._scale)

    def _predicted(
        self, position: int, at: int | Tensor, widths: Tensor, offsets: Tensor
    ) -> Prediction:
        seen = super()._predicted(position, at, widths, offsets)
        return Prediction(
            seen.model,
            self._shift + self._scale * seen.mean,
            self._scale * seen.std,
            seen.width,
            self._scale * seen.offset,
        )

    def _evaluated_means(self) -> Tensor:
        return self._shift + self._scale * super()._evaluated_means()


def _refuse_contexts(strategy: MultiModelStrategy, options: MultiModelOptions) -> None:
    if options.get("context_domain") is not None:
        who = type(strategy).__name__
        raise ValueError(f"context_domain must be None: the bounds of {who} know no contexts")


def checked_lengthscale_0(value: float) -> float:
    """The first lengthscale, or a ValueError where it is not positive and finite."""
    value = one_number(value, "lengthscale_0")
    require(0 < value < math.inf, "lengthscale_0", value, "positive and finite")
    return value


def require_lengthscales(models: Any) -> Tensor:
    """The lengthscales of models, or a ValueError where they are not told apart by one."""
    scales = models.lengthscales_of
    if scales is None:
        raise ValueError(
            "models must be told apart by one lengthscale each, such as "
            "CandidateModels.lengthscales or CandidateModels.growing make them"
        )
    return scales

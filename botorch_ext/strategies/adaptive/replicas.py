"""Many runs of a strategy that plays confidence bounds, moved forward together."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.models.replicated import PriorCovariances, ReplicatedPosterior
from botorch_ext.search.intersected import HalfWidths, intersected
from botorch_ext.search.models import best_pair
from botorch_ext.strategies.adaptive.judges import Judge
from botorch_ext.strategies.adaptive.pending import PendingPolicy
from botorch_ext.strategies.adaptive.prediction_tests import RunningTests, noise_bound, noise_scale
from botorch_ext.strategies.replicas import Replicas, Results, Runs, widths_of
from botorch_ext.widths.base import Width
from botorch_ext.widths.composed import ladder_of, pointwise_misspecification


class BoundsReplicas(Replicas):
    """Runs of a `BoundsStrategy` on a finite set.

    Args:
        runs: The runs.
        models: The m models on the set, without data.
        width: The width of all models, or one for each.
        policy: How pending trials count.
        judge: The judge, without results.
    """

    def __init__(
        self,
        runs: Runs,
        models: FiniteCandidates,
        width: Width | Sequence[Width],
        policy: PendingPolicy,
        judge: Judge,
    ) -> None:
        super().__init__(runs)
        self.width, self.policy, self.judge = width, policy, judge
        widths = [width] if isinstance(width, Width) else list(width)
        ladder = ladder_of(widths[0])
        ridges = (1.0,) if ladder is None or ladder.ridges is None else ladder.ridges
        self._num_models, self._num_ridges = len(models), len(ridges)
        enlargements = [pointwise_misspecification(own) for own in widths]
        keeps_weights = any(enlargements)
        prior, at_ridges = PriorCovariances(models), models.at_ridges(ridges)
        rows, values = runs.initial
        num_rows = rows.shape[1] + runs.horizon
        told = ReplicatedPosterior(at_ridges, prior, runs.num_runs, num_rows, keeps_weights)
        is_pending = runs.has_delays and policy.pending == "hallucinate"
        asked = told
        if is_pending:
            asked = ReplicatedPosterior(at_ridges, prior, runs.num_runs, num_rows)
        # The posteriors with the results alone, and with the pending trials.
        self._told, self._asked = told, asked
        for posterior in {told, asked}:
            posterior.add(rows, values)
        tests = judge.tests_of_runs()
        self._tests = None if tests is None else _Tests(tests, runs, self._num_models, told.mean)
        self._own_ridge, self._models = ridges.index(1.0), models
        # The model that chose each trial, -1 for none.
        self._chosen = torch.full((runs.num_runs, runs.horizon), -1, device=told.mean.device)
        # eps of each member; None if no width is enlarged at each point.
        self._eps: Tensor | None = None
        if keeps_weights:
            eps = told.mean.new_tensor(enlargements).expand(len(models))
            self._eps = eps.repeat_interleave(len(ridges)).repeat(runs.num_runs)

    @property
    def num_bytes(self) -> int:
        return sum(posterior.num_bytes for posterior in {self._told, self._asked})

    def _decide(self, step: int) -> Tensor:
        asked, told, R = self._asked, self._told, self.runs.num_runs
        half = self._half()
        upper = told.mean + half
        if self._num_ridges > 1:
            upper = intersected(upper, self._num_ridges, 1)
        contenders, weights = self._advice(step)
        row, model = best_pair(upper.view(R, self._num_models, -1), contenders, weights)
        if model is None and self._tests is not None:
            model = torch.zeros_like(row)
        if model is None:
            return row
        self._chosen[:, step : step + 1] = model
        if self._tests is not None:
            member = torch.arange(R, device=row.device)[:, None] * self._num_models + model
            mean = told.mean[member, row]
            if told is asked:
                half_width = half[member, row]
            else:
                widths, offsets = widths_of(told, self.width)
                half_width = widths[member] * told.variance[member, row].clamp_min(0).sqrt()
                half_width = half_width + offsets[member]
            self._tests.predict(step, mean, half_width)
        return row

    def _advice(self, step: int) -> tuple[Tensor | None, Tensor | None]:
        """A mask of the models that may play, ``R x m``, and the weights of models, ``R x m``; None
        for all models and for no weights."""
        if self._tests is not None:
            return self._tests.alive, None
        if not self.judge.advises:
            return None, None
        # What judges that are taken here read of a `Standing`, for all runs.
        standing: Any = SimpleNamespace(
            models=self._models,
            names=self._models.names,
            alive=range(self._num_models),
            next_step=self.runs.initial[0].shape[1] + step + 1,
            evidence=self._evidence,
        )
        contenders = self.judge.contenders(standing)
        if isinstance(contenders, list):
            like = self._told.noise_variance[None, : self._num_models]
            mask = torch.zeros_like(like, dtype=torch.bool)
            for position in contenders:
                mask[:, position] = True
            contenders = mask
        return contenders, self.judge.weights(standing)

    def _evidence(self) -> Tensor:
        shape = self.runs.num_runs, self._num_models, self._num_ridges
        return self._told.log_marginal_likelihood().view(shape)[..., self._own_ridge]

    def tell(self, results: Results) -> None:
        minimum, timeout = self.policy.minimum, self.policy.timeout
        if timeout is not None and not results.at_once:
            results = results.since(results.step - timeout - 1)
        index, Y, added = results.index, results.values, results.added
        if results.at_once and self._told is self._asked:
            self._told.add(index, Y)
            self.newest = None
        elif minimum is not None:
            self._catch_up()
            change = Y - minimum
            self._told.move_mean(index, change if added is None else change * added.mask)
        else:
            self._catch_up()
            self._told.add(index, Y, added)
        if self._tests is not None:
            self._tests.learn(results, self._chosen)

    def _catch_up(self) -> None:
        if self.newest is None:
            return
        if self.policy.minimum is not None:
            values = torch.full_like(self.newest, self.policy.minimum, dtype=self._asked.mean.dtype)
            self._asked.add(self.newest, values)
        elif self._asked is not self._told:
            self._asked.add(self.newest)
        super()._catch_up()

    def record(self) -> dict[str, Tensor]:
        of_tests = {} if self._tests is None else self._tests.record()
        return of_tests | ({"models": self._chosen} if self._num_models > 1 else {})

    # --- widths -----------------------------------------------------------------------------------

    def _half(self) -> Tensor:
        """The half-widths at all candidates, ``M x N``."""
        asked, told = self._asked, self._told
        widths, offsets = widths_of(asked, self.width)
        inflation = 1.0
        if self.policy.inflate:
            inflation = (asked.information_gain() - told.information_gain()).exp()
            widths = widths * inflation
        if self._eps is None:
            return HalfWidths(widths, offsets).of(asked.std)
        caps = None
        if asked is not told:
            t = asked.of_members(asked.counts_on_device + 1)
            caps = (t / asked.noise_variance).sqrt() * inflation
        return HalfWidths(widths, offsets, self._eps, caps).of(asked.std, told.weight_norms())


class _Tests:
    """The running sums of `RunningTests` in R runs.

    Args:
        tests: The tests of one run.
        runs: The runs.
        num_models: m, the number of models.
        like: A tensor with the dtype and the device of the models.
    """

    def __init__(self, tests: RunningTests, runs: Runs, num_models: int, like: Tensor) -> None:
        R, T, num_initial = runs.num_runs, runs.horizon, runs.initial[0].shape[1]
        self._misspecification = tests.misspecification
        #: A mask of the models that are not eliminated, ``R x m``.
        self.alive = torch.ones(R, num_models, dtype=torch.bool, device=like.device)
        self._error, self._count, self._width_bound = like.new_zeros(3, R, num_models).unbind()
        steps = range(num_initial + T + 1)
        number = tests.noise_std, tests.delta
        self._xi = like.new_tensor([noise_scale(*number, max(t, 1), num_models) for t in steps])
        self._num_told = torch.full_like(self.alive[:, :1], num_initial, dtype=torch.long)
        # The mean and the half-width of the model that chose each trial.
        self._mean, self._half = like.new_zeros(2, R, T).unbind()
        # The numbers of observations at which the models were refuted while others stood, and in
        # the last column the first one at which the model that stays was.
        self._never = num_initial + T + 1
        self._refuted_at = torch.full((R, num_models + 1), self._never, device=like.device)

    def predict(self, step: int, mean: Tensor, half: Tensor) -> None:
        """Notes what the models predict that chose a trial, ``R x 1`` each."""
        at = slice(step, step + 1)
        self._mean[:, at], self._half[:, at] = mean, half

    def learn(self, results: Results, chosen: Tensor) -> None:
        """Eliminates models by results, one after the other.

        Args:
            results: The results.
            chosen: The model that chose each trial, ``R x T``, -1 for none.
        """
        for j in range(results.index.shape[1]):
            at = slice(j, j + 1)
            trial, added = results.trials[:, at], results.added
            is_told = (
                torch.ones_like(trial, dtype=torch.bool) if added is None else added.mask[:, at]
            )
            self._num_told = self._num_told + is_told
            model = chosen.gather(1, trial)
            counts = is_told & (model >= 0)
            model = model.clamp_min(0)
            counts = counts & self.alive.gather(1, model)
            half = self._half.gather(1, trial) + self._misspecification
            new = results.values[:, at] - self._mean.gather(1, trial), torch.ones_like(half), half
            sums = []
            for total, one in zip((self._error, self._count, self._width_bound), new, strict=True):
                total.scatter_add_(1, model, one * counts)
                sums.append(total.gather(1, model))
            error, count, width_bound = sums
            bound = noise_bound(self._xi[self._num_told], count) + width_bound
            fails = counts & (bound < error.abs())
            is_last = self.alive.sum(dim=1, keepdim=True) == 1
            place = torch.where(is_last, self.alive.shape[1], model)
            now = torch.where(fails, self._num_told, self._never)
            self._refuted_at.scatter_reduce_(1, place, now, "amin")
            self.alive = self._refuted_at[:, :-1] == self._never

    def record(self) -> dict[str, Tensor]:
        """As `Replicas.record`."""
        at = self._refuted_at.masked_fill(self._refuted_at == self._never, -1)
        return {"eliminated": at[:, :-1], "all_rejected_at": at[:, -1]}

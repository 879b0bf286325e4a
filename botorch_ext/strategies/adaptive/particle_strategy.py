"""The strategy with GPs whose hyperparameters are particles, that is, posterior samples."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.checks import flag
from botorch_ext.domains import Box, Domain, FiniteSet, host
from botorch_ext.domains.chunks import in_chunks
from botorch_ext.domains.contexts import ContextLike, ContextSpace, with_context
from botorch_ext.domains.distances import squared_distances
from botorch_ext.domains.points import checked_like
from botorch_ext.domains.ranks import first_highest, highest_first
from botorch_ext.exceptions import HorizonReached, NoObservationsError
from botorch_ext.hyperparameters.density import RowNoise, split
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.hyperparameters.particles import Cloud, Particles
from botorch_ext.limits import LEAST_FEASIBILITY
from botorch_ext.records import Finite, NonNegative
from botorch_ext.search.box import maximize_on_box
from botorch_ext.search.objectives import Objective, evaluate
from botorch_ext.search.particles import AverageMean
from botorch_ext.search.screening import near_points
from botorch_ext.search.trust_region import MANY_DIMENSIONS
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.particle_models import (
    ParticleData,
    ParticleModels,
    numbers_of,
    recorded,
)
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Event, Trial
from botorch_ext.strategies.initial_checks import InitialData

# The number of screened points near the best so far, and their distances in sides of the box.
_NUM_NEAR, _NEAR = 256, (0.02, 0.05, 0.1, 0.2)
_NUM_BEST = 5
# With many dimensions, or more observations than this, a search is brief: with fewer screened
# points, fewer ascents and another tolerance. Half of the points near the best differ from it in
# about ``_NUM_COLUMNS`` coordinates.
_MANY_OBSERVATIONS = 100
_BRIEF, _BRIEF_TOLERANCE, _NUM_COLUMNS = (128, 10), 1e-6, 10
# The largest number of candidates that all models evaluate; of more candidates, those that a few
# models rank highest.
_MOST_POINTS, _FEW_MODELS = 4096, 4
_TOLERANCE = 1e-9
# If the objective is deterministic: the noise variance, in variances of the observations; the
# squared distance, in sides of the box, within which two points are one; and the number of points
# one of which replaces a first point that was evaluated.
_JITTER, _ONE_POINT, _NUM_OTHERS = 1e-8, 1e-12, 256
# The share of particles that must agree that the noise is small.
_AGREEMENT = 0.9


@dataclass(frozen=True)
class RecordedCloud:
    """The record of particles.

    Args:
        parameters: The parameters of each particle.
        values: Their log posterior densities.
        bend: The strength of the transform of the observations.
    """

    parameters: tuple[tuple[Finite, ...], ...]
    values: tuple[Finite, ...]
    bend: NonNegative = 0.0


@dataclass(frozen=True)
class PlayedParticles:
    """The record of a trial that a `ParticleStrategy` chose.

    Args:
        mean: The posterior mean at the point.
        std: The posterior standard deviation at the point.
        particles: The particles, if they were updated for the trial.
    """

    mean: Finite
    std: NonNegative
    particles: RecordedCloud | None = None


class ParticleStrategy(Strategy):
    """Plays GPs whose hyperparameters are particles: samples of their posterior, which are updated
    when data came.

    ``info`` of a trial that the models chose has numbers of its own for each subclass; on a finite
    set the row as ``index``; and, if the particles were updated before the trial, ``particles``,
    from which a replay takes them:

    - ``parameters``: for each particle the log lengthscales in sides of the domain, the log noise
      variance in variances of the (transformed) observations, and the log odds of smoothness;
    - ``values``: the log posterior density of each particle;
    - ``bend``: the strength of the transform that compresses low observations, if it is used.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, or a `FiniteSet`.
        particles: The settings of the particles. None: `Particles()`.
        seed: The seed of the particles, of the search and of the first points.
        initial: Observations from before the study, as for `Strategy`.
        num_initial: The number of Sobol points that are asked first. None: as many as it takes for
            8 results, with initial and attached ones and failed trials counted.
        context_domain: The contexts, as for `Strategy`. None: no contexts.
        minimize: As for `Strategy`.
        deterministic: Whether observations have no noise; see `integrated_ei`.

    Raises:
        ValueError: If `Strategy` raises it.
    """

    record = PlayedParticles
    takes_actions = True
    takes_spaces = True
    least_initial = 8
    refuses_std = None
    refuses_wider = None
    #: Whether low observations are compressed by a transform if the data make it likely.
    bends = False

    def __init__(
        self,
        domain: Domain,
        particles: Particles | None = None,
        *,
        seed: int = 0,
        initial: InitialData | None = None,
        num_initial: int | None = None,
        context_domain: Domain | int | ContextSpace | None = None,
        minimize: bool | None = None,
        deterministic: bool = False,
    ) -> None:
        super().__init__(domain, seed, initial, num_initial, context_domain, minimize)
        self.particles = Particles() if particles is None else particles
        if not isinstance(self.particles, Particles):
            raise ValueError(f"particles must be Particles or None, got {particles!r}")
        self.deterministic = flag(deterministic, "deterministic")
        if deterministic:
            self.refuses_std = "a deterministic objective has no noise"
            self._require_no_std()
            prior = replace(self.particles.prior, noise=(_JITTER, _JITTER))
            self.particles = replace(self.particles, prior=prior)
        Y = self.domain.like.new_zeros(0) if self._initial is None else self._initial[1]
        self._initial_values = Y.to("cpu", torch.float64)
        # With contexts the best observation is not the best of each context.
        self._models = ParticleModels(self.particles, self.bends and self.context_space is None)

    # --- what is known ----------------------------------------------------------------------------

    @property
    def posterior(self) -> Ensemble:
        """The models of all particles given the told data, which the next ask uses. A copy: what is
        done to it changes nothing here."""
        return self._current()[1].fork()

    def evaluated_means(self) -> Tensor:
        X, Y = self._maximised()
        return Y if self.deterministic else self.means_at(X)

    def means_at(self, X: Tensor) -> Tensor:
        return self._current()[1].mean(checked_like(X, self.domain.like, "X"))

    @torch.no_grad()
    def recommend(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The point to settle for, and its posterior mean, averaged over the particles.

        It is the point of the domain with the best posterior mean, which need not have been
        evaluated, and has the digits that can be set. Without contexts it is the evaluated point
        with the best value instead if ``deterministic`` is True, or if nine in ten particles agree
        that the noise of this value is small: its standard deviation is less than that of f at the
        point with the best posterior mean, so that the value of the best point seen is known
        better.

        Args:
            context: The ``d_z`` numbers of the context, if the strategy takes contexts.

        Returns:
            The ``d``-dim point and its posterior mean, in units of the observations.

        Raises:
            NoObservationsError: If no point was evaluated yet.
            ValueError: If `ask` would refuse the context.
        """
        checked = self.checked_context(context)
        if not self._num_data:
            raise NoObservationsError("recommend needs at least one evaluated point, got none")
        ensemble = self._current()[1]
        x = self._most_promising(ensemble, checked)
        X, Y = self._maximised()
        eligible = self._are_eligible(len(X))
        if checked is None and bool(eligible.any()):
            _, std = ensemble.model.mean_and_std(ensemble.inputs.features(x.unsqueeze(0)))
            best = first_highest(Y.masked_fill(~eligible, -math.inf))
            is_small = ensemble.model.factor.noise[:, best] < std.square()
            agree = float(is_small.double().mean()) >= _AGREEMENT
            (seen,) = X[best]
            feasibility = self._feasibility(seen, None)
            is_likely = feasibility is None or feasibility >= LEAST_FEASIBILITY
            if self.deterministic or (agree and is_likely):
                x = seen
        mean_there = ensemble.mean(with_context(x, checked).unsqueeze(0))
        return x, self.history.sign * float(mean_there)

    def _most_promising(self, known: Ensemble, context: Tensor | None) -> Tensor:
        """The point of the domain with the best posterior mean."""
        return self._best_of(self._mean_objective(known, context), known, context)

    def _best_of(
        self, objective: Callable[[Ensemble], Objective], known: Ensemble, context: Tensor | None
    ) -> Tensor:
        """The point of the domain where an objective of models is largest."""
        points = self.domain.points if isinstance(self.domain, FiniteSet) else None
        seed = self._seed_of(len(self.history.trials))
        return self._highest(objective, points, known, context, seed)[0]

    def _mean_objective(
        self, known: Ensemble, context: Tensor | None
    ) -> Callable[[Ensemble], Objective]:
        """What `recommend` maximises, for all or some of the ``known`` models."""
        return lambda of: AverageMean(of.model, of.inputs.in_context(context))

    def _mixture(self, context: Tensor | None) -> GPMixture:
        if not self._num_data:
            raise NoObservationsError("predictions need at least one evaluated point, got none")
        ensemble = self._current(context)[1]
        return GPMixture.of(
            [ensemble.model],
            constants=ensemble.constants,
            features=ensemble.inputs.features,
            restored=ensemble.outcomes.restored,
        )

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `Strategy.report` and

            - ``num_particles``: the number of particles;
            - ``lengthscales``: the three quartiles over the particles, each a list with a
              lengthscale for each column, in sides of the domain;
            - ``noise_std``: the quartiles of the noise standard deviation, in units of the
              observations;
            - ``smoothness``: the quartiles of the share of the RBF kernel beside the Matern 5/2
              kernel, in (0, 1).
        """
        summary = super().report()
        cloud, ensemble = self._current()
        lengthscales, noise, odds = split(cloud.parameters)
        lengthscales, noise_std = lengthscales.exp(), (noise / 2).exp() * ensemble.outcomes.scale
        quartiles = lengthscales.new_tensor([0.25, 0.5, 0.75])
        return summary | {
            "num_particles": len(noise_std),
            "lengthscales": lengthscales.quantile(quartiles, dim=0).tolist(),
            "noise_std": noise_std.quantile(quartiles).tolist(),
            "smoothness": odds.sigmoid().quantile(quartiles).tolist(),
        }

    # --- decisions --------------------------------------------------------------------------------

    @abstractmethod
    def _choose(
        self, choices: Choices, cloud: Cloud, known: Ensemble, pending: Tensor, seed: int
    ) -> tuple[Tensor, int | None, dict[str, Tensor]]:
        """Chooses the next point.

        Args:
            choices: The actions to choose from, and the context.
            cloud: The particles given the told data.
            known: The models of these particles.
            pending: The pending joint rows, ``n x (d + d_z)``.
            seed: The seed of this step.

        Returns:
            The point; its row among the candidates, or None in a box; and the numbers for ``info``
            by name, tensors of shape ``(1,)``, which become whole numbers unless their dtype is
            floating.
        """

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        seed = self._seed_of(len(self.history.trials))
        cloud, known = self._current(choices.context)
        pending = self._pending_rows(known.joint)
        x, row, own = self._choose(choices, cloud, known, pending, seed)
        info: dict[str, Any] = {}
        if row is not None and choices.points(self.domain) is not None:
            info |= choices.places(row)
        fits = self._fits(choices.context)
        is_new = fits[0][1] is not self._models.cloud
        numbers = [number.double() for number in own.values()]
        numbers += [numbers_of(found) for _, found in fits if is_new]
        read = iter(torch.cat(numbers).tolist())  # the host waits once
        for (name, number), value in zip(own.items(), read, strict=False):
            info[name] = value if number.is_floating_point() else int(value)
        if is_new:
            info["particles"], *others = [recorded(found, read) for _, found in fits]
            info |= {"outcome_particles": others} if others else {}
            for models, found in fits:
                models.adopt(found, self._num_data)
        return x, info

    def _fits(self, context: Tensor | None) -> list[tuple[ParticleModels, Cloud]]:
        """The models and the particles of each quantity, given the told data: first the value."""
        return [(self._models, self._current(context)[0])]

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        points = self._candidates(choices)
        if not self.deterministic or points is None:
            return
        left = int((~self._taken(choices.context)(points)).sum())
        if num_trials > left:
            raise HorizonReached(
                f"num_trials must be at most {left}, since a deterministic objective is asked at "
                f"each point once and {left} are left, got {num_trials}",
                len(self.history.trials) + left,
            )

    def next_trial(self, choices: Choices) -> Trial:
        trial = super().next_trial(choices)
        if not self.deterministic:
            return trial
        are_taken = self._taken(choices.context)
        if not bool(are_taken(trial.x.unsqueeze(0))):
            return trial
        # A first point may be that of a result from elsewhere, or be rounded to an earlier one.
        seed, points = self._seed_of(trial.id), self._candidates(choices)
        if points is None:
            box = cast(Box, self.domain)
            points = box.settable(box.sample(_NUM_OTHERS, seed))
        rows = (~are_taken(points)).nonzero().squeeze(-1)
        if "initial" not in trial.info or not len(rows):
            raise HorizonReached(
                "a deterministic objective is asked at each point once, and no other point was "
                "found",
                len(self.history.trials),
            )
        generator = torch.Generator().manual_seed(seed)
        row = int(rows[int(host.randint(len(rows), (), generator=generator))])
        info = {} if choices.points(self.domain) is None else choices.places(row)
        return replace(trial, x=points[row].clone(), info=trial.info | info)

    def _taken(self, context: Tensor | None) -> Callable[[Tensor], Tensor]:
        """A function from ``n x d`` points to a mask of those that are evaluated, pending or failed
        in the context."""
        joint, _ = self._maximised()
        others = self._rows_of(self.history.unanswered, joint)
        return self._among(torch.cat([joint, others]) if len(joint) else others, context)

    def _among(self, joint: Tensor, context: Tensor | None) -> Callable[[Tensor], Tensor]:
        """A function from ``n x d`` points to a mask of those that are among joint rows in the
        context; up to rounding in a box."""
        if context is not None and len(joint):
            joint = joint[(joint[:, self.domain.dim :] == context).all(dim=-1)]
        box = self.domain if isinstance(self.domain, Box) else None
        inputs = Inputs.of(self.domain, None, joint)
        taken = inputs.features(joint[:, : self.domain.dim])

        def are_taken(X: Tensor) -> Tensor:
            chunks = in_chunks(X if box is None else box.settable(X), len(taken))
            squares = [squared_distances(inputs.features(chunk), taken) for chunk in chunks]
            reach = 0.0 if box is None else _ONE_POINT
            return torch.cat([(own <= reach).any(dim=-1) for own in squares])

        return are_taken

    def _candidates(self, choices: Choices) -> Tensor | None:
        """The points to choose from, if they can be listed; else None."""
        points = choices.points(self.domain)
        return self.domain.listed if points is None and isinstance(self.domain, Box) else points

    def _highest(
        self,
        objective: Callable[[Ensemble], Any],
        points: Tensor | None,
        ensemble: Ensemble,
        context: Tensor | None,
        seed: int,
        region: Box | None = None,
    ) -> tuple[Tensor, int | None, Tensor]:
        """The best of ``n x d`` points, its row and its value; without ``points`` the best point of
        the box or of ``region``, with the digits that can be set, None and its value."""
        if points is None:
            best, value = self._highest_in_box(objective, ensemble, context, seed, region)
            x = cast(Box, self.domain).settable(best)
            if x is not best:
                (value,) = evaluate(objective(ensemble), x.unsqueeze(0))
            return x, None, value
        rows = None
        if len(points) > _MOST_POINTS:
            some = evaluate(objective(ensemble.thinned(_FEW_MODELS)), points)
            rows = highest_first(some, _MOST_POINTS)
        values = evaluate(objective(ensemble), points if rows is None else points[rows])
        top = first_highest(values)[0]
        row = int(top if rows is None else rows[top])
        return points[row].clone(), row, values[top]

    def _highest_in_box(
        self,
        objective: Callable[[Ensemble], Any],
        ensemble: Ensemble,
        context: Tensor | None,
        seed: int,
        region: Box | None,
    ) -> tuple[Tensor, Tensor]:
        """The best point of the box, or of ``region``, and its value."""
        box: Any = self.domain if region is None else region  # a Box, since it has no points
        own, is_large = objective(ensemble), self._is_large(ensemble)
        best = actions = ensemble.joint[:, : box.dim]
        if len(actions):
            if is_large and context is None:
                means = ensemble.mean_at_rows()
            else:
                means = ensemble.mean(with_context(actions, context))
            if self.history.outside or self.limits:  # the highest means may be outside of `box`
                means = means.masked_fill(~box.contains(actions), -math.inf)
            best = actions[highest_first(means, _NUM_BEST)]
            if region is not None or self.history.outside:
                best = best[box.contains(best)]
        if not is_large:
            if len(best):
                best = torch.cat([best, near_points(best, box, _NUM_NEAR, seed, _NEAR)])
            return maximize_on_box(own, box, seed, *self._budget, best, _TOLERANCE, again=True)
        near = [
            near_points(best, box, _NUM_NEAR, seed + i, _NEAR, num_columns)
            for i, num_columns in enumerate((math.inf, _NUM_COLUMNS))
        ]
        extra = torch.cat([best, *near])
        return maximize_on_box(own, box, seed, *_BRIEF, extra, _BRIEF_TOLERANCE, brief=True)

    def _is_large(self, ensemble: Ensemble) -> bool:
        """Whether there are so many dimensions or observations that a search must be brief."""
        n = ensemble.num_observations
        return n > _MANY_OBSERVATIONS or (n > 0 and self.domain.dim > MANY_DIMENSIONS)

    @property
    def _budget(self) -> tuple[int, int]:
        """The numbers of screened points of a box, and of ascents; in more dimensions the averaged
        improvement has more local maxima."""
        return 512, 20 if self.domain.dim <= 4 else 40

    def _pending_rows(self, like: Tensor) -> Tensor:
        """The joint rows of trials that count as pending, ``n x (d + d_z)``: failed ones too."""
        return self._rows_of(self.history.unanswered, like)

    def _rows_of(self, ids: Iterable[int], like: Tensor) -> Tensor:
        """The joint rows of some trials, ``n x (d + d_z)``."""
        rows = [self.history.trials[id].point for id in ids]
        return torch.stack(rows) if rows else like[:0]

    def _current(self, context: Tensor | None = None) -> tuple[Cloud, Ensemble]:
        """The particles of the value given the data so far, and their models. The first context may
        set the number of columns."""
        told = host.tensor(list(self.history.values.values()), dtype=torch.float64)

        def data() -> tuple[Tensor, RowNoise | None]:
            return torch.cat([self._initial_values, told]), self._row_noise()

        return self._given(self._models, data, context)

    def _given(
        self,
        models: ParticleModels,
        measured: Callable[[], tuple[Tensor, RowNoise | None]],
        context: Tensor | None = None,
    ) -> tuple[Cloud, Ensemble]:
        """The particles of a quantity given its measured values with their noise, and their
        models."""
        contexts = self._context_dim if context is None else len(context)
        columns = self.domain.dim + (1 if contexts is None else contexts)  # 1 until one is seen

        def data() -> ParticleData:
            joint, _ = self._maximised()
            if not self._num_data:  # without rows the number of columns is not known
                joint = joint.new_zeros(0, columns)
            inputs = Inputs.of(self.domain, self.context_space, joint)
            return ParticleData(inputs, joint, *measured())

        step = len(self.history.trials)
        return models.current(self._num_data, step, columns, data, self._seed_of(step))

    def _row_noise(self) -> RowNoise | None:
        """The noise of all observations, on the CPU; None if they are equally noisy."""
        given, history = self._initial_std, self.history
        if given is None and not history.stds and not history.repeats:
            return None
        before = [None] * len(self._initial_values) if given is None else given.tolist()
        stds = [*before, *map(history.stds.get, history.values)]
        repeats = [(0.0,)] * len(before)
        repeats += [history.repeats.get(id, (value,)) for id, value in history.values.items()]
        numbers = [
            (1 / len(own) if std is None else 0.0, 0.0 if std is None else std**2, _scatter(own))
            for std, own in zip(stds, repeats, strict=True)
        ]
        return RowNoise(*host.tensor(numbers, dtype=torch.float64).unbind(dim=1))

    @property
    def _num_data(self) -> int:
        return len(self._initial_values) + len(self.history.values)

    # --- the next state ---------------------------------------------------------------------------

    def _recall(self, trial: Trial) -> PlayedParticles:
        played, name = super()._recall(trial), f"particles in the info of trial {trial.id}"
        if played.particles is not None:
            self._models.adopt(self._cloud_of(played.particles, trial, name), self._num_data)
        elif self._models.cloud is None:
            raise ValueError(f"{name} must be there for the first trial")
        return played

    def _cloud_of(self, record: RecordedCloud, trial: Trial, name: str) -> Cloud:
        """The particles of a record; raises a ValueError if their number is wrong."""
        num, width = self.particles.number(self._num_data), len(trial.point) + 2
        if self._is_corrected:  # results that were there may be withdrawn
            num = len(record.values)
        for key, shape in (("parameters", (num, width)), ("values", (num,))):
            rows = getattr(record, key)
            found = {(len(rows), len(row)) if len(shape) > 1 else (len(rows),) for row in rows}
            if found != {shape}:
                raise ValueError(f"{key} of the {name} must have shape {shape}")
        parameters, values = (
            torch.tensor(own, dtype=torch.float64, device=self.domain.device)
            for own in (record.parameters, record.values)
        )
        return Cloud(parameters, values, record.bend)

    def _forget_fits(self, id: int) -> None:
        self._models.forget()

    def _absorb(self, event: Event) -> None:
        """All that an event changes follows from the history."""


def _scatter(repeats: Sequence[float]) -> float:
    """The sum of the squared deviations of repeats from their average."""
    average = fmean(repeats)
    return sum((value - average) ** 2 for value in repeats)

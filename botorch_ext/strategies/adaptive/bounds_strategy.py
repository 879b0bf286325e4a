"""The strategy that plays confidence bounds, of one model or of several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypedDict, cast

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import ContextLike, ContextSpace, with_context
from botorch_ext.domains.ranks import first_highest
from botorch_ext.exceptions import (
    AllModelsRejectedWarning,
    EnlargementWarning,
    LengthscaleWarning,
    NoObservationsError,
    PriorScaleWarning,
)
from botorch_ext.hyperparameters.fitted import Fitted, Hyperparameters
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.norm_bounds import gram_and_residuals
from botorch_ext.records import in_sign, plain
from botorch_ext.state import Log, parts_of
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.bounds import Bounds, Models, interval_of
from botorch_ext.strategies.adaptive.judges import Judge
from botorch_ext.strategies.adaptive.pending import Pending, PendingPolicy, TrialRows
from botorch_ext.strategies.adaptive.predictions import Interval, Play, Played
from botorch_ext.strategies.adaptive.refits import Refits, on_domain
from botorch_ext.strategies.adaptive.replicas import BoundsReplicas
from botorch_ext.strategies.adaptive.searches import Highest, Search, Turn
from botorch_ext.strategies.answers.mixture import GPMixture, in_same_units
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Asked, Attached, Event, Told, Trial
from botorch_ext.strategies.initial_checks import InitialData, probes_of
from botorch_ext.strategies.prior_warnings import LOOKS, odd_lengthscales, odd_scale
from botorch_ext.strategies.refutation import Alarm
from botorch_ext.strategies.replicas import NotReplicatedError, Replicas, Runs
from botorch_ext.widths import Width, as_tensor_like
from botorch_ext.widths.base import SEVERAL_TIMES, ModelNumbers, as_widths
from botorch_ext.widths.composed import (
    ladder_of,
    noise_std_of,
    pointwise_misspecification,
    require_plain,
    share_of_enlargement,
)
from botorch_ext.widths.tight import Dual, Ladder
from botorch_ext.widths.told_data import ToldData

# The number of last points that an enlargement at each point must dominate for a warning.
NUM_LATEST = 16


class PendingTrials(TypedDict, total=False):
    """How pending trials count."""

    pending: Pending
    inflate: bool
    minimum: float | None
    timeout: int | None


class FirstPointOptions(TypedDict, total=False):
    """What a study begins with."""

    seed: int
    initial: InitialData | None
    num_initial: int
    minimize: bool | None


class Start(FirstPointOptions, total=False):
    """What a study begins with, and the contexts."""

    context_domain: Domain | int | ContextSpace | None


class BoundsOptions(PendingTrials, Start, total=False):
    """The keyword arguments that subclasses pass on to `BoundsStrategy`."""


class BoundsStrategy(Strategy):
    """Plays the confidence bounds mean +- (width * std + offset) of one or more models of the same
    data.

    The `Search` chooses a point and a model by the bounds. The `Judge` decides which models may
    play and which ones an observation refutes; refuted models are dropped.

    The argument ``pending`` sets how pending trials (asked, not told) count:

    - "ignore": not at all; the same point is then asked again until it is told.
    - "hallucinate": in the standard deviation and in the width, not in the mean (GP-BUCB, Desautels
      et al. 2014). ``inflate=True`` multiplies the width by exp(information gain of the pending
      points given the told ones), which makes the confidence bound valid.
    - "censor": in mean, standard deviation and width, as observations of ``minimum``, until they
      are told (GP-UCB-SDF, Verma et al. 2022). With ``timeout`` m, a trial that was asked at step s
      and is not told before the ask of step s + m + 1 stays censored for ever.

    A failed trial counts as pending, unless that is withdrawn.

    With a ``context_domain`` the models are models of joint rows (the action, then the context).
    Each ask is given a context, and the maximum is taken over the actions in that context (CGP-UCB,
    Krause and Ong 2011, eq. 2).

    ``info`` of a trial that a model chose has the keys

    - ``model``: the position of the model among the candidates, 0 if there is one;
    - ``mean``, ``std``: its posterior mean and standard deviation at the point, in units of the
      observations, with pending trials counted as ``pending`` says;
    - ``width``, ``offset``: the width and the offset of its confidence bound;
    - ``index``: on a finite set, the row of the point;
    - ``told``: if the judge tests predictions, a dict with ``mean``, ``std``, ``width`` and
      ``offset`` once more, from told data alone;
    - ``fit``: with a `Fitted` kernel, if hyperparameters were fitted before this trial: a dict with
      ``lengthscales`` in sides of the domain, ``noise_variance``, ``outputscale`` and ``mean`` in
      (squared) units of the observations.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, or a `FiniteSet`.
        model: A `KernelGP` or `CandidateModels`. It is copied, and data that it holds count as
            steps; these may lie outside the domain, so `best` compares the points of the study and
            of ``initial`` alone. Or `Fitted`: a model whose hyperparameters are fitted to the data.
        width: The confidence width, or a number, for all models; or a sequence with one for each.
        search: The rule that chooses by the bounds. None: the highest upper bound.
        judge: The rule that judges the models. None: all models play.
        pending: How pending trials count, see above.
        inflate: Whether "hallucinate" inflates the widths.
        minimum: A lower bound on the values of f, for "censor" only, which needs it.
        timeout: The number of steps after which a pending trial stays censored, for "censor" only.
            None: a result counts however late it is told.
        seed: The seed of the search and of the first points. On a finite set the first of several
            equally good points, and of equally good models, is chosen.
        initial: Observations from before the study, as for `Strategy`.
        num_initial: The number of Sobol points that are asked first.
        context_domain: The contexts, as for `Strategy`. None: no contexts.
        minimize: Whether small values are good, as for `Strategy`. Prior means, data of models and
            ``minimum`` are then those of the costs as well, and ``minimum`` is an upper bound.

    Raises:
        ValueError: If a model is batched, does not take the points of the domain, or has a prior
            mean that is not finite there; if devices or dtypes differ; if a model has transforms on
            a finite set; if ``width`` is a sequence whose length is not the number of models; if an
            option does not belong to the pending policy; or if the search cannot follow the advice
            of the judge.

    Warns:
        KernelBoundWarning: k(x, x) of a model exceeds 1 somewhere on the domain; if the domain of
            the contexts is unknown, at an asked point.
        LengthscaleWarning: Every model has a lengthscale under a twentieth of the side of the
            domain, or over twenty times the side.
        EnlargementWarning: The misspecification adds more than three times the rest of a width, or
            with the pointwise form of a half-width, at most of the last 16 points.
        ModelRefutedWarning: The data refute what the width of a single model assumes. On a GPU only
            the report says so.
        PriorScaleWarning: 8, 16, 32 or 64 observations contradict the scale of a single model: they
            are more than 3, or less than a tenth, of its standard deviations away from its mean.
            This is not checked on a GPU.
        AllModelsRejectedWarning: Every model is refuted. The last model stays.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> model = bx.KernelGP(RBFKernel(), noise_variance=0.01)
        >>> strategy = bx.strategies.BoundsStrategy(points, model, 2.0)
        >>> strategy.tell(strategy.ask(), 0.3)
        >>> trial = strategy.ask()
        >>> {key: round(value, 2) for key, value in trial.info.items()}
        {'index': 2, 'model': 0, 'mean': 0.1, 'std': 0.94, 'width': 2.0, 'offset': 0.0}
    """

    record = Played
    refuses_std = None
    #: Whether the width may be a `Ladder`, or enlarged at each point.
    takes_ladders: bool = True

    def __init__(
        self,
        domain: Domain,
        model: KernelGP | CandidateModels | Fitted,
        width: Width | float | Sequence[Width | float],
        *,
        search: Search | None = None,
        judge: Judge | None = None,
        pending: Pending = "hallucinate",
        inflate: bool = False,
        minimum: float | None = None,
        timeout: int | None = None,
        seed: int = 0,
        initial: InitialData | None = None,
        num_initial: int = 0,
        context_domain: Domain | int | ContextSpace | None = None,
        minimize: bool | None = None,
    ) -> None:
        for name, part, kind in (("search", search, Search), ("judge", judge, Judge)):
            if not isinstance(part, kind | None):
                raise ValueError(f"{name} must be a {kind.__name__} or None, got {short(part)}")
        self.search = Highest() if search is None else search
        self.takes_actions, self.takes_shards = self.search.takes_actions, self.search.takes_shards
        self.takes_spaces = self.search.takes_spaces
        super().__init__(domain, seed, initial, num_initial, context_domain, minimize)
        worst = -minimum if minimize and minimum is not None else minimum
        policy = PendingPolicy(pending, inflate, worst, timeout)
        probes = probes_of(domain, self.context_space, self.seed)
        self.refits: Refits | None = None
        if isinstance(model, Fitted):
            if judge is not None:
                raise ValueError("model must not be Fitted with a judge of fixed models")
            self.refits = Refits(model, domain, self.context_space)
            model = self.refits.model(probes)
        models = _checked_models(model, probes, self.minimize)
        self.width = _checked_widths(width, models)
        self.judge = Judge() if judge is None else judge
        if self.judge.advises and not self.search.takes_advice:
            kinds = type(self.judge).__name__, type(self.search).__name__
            raise ValueError(f"judge must let all models play, got {kinds[0]} with {kinds[1]}")
        if isinstance(domain, FiniteSet) and self.context_space is None:
            if isinstance(model, KernelGP) and model.has_transforms:
                raise ValueError("model must not have input or outcome transforms on a FiniteSet")
            rows = [] if self._initial is None else domain.index(self._initial[0]).tolist()
            self._initial_data_rows: list[int] = rows
        posterior = on_domain(models, domain, self.context_space)
        # The names of all models so far, and the number of models when each trial was asked.
        self.names: list[str] = list(models.names)
        self.num_known: Log[int] = Log()
        # The positions among the candidates of the models that are not eliminated.
        self.alive: list[int] = list(range(models.num_models))
        # Maps the position of an eliminated model to the number of observations at that time.
        self.rejected: dict[int, int] = {}
        self.all_rejected_at: int | None = None
        widths = [self.width] if isinstance(self.width, Width) else self.width
        ladders = [ladder_of(own) for own in widths]
        # The multiples of the ridges at which bounds are intersected; None: one ridge.
        self._ridges = _shared_ridges(ladders)
        self._limits = [math.inf if own is None else own.rkhs_bound for own in ladders]
        if not self.takes_ladders:
            for own in widths:
                require_plain(own)
        self._enlargements = [pointwise_misspecification(own) for own in widths]
        first = models.parts[0].model  # a model with transforms is the only one
        if any(self._enlargements) and getattr(first, "outcome_transform", None) is not None:
            raise ValueError(
                'enlargement must be "published" for a model with an outcome transform, got '
                f"{width!r}"
            )
        for own, eps in zip(ladders, self._enlargements, strict=True):
            if isinstance(own, Dual) and ((own.misspecification and not eps) or models.has_twins):
                raise ValueError(
                    "width must not be Dual with twins, nor know of a misspecification by which it "
                    f"is not enlarged, got {own!r}"
                )
        reads_values = any(self._enlargements) or any(isinstance(own, Dual) for own in ladders)
        if reads_values and pending == "censor":
            raise ValueError(f'pending must not be "censor" with such a width, got {width!r}')
        # The noise variances of all models, if a width is enlarged: numbers, so that no step waits
        # for the device.
        self._noise: list[float] = []
        if any(share_of_enlargement(own, 1, 1.0) for own in widths):
            self._noise = models.noise_variance.tolist()
        if len(probes):
            self._note_large_kernels(models.largest_variances(probes))
            self._note_lengthscales(models, probes)
            self._raise_warnings()
        noise_std = self._noise_std(widths, models)
        if self._initial is not None:
            std = self._initial_std
            posterior.add(*self._initial, None if std is None else (std / noise_std).square())
        self._num_data_before = posterior.num_observations
        self._rows: TrialRows[Models] = TrialRows(posterior, policy, noise_std)
        # The values of the rows of no trial; None for pending rows of the model.
        self._first_values: list[float | None] = []
        if self._num_data_before:
            part = posterior.parts[0]
            values, unknown = part.each(part.model.train_targets)[0].tolist(), posterior.pending
            self._first_values = [None if i in unknown else y for i, y in enumerate(values)]
        # The models at every ridge; None if the width has one ridge.
        self._at_ridges: TrialRows[Models] | None = None
        self._restart()
        self._grow()
        self._follow_models()
        is_fixed = len(self.names) == 1 and not models.grows and self.refits is None
        if is_fixed and not self.judge.needs_predictions:  # those test the model
            self._alarm = Alarm.of(widths[0])

    def _noise_std(self, widths: Sequence[Width], models: CandidateModels) -> float:
        """The standard deviation of the noise of one observation, whose variance is the noise
        variance of the models; nan if results cannot have standard errors."""
        noise = models.noise_variance
        stds = {own for width in widths if (own := noise_std_of(width)) is not None}
        stds |= set() if self.judge.noise_std is None else {self.judge.noise_std}
        if not stds and bool((noise == noise[0]).all()):
            stds = {float(noise[0].sqrt())}
        plain = [type(width).__name__ for width in widths if not width.takes_unequal_noise]
        if self.refits is not None:
            self.refuses_std = "a Fitted kernel is fitted to results that are equally noisy"
        elif plain:
            self.refuses_std = f"{plain[0]} is a width for results that are equally noisy"
        elif len(stds) != 1:
            self.refuses_std = "its models have no noise_std in common"
        self._require_no_std()
        if self.refuses_std is not None and models.relative_noise is not None:
            who = type(self).__name__
            raise ValueError(f"model must have no relative_noise for {who}: {self.refuses_std}")
        return stds.pop() if len(stds) == 1 else math.nan

    # --- what is known ----------------------------------------------------------------------------

    @property
    def posterior(self) -> Any:
        """The posteriors of the models that are not eliminated, in the order of ``alive``, given
        the told data, with pending trials as the policy says. `CandidateModels`, or
        `FiniteCandidates` on a finite set without contexts. It is a copy: changing it
        does not change the strategy."""
        return self._rows.current().posterior.fork()

    @property
    def models(self) -> Models:
        """As `posterior`, but the latest events may be missing. Must not be changed."""
        return self._rows.posterior

    @property
    def num_data(self) -> int:
        """The number of observations so far, initial ones included."""
        return self._rows.num_data

    @property
    def next_step(self) -> int:
        """t of the next ask: one more than the number of steps so far, initial ones included."""
        return self._num_data_before + len(self.history.trials) + 1

    @property
    def plays(self) -> list[Play]:
        """The observations of trials that models chose, in the order of telling."""
        plays, t = [], self._num_data_before
        for event in self.history.events:
            if isinstance(event, Attached) and event.trial.id not in self.history.withdrawn:
                t += 1
            elif isinstance(event, Told) and event.id not in self._rows.told_too_late:
                t += 1
                if self._is_play(event.id):
                    plays.append(Play(t, event.id, self.history.trials[event.id].info["model"]))
        return plays

    def times_played(self) -> list[int]:
        """How often each model was played, eliminated models included; one number for each."""
        played = [0] * len(self.names)
        for trial in self.history.trials:
            if self._is_play(trial.id):
                played[trial.info["model"]] += 1
        return played

    def evidence(self) -> Tensor:
        """The log marginal likelihoods of the told data, ``m``, in the order of ``alive``."""
        return self._evidence(self._rows.for_means())

    @torch.no_grad()
    def bands(self, X: Tensor, context: ContextLike | None = None) -> tuple[Tensor, Tensor]:
        """The confidence bands by which the next ask chooses, of the models that are not
        eliminated.

        Pending trials count as the policy says.

        Args:
            X: ``n x d`` points of the domain.
            context: The ``d_z`` numbers of the context, if the strategy takes contexts.

        Returns:
            Two ``m x n``-dim tensors in the order of ``alive``, in units of the observations. The
            first has the means, the second the half-widths of the bands.

        Raises:
            ValueError: If a point lies outside the domain, or if `ask` would refuse the context.
        """
        checked = self.checked_context(context)
        X = self.domain.require_contains(X)
        bounds = self._bounds(self._rows.current().posterior, checked)
        mean, half_width = bounds.bands(X, self.domain)
        return self.history.sign * mean, half_width

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `Strategy.report` and

            - ``t``: the number of the next step, with initial observations and pending trials;
            - ``width``: the width as it was given;
            - ``current_width``, ``information_gain``, ``jittered_rows``: of the model with the
              highest marginal likelihood, the width, the information gain of its rows, and the
              number of rows whose factorisation needed jitter;
            - ``models``: a list with a dict for each model, see below;
            - ``alive``: the names of the models that are not eliminated;
            - ``all_rejected_at``: the number of observations when every model was refuted, or None;
            - ``pending_policy``, ``inflated``: the policy for pending trials;
            - ``told_too_late``: the ids of trials that were told after ``timeout``;
            - ``fit``: with a `Fitted` kernel, the hyperparameters in use, the number of fits as
              ``num_fits``, and the number of observations of the last fit as ``num_data``;
            - what the judge adds, as its class says.

            The dict of a model has its ``name``; its ``status``, "alive" or "rejected"; the number
            of observations when it was eliminated, ``rejected_at``; how often it was played,
            ``times_played``; and, None once it is eliminated, its ``log_marginal_likelihood``,
            ``current_width`` and ``information_gain``.
        """
        rows = self._rows.current()
        posterior, summary = rows.posterior, super().report()
        evidence, played = self._evidence(rows), self.times_played()
        widths = self._bounds(posterior).widths[self._own_ridge :: self._num_ridges].tolist()
        gains = posterior.information_gain().tolist()
        models: list[dict[str, Any]] = [
            {
                "name": name,
                "status": "rejected" if id in self.rejected else "alive",
                "rejected_at": self.rejected.get(id),
                "times_played": played[id],
                "log_marginal_likelihood": None,
                "current_width": None,
                "information_gain": None,
            }
            for id, name in enumerate(self.names)
        ]
        for id, likelihood, width, gain in zip(
            self.alive, evidence.tolist(), widths, gains, strict=True
        ):
            models[id] |= {
                "log_marginal_likelihood": likelihood,
                "current_width": width,
                "information_gain": gain,
            }
        likeliest = int(first_highest(evidence))
        summary |= {
            "t": rows.num_rows + 1,
            "width": parts_of(self.width),
            "current_width": widths[likeliest],
            "information_gain": gains[likeliest],
            "jittered_rows": int(posterior.jittered_rows()[likeliest]),
            "models": models,
            "alive": [self.names[id] for id in self.alive],
            "all_rejected_at": self.all_rejected_at,
            "pending_policy": rows.policy.pending,
            "inflated": rows.policy.inflate,
            "told_too_late": list(rows.told_too_late),
        }
        if self.refits is not None:
            summary["fit"] = in_sign(self.refits.summary(), self.history.sign)
        summary = self.judge.complete(summary)
        return summary | {"models": in_sign(summary["models"], self.history.sign)}

    # --- decisions --------------------------------------------------------------------------------

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        self._catch_up()
        fit = {}
        if self.refits is not None and self.refits.is_due(self.num_data):
            numbers = self.refits.fit(*self._data()[:2])
            self._refit(numbers)
            fit = {"fit": plain(numbers)}
        bounds = self._bounds(self._rows.posterior, choices.context)
        turn = Turn(
            self.domain,
            choices,
            self._seed_of(len(self.history.trials)),
            self._incumbents,
            self.judge.contenders(self),
            self.judge.weights(self),
        )
        pick = self.search.best(bounds, turn)
        if choices.points(self.domain) is None:
            pick.x = cast(Box, self.domain).settable(pick.x)
        at = pick.info["index"] if bounds.on_candidates else None
        place = with_context(pick.x, choices.context) if at is None else at
        info = pick.info | self._record(bounds, pick.model, place, pick.numbers)
        if pick.opponent is not None:
            info["pessimistic"] = self._record(bounds, pick.opponent, place)
        return pick.x, info | fit

    def replicas(self, runs: Runs) -> Replicas:
        models, policy, search = self._rows.posterior, self._rows.policy, self.search
        widths = [self.width] if isinstance(self.width, Width) else self.width
        tests = self.judge.tests_of_runs()
        refused = {
            f"a {type(self).__name__}": type(self)._decide is not BoundsStrategy._decide,
            f"models of {type(models).__name__}": not isinstance(models, FiniteCandidates),
            "a model with data": self._num_data_before > len(self._initial_data_rows),
            "initial observations with standard errors": self._initial_std is not None,
            "judges of censored results": self.judge.advises
            and policy.pending == "censor"
            and runs.has_delays,
            "models that change": models.grows or models.has_twins or self.refits is not None,
            f"a {type(search).__name__} search": type(search) is not Highest,
            "tests of bounds at several ridges or of pointwise enlargements": tests is not None
            and (self._ridges is not None or any(self._enlargements)),
            "a Dual width with delays": runs.has_delays
            and any(isinstance(ladder_of(own), Dual) for own in widths),
        }
        for reason, is_refused in refused.items():
            if is_refused:
                raise NotReplicatedError(reason)
        fresh = cast(FiniteCandidates, models).at_ridges((1.0,))
        return BoundsReplicas(runs, fresh, self.width, policy, self.judge)

    def _catch_up(self) -> None:
        """Adds the waiting rows and values to all models."""
        self._rows.catch_up()
        if self._at_ridges is not None:
            self._at_ridges.catch_up()

    # --- fits -------------------------------------------------------------------------------------

    def _data(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """The joint rows and the values that models use, without those told too late, and the
        relative noise of these."""
        X, Y = self._maximised()
        noise = self._relative_noise(self._rows.noise_std)
        late = set(self._rows.told_too_late)
        if late:
            before = len(Y) - len(self.history.values)
            kept = [before + i for i, id in enumerate(self.history.values) if id not in late]
            kept = [*range(before), *kept]
            X, Y, noise = X[kept], Y[kept], None if noise is None else noise[kept]
        return X, Y, noise

    def _refit(self, numbers: Hyperparameters, is_fit: bool = True) -> None:
        """Plays with other hyperparameters from now on: those of a fit, or the mode of the
        prior."""
        refits = cast(Refits, self.refits)
        refits.adopt(numbers, self.num_data if is_fit else None)
        values = [] if self._initial is None else self._initial[1].tolist()
        self._rows = self._rows.moved_to(refits.models(self._data()[0]), values, self.history)
        self._first_values = [*values]
        self._follow_models()

    def _restart(self) -> None:
        """Before the first fit, plays with the mode of the prior, scaled to the observations so
        far."""
        if self.refits is not None and not self.refits.num_fits:
            self._rows.catch_up()
            self._refit(self.refits.before_any(self._data()[1]), is_fit=False)

    def _forget_fits(self, id: int) -> None:
        if self.refits is not None and self.refits.num_fits:
            self._rows.catch_up()
            self.refits.forget()
            self._restart()

    # --- bounds and means -------------------------------------------------------------------------

    def _current_width(self) -> Width | list[Width]:
        """The width at this step, for all models, or a list with one for each candidate."""
        return self.width

    def _width_of(self, id: int) -> Width:
        """The width of a candidate at this step."""
        width = self._current_width()
        return width if isinstance(width, Width) else width[id]

    def _bounds(self, posterior: Models, context: Tensor | None = None) -> Bounds:
        t, of_alive = posterior.num_observations + 1, self._current_width()
        at_ridges = None if self._at_ridges is None else self._at_ridges.current().posterior
        models = posterior if at_ridges is None else at_ridges
        if not isinstance(of_alive, Width):
            of_alive = [of_alive[id] for id in self.alive for _ in range(self._num_ridges)]
        widths, offsets = models.width(of_alive, t), models.offset(of_alive, t)
        enlargements = caps = limits = None
        inflation = 1.0
        if self._rows.policy.inflate:
            inflation = models.pending_information_gain().exp()
            widths = widths * inflation
        if any(self._enlargements):
            enlargements = widths.new_tensor(self._of_alive(self._enlargements))
            enlargements = enlargements.repeat_interleave(self._num_ridges)
            if models.pending:
                total = models.total_precision()
                total = t if total is None else 1 + len(models.pending) + total
                caps = (total / models.noise_variance).sqrt() * inflation
        if self._ridges is not None:
            limits = widths.new_tensor(self._of_alive(self._limits))
        own = (enlargements, caps, at_ridges, self._num_ridges, limits)
        return Bounds(posterior, widths, offsets, context, *own)

    @property
    def _num_ridges(self) -> int:
        return 1 if self._ridges is None else len(self._ridges)

    @property
    def _own_ridge(self) -> int:
        """The position of the models' own ridge among the ridges."""
        return 0 if self._ridges is None else self._ridges.index(1.0)

    def _of_alive(self, numbers: list[float]) -> list[float]:
        """Numbers of the widths for each model that is not eliminated."""
        return numbers * len(self.alive) if len(numbers) == 1 else [numbers[i] for i in self.alive]

    def _follow_models(self) -> None:
        """Makes the models at every ridge anew, with all data, after the models have changed."""
        self._rows.catch_up()
        if self._ridges is not None:
            models = self._rows.posterior.at_ridges(self._ridges)
            self._at_ridges = self._rows.moved_to(models, self._first_values, self.history)
        rows = self._rows if self._at_ridges is None else self._at_ridges
        if any(self._enlargements) and isinstance(rows.posterior, FiniteCandidates):
            rows.posterior.keep_weights()

    def _evidence(self, rows: TrialRows[Models]) -> Tensor:
        return rows.posterior.log_marginal_likelihood(rows.untold(self.history))

    def _likeliest(self, rows: TrialRows[Models]) -> int:
        return 0 if len(self.alive) == 1 else int(first_highest(self._evidence(rows)))

    def relative_noise_of(self, id: int) -> float:
        """The noise variance of the result of a trial in units of that of one observation.

        Args:
            id: The id of the trial.
        """
        return self.history.relative_noise(id, self._rows.noise_std) or 1.0

    def told_data(self) -> list[ToldData]:
        """The told data as each model sees them, in the order of ``alive``."""
        rows = self._rows.current()
        unknown, found = set(rows.posterior.pending), {}
        known = [row for row in rows.known(self.history) if row not in unknown]
        for part in rows.posterior.parts:
            given = (*gram_and_residuals(part.model, known), part.model.noise_variance)
            each = (part.each(values) for values in given)
            precision = part.model.total_precision(known)
            for position, K, y, ridge in zip(part.positions, *each, strict=True):
                found[position] = ToldData(K, y, float(ridge), precision)
        return [found[position] for position in range(len(found))]

    def _told_data(self) -> ToldData:
        return self.told_data()[0]

    def _mixture(self, context: Tensor | None) -> GPMixture:
        if self.refits is not None and not self.num_data:
            raise NoObservationsError("predictions need at least one evaluated point, got none")
        told = self._rows.told(self.history)
        weights = told.log_marginal_likelihood().softmax(dim=0)
        order = [position for part in told.parts for position in part.positions]
        models = [part.model for part in told.parts]
        return GPMixture.of(models, weights[order], restored=self._restored)

    def _restored(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Model outputs in units of the observations, and the derivatives of this map there."""
        outcome = getattr(self._rows.posterior.parts[0].model, "outcome_transform", None)
        if outcome is None:  # a model with an outcome transform is the only one
            return in_same_units(values)
        with torch.enable_grad():
            inside = values.detach().flatten().requires_grad_()
            value = outcome.untransform(inside.unsqueeze(-1))[0].squeeze(-1)
            (slope,) = torch.autograd.grad(value.sum(), inside)
        return value.detach().view_as(values), slope.view_as(values)

    def evaluated_means(self) -> Tensor:
        rows = self._rows.for_means()
        if isinstance(rows.posterior, FiniteCandidates):
            told = [self.history.trials[id].info["index"] for id in self.history.values]
            rows_told = self._initial_data_rows + told
            at = torch.tensor(rows_told, dtype=torch.long, device=self.domain.device)
            return rows.posterior.at(rows.posterior.mean[self._likeliest(rows)], at)
        return self.means_at(self._maximised()[0])

    @torch.no_grad()
    def means_at(self, X: Tensor) -> Tensor:
        rows = self._rows.for_means()
        models: Any = rows.posterior
        return models.means(self._likeliest(rows), X)

    def check_joint(self, X: Tensor) -> None:
        models: Any = self._rows.posterior
        models.require_takes(X)

    # --- info of a trial --------------------------------------------------------------------------

    def _in_units(self, interval: Interval) -> Interval:
        """A confidence interval in the units of the observations."""
        return interval

    def _record(
        self, bounds: Bounds, position: int, at: int | Tensor, numbers: list[float] | None = None
    ) -> dict[str, Any]:
        """The ``info`` of a trial about a model, at a candidate (given by its row) or at a joint
        row. ``numbers`` are its mean, std, width and offset there, if they are known."""
        untold = self._rows.untold(self.history) if self.judge.needs_predictions else []
        if numbers is None:
            numbers = torch.cat(bounds.numbers(position, at)).tolist()
        id = self.alive[position]
        now = told = self._interval(id, numbers)
        if untold:
            told = self._interval(id, self._told_only(bounds, position, at, untold))
        record = {"model": id} | plain(now)
        return record | {"told": plain(told)} if self.judge.needs_predictions else record

    def _interval(self, id: int, numbers: list[float]) -> Interval:
        """The confidence interval of a model, in the units of the observations; raises a ValueError
        if its width or offset is one that no record may have."""
        limit = self._limits[0 if len(self._limits) == 1 else id]
        interval = interval_of(numbers, self._ridges, limit)
        width, offset = interval.width, interval.offset
        if not (0 <= width < math.inf and 0 <= offset < math.inf):
            kind = type(self._width_of(id)).__name__
            raise ValueError(
                f"width must give non-negative and finite numbers, got {width} and the offset "
                f"{offset} from {kind}"
            )
        return self._in_units(interval)

    def _told_only(
        self, bounds: Bounds, position: int, at: int | Tensor, untold: list[int]
    ) -> list[float]:
        """The `numbers` of a model at a point, from told data alone."""
        models: Any = bounds.all_models
        mean, std, gain = bounds.moments_without(position, untold, at)
        untwinned = bounds.models.plain(position)
        if untwinned != position:
            gain = bounds.moments_without(untwinned, untold, at)[2]
        rows = bounds.rows_of(position)
        told = ModelNumbers(
            models.noise_variance[rows],
            models.num_observations - len(untold),
            models.dim,
            gain,
            lambda: models.quadratic_form()[rows],
        )
        own, t = self._width_of(self.alive[position]), told.num_observations + 1
        width, offset = (
            as_tensor_like(value, mean).expand(mean.shape)
            for value in (own(t, told), own.offset(t, told))
        )
        if bounds.enlargements is not None:
            offset = offset + bounds.enlargements[rows] * bounds.norms_at(position, at)
        numbers = [mean, std, width, offset, *bounds.prior_at(position, at)]
        return torch.cat(numbers).tolist()

    def _predict_again(self, trial: Trial) -> None:
        """Computes the predictions in ``info`` of a trial again, with corrected values."""
        if not self._is_play(trial.id):
            return
        bounds = self._bounds(self._rows.posterior, trial.context)
        at = trial.info["index"] if bounds.on_candidates else trial.point
        info = trial.info | self._said_again(bounds, trial.info, at)
        if "pessimistic" in info:
            info["pessimistic"] = self._said_again(bounds, info["pessimistic"], at)
        trials = self.history.trials.with_item_at(trial.id, replace(trial, info=info))
        self.history.trials = trials

    def _said_again(
        self, bounds: Bounds, record: dict[str, Any], at: int | Tensor
    ) -> dict[str, Any]:
        """The prediction of a recorded model, computed again unless the model is eliminated."""
        if record["model"] not in self.alive:
            return record
        return self._record(bounds, self.alive.index(record["model"]), at)

    # --- the next state ---------------------------------------------------------------------------

    def _recall(self, trial: Trial) -> Any:
        record, name = super()._recall(trial), f"info of trial {trial.id}"
        for played in record, record.pessimistic:
            if played is not None and played.model >= len(self.names):
                raise ValueError(f"model in the {name} must be one of {len(self.names)}")
            if played is not None and played.told is None and self.judge.needs_predictions:
                raise ValueError(f"told in the {name} must be given, got {short(trial.info)}")
        if record.fit is not None:
            if self.refits is None:
                raise ValueError(f"fit in the {name} must not be there: the model is not Fitted")
            self.refits.check(record.fit, f"fit in the {name}")
            self._rows.catch_up()
            self._refit(record.fit)
        return record

    def _absorb(self, event: Event) -> None:
        if isinstance(event, Asked | Attached):
            self._absorb_trial(event.trial)
        is_told = self._rows.absorb(event, self.history)
        if self._at_ridges is not None:
            self._at_ridges.absorb(event, self.history)
        if not is_told:
            return
        num_data = self._rows.num_data
        if num_data & (num_data - 1) == 0:  # a power of 2
            self._restart()
        if num_data in LOOKS:
            self._note_scale()
        if isinstance(event, Told) and self._is_play(event.id):
            trial = self.history.trials[event.id]
            for model in self.judge.learn(trial, event.value, self):
                self._reject(model)

    def _absorb_trial(self, trial: Trial) -> None:
        self._catch_up()
        if self._is_play(trial.id):
            if EnlargementWarning not in self._noted:
                if self._noise:
                    self._note_enlargement(trial.info)
                if any(self._enlargements):
                    self._note_pointwise_enlargement()
            if self._is_corrected and self.judge.needs_predictions:
                self._predict_again(trial)
        if self._looks_at_kernel_later:
            joint: Any = self._rows.posterior
            largest = joint.largest_variances(trial.point.unsqueeze(0))
            if not self.warnings:
                self._note_large_kernels(largest)
        known = len(self.names)
        self._grow()
        self.num_known = self.num_known.with_item(known)

    def _grow(self) -> None:
        if not self._rows.posterior.grows:
            return
        self._rows.posterior = self._rows.posterior.successor()
        added = self._rows.posterior.grow(self.next_step)
        if added and self._noise:
            self._noise += self._rows.posterior.noise_variance[-len(added) :].tolist()
        self.alive += range(len(self.names), len(self.names) + len(added))
        self.names += added
        if added:
            self._follow_models()

    def _reject(self, id: int) -> None:
        """Eliminates a model and drops its posterior; the last model stays, with a warning."""
        if len(self.alive) > 1:
            position = self.alive.index(id)
            self._rows.posterior = self._rows.posterior.successor()
            self._rows.posterior.drop(position)
            if self._at_ridges is not None:
                self._at_ridges.posterior = self._at_ridges.posterior.successor()
                for _ in range(self._num_ridges):
                    self._at_ridges.posterior.drop(self._num_ridges * position)
            self.alive.remove(id)
            self.rejected[id] = self.num_data
        elif self.all_rejected_at is None:
            self.all_rejected_at = self.num_data
            message = (
                f"every model is rejected after {self.num_data} observations: the assumptions are "
                f"broken, and {self.names[id]}, the last one, stays"
            )
            self._note(message, AllModelsRejectedWarning)

    def _note_large_kernels(self, largest: Tensor) -> None:
        if self.refits is not None:  # k(x, x) is then in squared units of the observations
            return
        for id, value in zip(self.alive, largest.tolist(), strict=True):
            self._note_large_kernel(value, f" ({self.names[id]})" if len(self.names) > 1 else "")

    def _note_lengthscales(self, models: CandidateModels, probes: Tensor) -> None:
        if self.refits is not None:  # fitted lengthscales follow the data
            return
        first = models.parts[0].model  # a model with transforms is the only one
        kernels = [part.model.kernel for part in models.parts]
        said = odd_lengthscales(kernels, first.transform_inputs(probes))
        if said is not None:
            self._note_once(said, LengthscaleWarning)

    def _note_enlargement(self, info: dict[str, Any]) -> None:
        """Warns if the misspecification dominates the width of a trial."""
        posterior, id = self._rows.posterior, info["model"]
        if id not in self.alive:  # a corrected value has refuted it
            return
        own = self._width_of(id)
        noise = self._noise[id] if self.refits is None else self.refits.current.noise_variance
        noise *= info.get("ridge", 1.0)
        enlargement = share_of_enlargement(own, posterior.num_observations + 1, noise)
        width = info["width"]
        if self._rows.policy.inflate and enlargement:
            position, gains = self.alive.index(id), posterior.pending_information_gain()
            if self._at_ridges is not None and self._ridges is not None:
                position = self._num_ridges * position + self._ridges.index(info["ridge"])
                gains = self._at_ridges.current().posterior.pending_information_gain()
            width /= math.exp(gains[position])
        rest = width - enlargement
        if enlargement > SEVERAL_TIMES * rest > 0:
            self._note_once(
                f"misspecification adds {enlargement:.3g} to a width of {rest:.3g}: "
                "the bounds then mostly show where data are missing; a larger noise_variance "
                "reduces this",
                EnlargementWarning,
            )

    def _note_pointwise_enlargement(self) -> None:
        """Warns if the misspecification dominates the half-widths at most of the last points."""
        plays = (trial.info for trial in reversed(self.history.trials) if self._is_play(trial.id))
        latest = list(islice(plays, NUM_LATEST))
        if len(latest) < NUM_LATEST:
            return
        shares = [(info["offset"], info["width"] * info["std"]) for info in latest]
        if sum(own > SEVERAL_TIMES * rest > 0 for own, rest in shares) > NUM_LATEST // 2:
            own, rest = shares[0]
            self._note_once(
                f"misspecification adds {own:.3g} to a half-width of {rest:.3g}, and as large a "
                f"share at most of the last {NUM_LATEST} points: the bounds then mostly show where "
                "data are missing; a larger noise_variance reduces this",
                EnlargementWarning,
            )

    def _note_scale(self) -> None:
        model: Any = self._rows.posterior.parts[0].model
        fixed = len(self.names) == 1 and self.refits is None
        # On a GPU the check would make the host wait a second time in a step.
        if (
            fixed
            and not getattr(model, "has_transforms", False)
            and not model.noise_variance.is_cuda
        ):
            said = odd_scale(model, *self._data())
            if said is not None:
                self._note_once(said, PriorScaleWarning)


def _shared_ridges(ladders: Sequence[Ladder | None]) -> tuple[float, ...] | None:
    """The ridges of the widths, None if they have one; raises a ValueError if they differ."""
    first, *others = (None if ladder is None else ladder.ridges for ladder in ladders)
    if any(ridges != first for ridges in others):
        raise ValueError(f"width must have the same ridges for all models, got {ladders!r}")
    return first


def _checked_models(
    model: KernelGP | CandidateModels, probes: Tensor, minimize: bool = False
) -> CandidateModels:
    """The model of what is maximised as candidate models; raises a ValueError unless they take the
    probes."""
    if not isinstance(model, KernelGP | CandidateModels):
        raise ValueError(f"models must be CandidateModels, got a {type(model).__name__}")
    if len(probes):
        model.require_takes(probes)
    model = model.negated() if minimize else model
    return CandidateModels.of(model) if isinstance(model, KernelGP) else model


def _checked_widths(
    width: Width | float | Sequence[Width | float], models: CandidateModels
) -> Width | list[Width]:
    widths = as_widths(width)
    if isinstance(widths, Width):
        return widths
    if models.grows:
        raise ValueError(f"width must be one for all models of a growing set, got {len(widths)}")
    num_models = models.num_models
    if len(widths) != num_models:
        raise ValueError(
            f"width must be one, or one for each of the {num_models} models, got {len(widths)}"
        )
    return widths

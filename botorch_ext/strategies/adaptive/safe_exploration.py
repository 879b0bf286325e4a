"""Maximisation that asks only points whose outcomes are certified to be within limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, cast

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Domain, FiniteSet, as_points
from botorch_ext.domains.contexts import ContextLike, ContextSpace, with_context
from botorch_ext.exceptions import (
    ModelRefutedError,
    ModelRefutedWarning,
    NoCertifiedPointError,
)
from botorch_ext.limits import Limit
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.records import Finite, plain
from botorch_ext.search.box_balls import Norm
from botorch_ext.search.certified import CertifiedSet
from botorch_ext.search.perturbations import Perturbations
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.pending import Pending, PendingPolicy
from botorch_ext.strategies.adaptive.safe_bounds import BoundsInContext, JointBounds, SafeBounds
from botorch_ext.strategies.adaptive.safe_sets import SafeBox, SafeList
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Attached, Event, Told, Trial
from botorch_ext.strategies.initial_checks import checked_joint, probes_of
from botorch_ext.widths.limits import checked_names, quantities, require_one_of

#: A function from the rows of the certified points, the strategy and a seed to one of these rows.
#: In a box it is one from some certified points, ``n x d``, to any certified point.
Rule = Callable[[Tensor, "SafeExploration", int], Any]


@dataclass(frozen=True, kw_only=True)
class SafeChoice:
    """The record of a trial that `SafeExploration` chose.

    Args:
        kind: "exploit", a point that may be the best one; "expand", a point whose result tells most
            about the target; "rule", a point that a function of the user chose; or "seed", a seed,
            asked before the first result and once the models are refuted.
        certified: The number of certified points; None in a box.
        slack: By how much the bounds at the point are within the limits, in the units of the
            outcome that is nearest to its limit; None for seeds.
        target: The row of the point that seems best among those that may be safe, if it is not
            certified; None in a box.
        target_point: This point in a box.
        struck: The rows of targets that were given up at this step, since no certified point tells
            anything about them; None in a box and with contexts, where this is for one step.
    """

    kind: Literal["exploit", "expand", "rule", "seed"]
    certified: int | None = None
    slack: Finite | None = None
    target: int | None = None
    target_point: tuple[float, ...] | None = None
    struck: tuple[int, ...] | None = None


class SafeExploration(Strategy):
    """Maximises the value among points of a finite set or a box whose outcomes are certified to be
    within their limits.

    A point is certified if it is a seed, or if the confidence bounds of every outcome are within
    its limit there, and within ``radius`` of there. The bounds are infinite until there is a
    result, so that ``rkhs_bound`` alone certifies nothing before, and are intersected over time,
    so that certified points stay certified.

    Until the first result is told, only seeds are asked, in turn, whatever ``rule`` is: a wrong
    model is often refuted there. Then a step asks the point with the highest upper bound of the
    value among the points that may be safe, if it is certified. If not, every other step asks the
    certified point whose result tells most about the outcome that keeps this target out, and the
    steps between ask the certified point with the highest upper bound.

    If all models are right, then every asked point is within all limits, with probability at least
    1 - delta, whatever is pending or late. Nothing is promised about points that are never
    certified. Bounds that contradict each other refute the models, and so does a lower bound of
    the RKHS norm that exceeds B.

    On a finite set without contexts the bounds are kept at all points. In a box and with contexts
    they are kept at seeds and asked points; elsewhere a point is certified by the present bounds.
    The best points of a box are found by searches, which begin at certified points and drop what is
    not certified. With contexts everything is certified and chosen in the context of the step.

    ``info`` of a trial has the keys of `SafeChoice`, and on a finite set the row of the point as
    ``index``. The limits and the outcomes keep their sign if the strategy minimises.

    The arguments are those of `safe_exploration`.

    Raises:
        ValueError: If an argument has an impossible value. The message names the argument.
        NoCertifiedPointError: When asked in a context in which no certified point is known.

    Warns:
        ModelRefutedWarning: The told data refute the model of a quantity: its bounds contradict
            each other, or its RKHS norm exceeds B.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.1], [1.0]])
        >>> model = bx.KernelGP(RBFKernel(), noise_variance=0.01)
        >>> strategy = bx.strategies.SafeExploration(
        ...     points, model, outcome_models={"pressure": model},
        ...     thresholds={"pressure": "<= 1.0"}, safe_seed=[[0.0]], rkhs_bound=1.5, noise_std=0.1,
        ... )
        >>> strategy.tell(strategy.ask(), 0.3, {"pressure": -0.5})
        >>> strategy.certified.tolist()
        [True, True, False]
    """

    record = SafeChoice

    def __init__(
        self,
        domain: Domain,
        model: KernelGP,
        *,
        outcome_models: Mapping[str, KernelGP],
        thresholds: Mapping[str, str | Limit],
        safe_seed: Any,
        rkhs_bound: float | Sequence[float],
        noise_std: float | Sequence[float],
        delta: float = 0.1,
        misspecification: float | Sequence[float] = 0.0,
        radius: float = 0.0,
        norm: Norm = "l2",
        bounds: Literal["mixture", "ladder"] = "mixture",
        rule: Literal["goal", "widest"] | Rule = "goal",
        on_refuted: Literal["seed", "stop"] = "seed",
        pending: Pending = "hallucinate",
        seed: int = 0,
        context_domain: Domain | int | ContextSpace | None = None,
        minimize: bool | None = None,
    ) -> None:
        super().__init__(domain, seed, context_domain=context_domain, minimize=minimize)
        if domain.dtype != torch.float64:
            raise ValueError(f"domain must be in float64, got {short(domain)}")
        names = self.outcome_names = checked_names(outcome_models, thresholds)
        limits = {each: Limit.read(thresholds[each], f"thresholds[{each!r}]") for each in names}
        self.outcome_units = {name: limit.unit for name, limit in limits.items()}
        require_one_of(on_refuted, "on_refuted", ("seed", "stop"))
        if not callable(rule):
            require_one_of(rule, "rule", ("goal", "widest"))
        require_one_of(pending, "pending", ("hallucinate", "ignore"))
        self.rule, self.on_refuted = rule, on_refuted
        probes = probes_of(domain, self.context_space, self.seed)[:1]
        for each in (model, *outcome_models.values()):
            _check_model(each, probes)
        numbers = rkhs_bound, noise_std, delta, misspecification, bounds
        assumed = quantities([None, *limits.values()], *numbers)
        models = [model.negated() if minimize else model, *outcome_models.values()]
        self._seeds = self._checked_seeds(safe_seed)
        ball = Perturbations(radius, norm)
        self._balls = None
        if bool(ball.radii(domain.like).any()):
            if not isinstance(domain, FiniteSet):
                raise ValueError(
                    f"radius must be 0 in a box, got {short(radius)}: a search of a ball does not "
                    "certify what it does not find"
                )
            self._balls = ball.on(domain)
        # Whether the bounds are kept at all points, not only at asked ones.
        self._is_listed = isinstance(domain, FiniteSet) and self.context_space is None
        # The rows of the seeds if they are the same in every context.
        self._seed_rows: list[int] | None = None
        if isinstance(domain, FiniteSet) and self._seeds.shape[-1] == domain.dim:
            self._seed_rows = domain.index(self._seeds).tolist()
        kind, points = JointBounds, self._seeds
        if isinstance(domain, FiniteSet) and self._is_listed:
            kind, points = SafeBounds, domain.points
        elif self.context_space is not None and points.shape[-1] == domain.dim:
            points = points[:0]  # actions, which are no joint rows
        # The bounds of the value, then of each outcome.
        self._bounds: list[Any] = [
            kind(own, points, quantity, PendingPolicy(pending))
            for own, quantity in zip(models, assumed, strict=True)
        ]
        # The number of results when the models were refuted.
        self.refuted_at: int | None = None
        # The targets that are given up until more points are certified.
        self._struck: list[int] = []
        # The number of certified points, if the bounds are kept at all points.
        self._size = int(self.certified.sum()) if self._is_listed else 0

    # --- what is known ----------------------------------------------------------------------------

    @property
    def certified(self) -> Tensor:
        """A mask of the points that are certified, ``N``. Once the models are refuted, only the
        seeds are. It raises a ValueError in a box and with contexts, where `slack` says what is
        certified."""
        here = self._here(None) if self._is_listed else None
        if not isinstance(here, SafeList):
            raise ValueError("certified needs a FiniteSet without contexts: use slack(X, context)")
        return here.certified

    def slack(self, X: Any, context: ContextLike | None = None) -> Tensor:
        """By how much the bounds are within the limits, in the units of the nearest outcome.

        Args:
            X: Points of the domain, ``n x d``.
            context: The context, if the strategy takes contexts.

        Returns:
            The least slack of all outcomes, and of the points within the radius, ``n``; inf at
            seeds, and -inf elsewhere before the first result and once the models are refuted.

        Raises:
            ValueError: If a point lies outside the domain, or if `ask` would refuse the context.
        """
        X = self.domain.require_contains(X, "X")
        here = self._here(self.checked_context(context))
        if isinstance(here, SafeBox):
            return here.slacks(X)
        return here.slack[cast(FiniteSet, self.domain).index(X)]

    def certificate(self, context: ContextLike | None = None) -> tuple[float, float] | None:
        """How much better than the recommended point a point may be. In a box it is as good as its
        searches.

        Args:
            context: The context, if the strategy takes contexts.

        Returns:
            By how much the value of a certified point may be better, and by how much that of a
            point that may be safe, in units of the value. None once the models are refuted.

        Raises:
            NoCertifiedPointError: If no certified point is known in the context.
            ValueError: If `ask` would refuse the context.
        """
        if self.refuted_at is not None:
            return None
        return _certificate(self._somewhere(self.checked_context(context)))

    def recommend(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The certified point whose value is best in the worst case, which need not have been
        evaluated. Once the models are refuted, it is the seed with the best results.

        Args:
            context: The context, if the strategy takes contexts.

        Returns:
            The ``d``-dim point, and the worst value that its bounds allow.

        Raises:
            NoCertifiedPointError: If no certified point is known in the context.
            ValueError: If `ask` would refuse the context.
        """
        return self._recommended(self._somewhere(self.checked_context(context)))

    def _recommended(self, here: Any) -> tuple[Tensor, float]:
        place = here.safest if self.refuted_at is None else self._best_seed(here)
        return here.point(place), self.history.sign * here.interval(place)[0]

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings and lists.

        Returns:
            A dict with the keys of `Strategy.report` and

            - ``certified``: the number of certified points; None in a box and with contexts;
            - ``inside``, ``outside``: the numbers of `certificate`; None with contexts, and once
              the models are refuted;
            - ``refuted_at``: the number of results when the models were refuted, or None;
            - ``uncertified``: the ids of asked trials whose points are not certified any more,
              as after a correction, or once the models are refuted;
            - ``recommended``: the point of `recommend` as ``x``; None with contexts.
        """
        inside = outside = recommended = None
        if self.context_space is None:
            here = self._somewhere(None)
            if self.refuted_at is None:
                inside, outside = _certificate(here)
            recommended = {"x": self._recommended(here)[0].tolist()}
        return super().report() | {
            "certified": self._size if self._is_listed else None,
            "inside": inside,
            "outside": outside,
            "refuted_at": self.refuted_at,
            "uncertified": self._uncertified(),
            "recommended": recommended,
        }

    def evaluated_means(self) -> Tensor:
        if not self._is_listed:
            return self.means_at(self._maximised()[0])
        rows = [self.history.trials[id].info["index"] for id in self.history.values]
        return self._bounds[0].told_mean(self.history)[rows]

    def means_at(self, X: Tensor) -> Tensor:
        return self._bounds[0].means_at(X)

    def check_joint(self, X: Tensor) -> None:
        for each in self._bounds:
            each.model.require_takes(X)

    def _mixture(self, context: Tensor | None) -> GPMixture:
        model = self._bounds[0].model.fork()
        X, Y = self._maximised()
        if len(X):
            model.add(X, Y)
        return GPMixture.of([model])

    # --- decisions --------------------------------------------------------------------------------

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        if self.refuted_at is not None and self.on_refuted == "stop":
            raise ModelRefutedError(
                f"the models were refuted after {self.refuted_at} results, so that nothing more is "
                "asked"
            )

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        here, struck = self._somewhere(choices.context), []
        place, kind, target = self._chosen(here, struck)
        if self._is_listed:
            self._struck += struck
        x, slack = here.point(place), here.slack_at(place)
        is_row = isinstance(here, SafeList)
        choice = SafeChoice(
            kind=kind,
            certified=here.size,
            slack=None if slack == inf else slack,
            target=target if is_row else None,
            target_point=None if is_row or target is None else tuple(target.tolist()),
            struck=tuple(struck) if struck and self._is_listed else None,
        )
        return x, ({"index": place} if is_row else {}) | plain(choice)

    def _chosen(self, here: Any, struck: list[int]) -> tuple[Any, Any, Any]:
        """The place of the next point, the kind of the trial and the place of its target. Targets
        that are given up are added to ``struck``."""
        step = self.history.num_asked
        if self.refuted_at is not None:
            return self._best_seed(here), "seed", None
        if not self.history.values:
            return here.seeds[step % len(here.seeds)], "seed", None
        if callable(self.rule):
            return here.ruled(self.rule, self, self._seed_of(step)), "rule", None
        while not here.is_certified(target := here.highest_possible(self._struck + struck)):
            if step % 2:
                return here.highest(), "exploit", target
            place = here.widest() if self.rule == "widest" else here.most_telling(target)
            if place is not None:
                return place, "expand", target
            if isinstance(here, SafeBox):
                return here.highest(), "exploit", target
            struck.append(target)
        return target, "exploit", None

    def _here(self, context: Tensor | None) -> SafeList | SafeBox:
        """What is certified in a context."""
        domain = self.domain
        seeds, only_seeds = self._seeds_in(context), self._only_seeds
        if isinstance(domain, FiniteSet):
            joint = with_context(domain.points, context)
            bounds = self._bounds
            if not self._is_listed:
                bounds = [BoundsInContext(each, joint) for each in bounds]
            rows = self._seed_rows
            if rows is None:
                rows = domain.index(seeds).tolist()
            return SafeList(domain.points, bounds, rows, only_seeds, self._balls)
        seed = self._seed_of(self.history.num_asked)
        return SafeBox(domain, self._bounds, seeds, only_seeds, context, seed)

    @property
    def _only_seeds(self) -> bool:
        """Whether nothing but the seeds is certified."""
        return self.refuted_at is not None or not self.history.values

    def _seeds_in(self, context: Tensor | None) -> Tensor:
        """The seeds of a context, ``n x d``."""
        seeds, d = self._seeds, self.domain.dim
        if seeds.shape[-1] == d:
            return seeds
        return seeds[(seeds[:, d:] == context).all(dim=-1), :d]

    def _somewhere(self, context: Tensor | None) -> Any:
        """What is certified in a context, which is something."""
        here = self._here(context)
        if here.is_empty:
            raise NoCertifiedPointError(
                f"context must be one in which a certified point is known, got {short(context)}"
            )
        return here

    def _best_seed(self, here: Any) -> Any:
        """The seed with the largest mean of its own results, in any context, or the first one."""
        results = [(self.history.trials[id].x, y) for id, y in self.history.values.items()]

        def mean(place: Any) -> float:
            own = [value for x, value in results if torch.equal(x, here.point(place))]
            return sum(own) / len(own) if own else -inf

        return max(here.seeds, key=mean)

    def _checked_seeds(self, given: Any) -> Tensor:
        """Actions that are safe, ``n x d``, or joint rows that are."""
        d, space, name = self.domain.dim, self.context_space, "safe_seed"
        first = given[0] if isinstance(given, list | tuple) and given else given
        X = None
        if space is not None and not isinstance(first, Mapping):
            X = as_points(given, None, self.domain.like, name)
        if space is not None and X is not None and X.shape[-1] > d:
            seeds = checked_joint(self.domain, X, space, name)
        else:
            seeds = self.domain.require_contains(given, name)
        if not len(seeds):
            raise ValueError(f"{name} must have at least one point, got none")
        # Each once, in their order.
        return seeds.new_tensor([*dict.fromkeys(map(tuple, seeds.tolist()))])

    def _uncertified(self) -> list[int]:
        """The ids of asked trials whose points are not certified in their contexts."""
        asked = [each for each in self.history.trials if not self.history.is_attached(each.id)]
        if self.context_space is None:
            here: Any = self._here(None)
            places = [trial.info.get("index", trial.x) for trial in asked]
            are_certified = map(here.is_certified, places)
        else:
            are_certified = map(self._is_certified, asked)
        return [each.id for each, is_so in zip(asked, are_certified, strict=True) if not is_so]

    def _is_certified(self, trial: Trial) -> bool:
        """Whether the point of a trial is certified in its context, from the bounds near it
        alone."""
        X, seeds = trial.x[None], self._seeds_in(trial.context)
        if bool((seeds == X).all(dim=-1).any()):
            return True
        if self._balls is not None:
            X = cast(FiniteSet, self.domain).points[self._balls.neighbours(trial.info["index"])]
        outcomes = [each.now for each in self._bounds[1:]]
        near = CertifiedSet(outcomes, seeds[:0], self._only_seeds, trial.context)
        return bool(near.contains(X).all())

    # --- the next state ---------------------------------------------------------------------------

    def _recall(self, trial: Trial) -> None:
        struck = super()._recall(trial).struck or ()
        if struck and (not self._is_listed or max(struck) >= len(self.certified)):
            raise ValueError(f"struck in the info of trial {trial.id} must be rows, got {struck}")
        self._struck += struck

    def _absorb(self, event: Event) -> None:
        names = ("", *self.outcome_names)
        for place, name in enumerate(names):
            own = event
            if name and isinstance(event, Told | Attached):
                own = replace(event, value=event.outcomes[name])
            self._bounds[place] = self._bounds[place].successor()
            self._bounds[place].absorb(own, self.history)
        if not isinstance(event, Told | Attached):
            return
        if self._is_listed:
            self._count()
        self._look()

    def _count(self) -> None:
        """Counts the certified points; if there are more than before, struck targets come back."""
        before, self._size = self._size, int(self.certified.sum())
        if self._size > before:
            self._struck = []

    def _look(self) -> None:
        """Notes whether the told data refute the model of a quantity."""
        names = ("the value", *map(repr, self.outcome_names))
        refuted = [name for name, each in zip(names, self._bounds, strict=True) if each.is_refuted]
        if not refuted or self.refuted_at is not None:
            return
        self.refuted_at = len(self.history.values)
        if self._is_listed:
            self._count()
        pending = f"; trials {self.pending} are pending" if self.pending else ""
        self._note(
            f"the model of {', '.join(refuted)} was refuted after {self.refuted_at} results, so "
            f"that nothing is certified any more{pending}",
            ModelRefutedWarning,
        )


def _certificate(here: Any) -> tuple[float, float]:
    """How much better than the recommended point a certified point may be, and one that may be
    safe."""
    settled, _ = here.interval(here.safest)
    places = here.highest(), here.highest_possible([])
    inside, outside = (here.interval(place)[1] - settled for place in places)
    return inside, max(outside, 0.0)


def _check_model(model: Any, points: Tensor) -> None:
    if not isinstance(model, KernelGP):
        raise ValueError(f"models must be KernelGPs, got a {type(model).__name__}")
    if model.batch_shape or model.has_transforms or model.num_observations:
        raise ValueError("models must have no batch, no transforms and no data")
    if len(points):
        model.require_takes(points)

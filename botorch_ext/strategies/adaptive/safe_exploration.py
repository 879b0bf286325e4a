"""Maximisation that asks only points whose outcomes are certified to be within limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from botorch_ext.checks import short, whole_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.domains.ranks import first_highest
from botorch_ext.exceptions import ModelRefutedError, ModelRefutedWarning
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.records import Finite, plain
from botorch_ext.search.box_balls import Norm
from botorch_ext.search.perturbations import Perturbations
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.pending import Pending, PendingPolicy
from botorch_ext.strategies.adaptive.safe_bounds import SafeBounds
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Attached, Event, Told, Trial
from botorch_ext.widths.base import check_delta, check_misspecification
from botorch_ext.widths.limits import (
    RIDGES_OF_BOUNDS,
    Limit,
    checked_names,
    one_for_each,
    require_one_of,
)
from botorch_ext.widths.tight import Ladder

#: A function from the rows of the certified points, the strategy and a seed to one of these rows.
Rule = Callable[[Tensor, "SafeExploration", int], int]

#: The ridges of each kind of bounds.


@dataclass(frozen=True, kw_only=True)
class SafeChoice:
    """The record of a trial that `SafeExploration` chose.

    Args:
        kind: "exploit", a point that may be the best one; "expand", a point whose result tells most
            about the target; "rule", a point that a function of the user chose; or "seed", a seed,
            asked before the first result and once the models are refuted.
        certified: The number of certified points.
        slack: By how much the bounds at the point are within the limits, in the units of the
            outcome that is nearest to its limit; None for seeds.
        target: The row of the point that seems best among those that may be safe, if it is not
            certified.
        struck: The rows of targets that were given up at this step, since no certified point tells
            anything about them.
    """

    kind: Literal["exploit", "expand", "rule", "seed"]
    certified: int
    slack: Finite | None = None
    target: int | None = None
    struck: tuple[int, ...] | None = None


class SafeExploration(Strategy):
    """Maximises the value among points of a finite set whose outcomes are certified to be within
    their limits.

    A point is certified if it is a seed, or if the confidence bounds of every outcome are within
    its limit there, and within ``radius`` of there. The bounds follow from results, so that
    ``rkhs_bound`` alone certifies nothing, and are intersected over time, so that certified points
    stay certified.

    Until the first result is told, only seeds are asked, in turn, whatever ``rule`` is: a wrong
    model is often refuted there. Then a step asks the point with the highest upper bound of the
    value among the points that may be safe, if it is certified. If not, every other step asks the
    certified point whose result tells most about the outcome that keeps this target out, and the
    steps between ask the certified point with the highest upper bound.

    If all models are right, then every asked point is within all limits, with probability at least
    1 - delta, whatever is pending or late. Nothing is promised about points that are never
    certified. Bounds that contradict each other refute the models, and so does a lower bound of
    the RKHS norm that exceeds B.

    ``info`` of a trial has the row of the point as ``index`` and the keys of `SafeChoice`. The
    limits and the outcomes keep their sign if the strategy minimises.

    Args:
        domain: A `FiniteSet` in float64.
        model: The model of the value, a `KernelGP` without data and transforms.
        outcome_models: The models of the outcomes by name, likewise.
        thresholds: The limit of each outcome by name: a text such as ``"<= 5.0"`` or ``">= 0.3"``.
        safe_seed: Points that are known to be safe, at least one: ``n x d``, or dicts by name.
        rkhs_bound: B, at least the RKHS norm of each quantity, in its units: one number, or one for
            the value and then one for each outcome.
        noise_std: sigma, the sub-Gaussian constant of the noise, likewise.
        delta: The failure probability of all bounds together.
        misspecification: eps, the largest distance of each quantity to what its model can express,
            likewise.
        radius: The radius of the ball around a point in which all points must be within the limits.
        norm: The norm of the ball: "l2" or "linf".
        bounds: "mixture", the bounds of `Mixture`, or "ladder", those of `Ladder`.
        rule: "goal", as above. "widest": instead of the point that tells most, the certified point
            with the widest bounds in units of the prior. Or a function from the rows of the
            certified points, this strategy and a seed to one of these rows.
        on_refuted: "seed": once the models are refuted, only the seed with the best mean of its own
            results is asked. "stop": `ask` raises `ModelRefutedError`.
        pending: How pending trials count when a point to learn from is chosen: "hallucinate" or
            "ignore". They never count in what is certified.
        seed: The seed that the function ``rule`` is given.
        minimize: As for `Strategy`.

    Raises:
        ValueError: If an argument has an impossible value. The message names the argument.

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
        thresholds: Mapping[str, str],
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
        minimize: bool | None = None,
    ) -> None:
        super().__init__(domain, seed, minimize=minimize)
        if not isinstance(domain, FiniteSet) or domain.points.dtype != torch.float64:
            raise ValueError(f"domain must be a FiniteSet in float64, got {short(domain)}")
        self._points = domain.points
        self.outcome_names = checked_names(outcome_models, thresholds)
        require_one_of(bounds, "bounds", tuple(RIDGES_OF_BOUNDS))
        require_one_of(on_refuted, "on_refuted", ("seed", "stop"))
        if not callable(rule):
            require_one_of(rule, "rule", ("goal", "widest"))
        require_one_of(pending, "pending", ("hallucinate", "ignore"))
        self.rule, self.on_refuted = rule, on_refuted
        for each in (model, *outcome_models.values()):
            _check_model(each, domain.points[:1])
        num = 1 + len(self.outcome_names)
        delta = check_delta(delta) / num
        numbers = zip(
            one_for_each(rkhs_bound, "rkhs_bound", num),
            one_for_each(noise_std, "noise_std", num),
            one_for_each(misspecification, "misspecification", num),
            strict=True,
        )
        limits = [Limit.read(thresholds[name], f"thresholds[{name!r}]") for name in outcome_models]
        models = [model.negated() if minimize else model, *outcome_models.values()]
        # The bounds of the value, then of each outcome.
        self._bounds = [
            SafeBounds(
                own,
                domain.points,
                Ladder(B, sigma, delta, RIDGES_OF_BOUNDS[bounds]),
                check_misspecification(eps),
                limit,
                PendingPolicy(pending),
            )
            for own, (B, sigma, eps), limit in zip(models, numbers, [None, *limits], strict=True)
        ]
        seeds = domain.require_contains(safe_seed, "safe_seed")
        if not len(seeds):
            raise ValueError("safe_seed must have at least one point, got none")
        self._seeds: list[int] = list(dict.fromkeys(domain.index(seeds).tolist()))
        ball = Perturbations(radius, norm)
        self._balls = ball.on(domain) if bool(ball.radii(domain.like).any()) else None
        # The number of results when the models were refuted.
        self.refuted_at: int | None = None
        # The targets that are given up until more points are certified.
        self._struck: list[int] = []
        self._certify()

    # --- what is known ----------------------------------------------------------------------------

    @property
    def certified(self) -> Tensor:
        """A mask of the points that are certified, ``N``; a copy. Once the models are refuted, only
        the seeds are."""
        return self._certified.clone()

    def certificate(self) -> tuple[float, float] | None:
        """How much better than the recommended point a point may be.

        Returns:
            By how much the value of a certified point may be better, and by how much that of a
            point that may be safe, in units of the value. None once the models are refuted.
        """
        if self.refuted_at is not None:
            return None
        lower, upper = self._bounds[0].lower, self._bounds[0].upper
        settled = lower[self._certified].max()
        reach = (upper[mask].max() - settled for mask in (self._certified, self._possible()))
        inside, outside = (float(each) for each in reach)
        return inside, max(outside, 0.0)

    def recommend(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The certified point whose value is best in the worst case, which need not have been
        evaluated. Once the models are refuted, it is the seed with the best results.

        Args:
            context: Must be None, since there are no contexts.

        Returns:
            The ``d``-dim point, and the worst value that its bounds allow.

        Raises:
            ValueError: If a context is given.
        """
        self.checked_context(context)
        lower = self._bounds[0].lower
        row = self._best_seed()
        if self.refuted_at is None:
            row = _highest(lower, self._certified)
        return self._points[row].clone(), self.history.sign * float(lower[row])

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings and lists.

        Returns:
            A dict with the keys of `Strategy.report` and

            - ``certified``: the number of certified points;
            - ``inside``, ``outside``: the numbers of `certificate`, or None;
            - ``refuted_at``: the number of results when the models were refuted, or None;
            - ``uncertified``: the ids of asked trials whose points are not certified any more,
              as after a correction, or once the models are refuted;
            - ``recommended``: the point of `recommend` as ``x``.
        """
        inside, outside = self.certificate() or (None, None)
        asked = (trial for trial in self.history.trials if not self.history.is_attached(trial.id))
        return super().report() | {
            "certified": int(self._certified.sum()),
            "inside": inside,
            "outside": outside,
            "refuted_at": self.refuted_at,
            "uncertified": [t.id for t in asked if not bool(self._certified[t.info["index"]])],
            "recommended": {"x": self.recommend()[0].tolist()},
        }

    def evaluated_means(self) -> Tensor:
        rows = [self.history.trials[id].info["index"] for id in self.history.values]
        return self._bounds[0].told_mean(self.history)[rows]

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
        known = len(self._struck)
        row, kind, target = self._chosen()
        struck = tuple(self._struck[known:])
        choice = SafeChoice(
            kind=kind,
            certified=int(self._certified.sum()),
            slack=None if row in self._seeds else float(self._slack()[row]),
            target=target,
            struck=struck or None,
        )
        return self._points[row].clone(), {"index": row} | plain(choice)

    def _chosen(self) -> tuple[int, Any, int | None]:
        """The row of the next point, the kind of the trial and the row of its target."""
        step, certified = self.history.num_asked, self._certified
        if self.refuted_at is not None:
            return self._best_seed(), "seed", None
        if not self.history.values:
            return self._seeds[step % len(self._seeds)], "seed", None
        if callable(self.rule):
            return self._by_rule(self.rule), "rule", None
        upper, left = self._bounds[0].upper, self._possible()
        left[self._struck] = False
        while not bool(certified[target := _highest(upper, left)]):
            if step % 2:
                return _highest(upper, certified), "exploit", target
            if self.rule == "widest":
                shares = [(each.upper - each.lower) / each.prior_length for each in self._bounds]
                return _highest(torch.stack(shares).amax(dim=0), certified), "expand", target
            row = self._nearest_limit(target).most_telling(certified, target)
            if row is not None:
                return row, "expand", target
            self._struck.append(target)
            left[target] = False
        return target, "exploit", None

    def _by_rule(self, rule: Rule) -> int:
        rows = self._certified.nonzero().squeeze(-1)
        row = whole_number(rule(rows, self, self._seed_of(self.history.num_asked)), "rule", least=0)
        if row not in rows.tolist():
            raise ValueError(f"rule must return the row of a certified point, got {row}")
        return row

    def _nearest_limit(self, target: int) -> SafeBounds:
        """The outcome that keeps a target out: its slack is least, in lengths of its interval."""
        outcomes = self._bounds[1:]
        shares = [each.slack[target] / (each.upper - each.lower)[target] for each in outcomes]
        return outcomes[int(first_highest(-torch.stack(shares)))]

    def _slack(self, beyond_rounding: bool = False) -> Tensor:
        """The least slack of all outcomes at every point, and within the radius of it, ``N``."""
        slacks = [
            each.slack - each.tolerance if beyond_rounding else each.slack
            for each in self._bounds[1:]
        ]
        slack = torch.stack(slacks).amin(dim=0)
        return slack if self._balls is None else self._balls.worst_case(slack)[0]

    def _possible(self) -> Tensor:
        """A mask of the points that may be safe, ``N``."""
        slack = torch.stack([each.possible_slack for each in self._bounds[1:]])
        return self._certified | (slack >= 0).all(dim=0)

    def _best_seed(self) -> int:
        """The row of the seed with the largest mean of its own results, or of the first seed."""
        results: dict[int, list[float]] = {row: [] for row in self._seeds}
        for id, value in self.history.values.items():
            results.get(self.history.trials[id].info["index"], []).append(value)
        means = {row: sum(own) / len(own) for row, own in results.items() if own}
        return max(means, key=means.__getitem__, default=self._seeds[0])

    # --- the next state ---------------------------------------------------------------------------

    def _recall(self, trial: Trial) -> None:
        struck = super()._recall(trial).struck or ()
        if any(row >= len(self._points) for row in struck):
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
        before = int(self._certified.sum())
        self._certify()
        if int(self._certified.sum()) > before:
            self._struck = []
        self._look()

    def _certify(self) -> None:
        if self.refuted_at is None:
            self._certified = self._slack(beyond_rounding=True) >= 0
        else:
            self._certified = torch.zeros_like(self._certified)
        self._certified[self._seeds] = True

    def _look(self) -> None:
        """Notes whether the told data refute the model of a quantity."""
        names = ("the value", *map(repr, self.outcome_names))
        refuted = [name for name, each in zip(names, self._bounds, strict=True) if each.is_refuted]
        if not refuted or self.refuted_at is not None:
            return
        self.refuted_at = len(self.history.values)
        self._certify()
        pending = f"; trials {self.pending} are pending" if self.pending else ""
        self._note(
            f"the model of {', '.join(refuted)} was refuted after {self.refuted_at} results, so "
            f"that nothing is certified any more{pending}",
            ModelRefutedWarning,
        )


def _highest(values: Tensor, among: Tensor) -> int:
    """The first row with the largest value, among those of a mask."""
    return int(first_highest(values.masked_fill(~among, -torch.inf)))


def _check_model(model: Any, points: Tensor) -> None:
    if not isinstance(model, KernelGP):
        raise ValueError(f"models must be KernelGPs, got a {type(model).__name__}")
    if model.batch_shape or model.has_transforms or model.num_observations:
        raise ValueError("models must have no batch, no transforms and no data")
    model.require_takes(points)

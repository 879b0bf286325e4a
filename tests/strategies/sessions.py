"""Sessions with late, reordered, lost and failed results, with contexts and changing actions, what
was known before each of their questions, and strategies that wait or end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from gpytorch.kernels import Kernel, PeriodicKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.models import KernelGP
from botorch_ext.strategies import Abandoned, Asked, Event, OptimisticStrategy, Strategy, Trial
from botorch_ext.strategies.event_lines import as_text as plain  # noqa: F401
from botorch_ext.testing.states import state as snapshot  # noqa: F401
from botorch_ext.widths import Enlarged, SelfNormalized, Width
from tests.helpers import rbf
from tests.laws.scenarios import MINIMUM as MINIMUM
from tests.laws.scenarios import POLICIES as POLICIES
from tests.laws.scenarios import value_of as f
from tests.laws.sessions import drawn_actions
from tests.laws.sessions import script as script
from tests.oracles.models import Candidate, Session

LAMBDA = 0.02
# B, sigma, delta, and a misspecification, so that the width depends on t by itself.
WIDTH = Enlarged(SelfNormalized(1.5, 0.1, 0.1), 0.05)


def kernel() -> RBFKernel:
    return rbf(0.9, 0.5)


def box(**kind: Any) -> Box:
    return Box([[2.0, -3.0], [5.0, -1.5]], **kind)


def finite(**kind: Any) -> FiniteSet:
    x = torch.linspace(2.0, 5.0, 9, dtype=torch.float64)
    y = torch.linspace(-3.0, -1.5, 6, dtype=torch.float64)
    return FiniteSet(torch.cartesian_prod(x, y), **kind)


# Of four tasks: the first two nearly the same, the third their opposite, the fourth of its own and
# of less variance; of rank 3.
_FACTOR = torch.tensor(
    [[1.0, 0.0, 0.0], [0.9, 0.435889894354067, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 0.7]]
).double()


# Kernels of actions and contexts: two columns of the action, then those of the context.


def product(of_actions: Kernel, of_contexts: Kernel) -> Kernel:
    return ActionContextKernel(of_actions, of_contexts, 2)


def half_sum(of_actions: Kernel, of_contexts: Kernel) -> Kernel:
    return ActionContextKernel(of_actions, of_contexts, 2, combination="sum")


def task_kernel() -> TaskKernel:
    return TaskKernel(_FACTOR @ _FACTOR.T)


def periodic(period: float, lengthscale: float = 1.5) -> PeriodicKernel:
    kernel = PeriodicKernel().double()
    kernel.period_length = torch.tensor(period, dtype=torch.float64)
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    return kernel


def scaled(kernel: Kernel, outputscale: float) -> ScaleKernel:
    outer = ScaleKernel(kernel).double()
    outer.outputscale = torch.tensor(outputscale, dtype=torch.float64)
    return outer


def level(value: float) -> ConstantMean:
    """A prior mean that is the same everywhere."""
    mean = ConstantMean().double()
    mean.initialize(constant=value)
    return mean


class Stepwise(Width):
    """A width and an offset that depend on the step; it records what it is called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def __call__(self, t: int, model: Any) -> float:
        self.calls.append((t, model.num_observations))
        return 0.4 + 0.02 * t

    def offset(self, t: int, model: Any) -> float:
        return 0.3 / t


DOMAINS = {"finite": finite, "box": box}
both_domains = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)
slow_on_a_box = pytest.mark.parametrize(
    "domain", [finite, pytest.param(box, marks=pytest.mark.slow)], ids=DOMAINS
)
all_policies = pytest.mark.parametrize("policy", POLICIES)


def make(domain: Domain, policy: str = "hallucinate", **more: Any) -> OptimisticStrategy:
    model = KernelGP(kernel(), LAMBDA, dtype=domain.dtype, device=domain.device)
    return OptimisticStrategy(domain, model, WIDTH, **{"seed": 5, **POLICIES[policy], **more})


class RowsInTurn(Strategy):
    """Asks the rows of a finite set in turn."""

    def _decide(self, choices):
        row = len(self.history.trials) % self.domain.num_points
        return self.domain.points[row].clone(), {"index": row}

    def _absorb(self, event):
        pass

    def evaluated_means(self):
        return self.evaluated()[1]


class InRounds(RowsInTurn):
    """Asks rounds of ``size`` trials: a round waits until none of the round before is pending."""

    def __init__(self, domain: Domain, size: int = 3, horizon: int = 1000) -> None:
        super().__init__(domain)
        self.size, self.horizon = size, horizon

    def require_askable(self, num_trials, choices):
        num_asked = len(self.history.trials)
        if num_asked + num_trials > self.horizon:
            raise HorizonReached(f"{self.horizon - num_asked} trials are left", self.horizon)
        available = self.size - num_asked % self.size
        if available == self.size and self.pending:
            available = 0
        if num_trials > available:
            message = f"{available} trials can be asked, got {num_trials}"
            raise WaitingForObservations(message, self.pending, available)


class InRoundsByContext(InRounds):
    """Asks rounds of the first, second, ... of the points of each step, whatever the context."""

    takes_actions = True

    def __init__(self, domain: Domain, contexts: Domain, horizon: int = 1000) -> None:
        super().__init__(domain, horizon=horizon)
        self.context_space = ContextSpace(contexts)

    def _decide(self, choices):
        points = choices.points(self.domain)
        row = len(self.history.trials) % len(points)
        return points[row].clone(), choices.places(row)


class Stuck(RowsInTurn):
    """Waits, though nothing is pending."""

    def require_askable(self, num_trials, choices):
        raise WaitingForObservations("for ever", [], 0)


Initial = tuple[Tensor, Tensor] | None
CHANCES = {"ask": 0.40, "ask three": 0.04, "tell": 0.46, "abandon": 0.06, "fail": 0.04}
CONTEXT_BOX = torch.tensor([[-1.0, 4.0], [0.5, 7.0]], dtype=torch.float64)


@dataclass(frozen=True, eq=False)
class Setting:
    """What asks are given."""

    draw: Callable[[int, torch.Generator], Tensor] | None = None
    context_domain: Any = None
    share: float = 0.0


def _uniform(num: int, g: torch.Generator) -> Tensor:
    """In `CONTEXT_BOX`; some contexts come again."""
    low, high = CONTEXT_BOX
    fresh = low + (high - low) * torch.rand(num, 2, generator=g, dtype=torch.float64)
    again = torch.randint(max(num // 4, 1), (num,), generator=g)
    return torch.where(torch.rand(num, 1, generator=g) < 0.3, fresh[again], fresh)


def _task(num: int, g: torch.Generator) -> Tensor:
    return torch.randint(4, (num, 1), generator=g).double()


SETTINGS = {
    "alone": Setting(),
    "actions": Setting(share=0.6),
    "tasks": Setting(_task, FiniteSet([[0.0], [1.0], [2.0], [3.0]]), 0.3),
    "reals": Setting(_uniform, Box(CONTEXT_BOX), 0.3),
    "sums": Setting(_uniform, 2),
}


def setting_of(name: str) -> Setting:
    return SETTINGS.get(name, SETTINGS["alone"])


def data(domain: Any, num_points: int, setting: str = "alone") -> tuple[Tensor, Tensor]:
    """Data from before the study in a setting: joint rows and values."""
    X, draw = domain.sample(num_points, 9), setting_of(setting).draw
    if draw is None:
        return X, X.new_tensor([f(x) for x in X])
    Z = draw(num_points, torch.Generator().manual_seed(99)).to(X)
    return torch.cat([X, Z], dim=-1), X.new_tensor([f(x, z) for x, z in zip(X, Z, strict=True)])


def _offer(setting: Setting, domain: Any, step: int) -> dict[str, Tensor]:
    """A context, and sometimes a set of actions, of which one may be there twice."""
    g, offer = torch.Generator().manual_seed(1000 + step), {}
    if setting.draw is not None:
        context = setting.draw(400, torch.Generator().manual_seed(7))[step]
        offer["context"] = context.to(domain.like)
    if float(torch.rand((), generator=g)) < setting.share:
        size = int(torch.randint(1, 13, (), generator=g))
        if isinstance(domain, FiniteSet):
            rows = torch.randint(domain.num_points, (size,), generator=g)
            offer["actions"] = domain.points[rows]
        else:
            U = torch.rand(size, domain.dim, generator=g, dtype=torch.float64)
            offer["actions"] = domain.from_unit(U.to(domain.like))
    return offer


@dataclass
class Played:
    """A strategy that was played with a policy in a setting: what each trial was chosen from, and
    the models alive after each event."""

    strategy: Any
    policy: str
    setting: Setting
    offers: dict[int, dict[str, Tensor]] = field(default_factory=dict)
    alive: list[list[int]] = field(default_factory=list)


def play(
    strategy: Any, policy: str, setting: Setting | None = None, length: int = 50, seed: int = 0
) -> Played:
    """Plays a drawn script of so many actions."""
    played = Played(strategy, policy, Setting() if setting is None else setting)
    for kind, share, noise in drawn_actions(CHANCES, length, seed):
        pending = strategy.pending
        if kind in ("ask", "ask three") or not pending:
            offer = _offer(played.setting, strategy.domain, len(strategy.history.trials))
            asked = strategy.ask(3 if kind == "ask three" else 1, **offer)
            played.offers |= {trial.id: offer for trial in asked}
        else:
            id = pending[int(share * len(pending))]
            if kind == "tell":
                trial = strategy.history.trials[id]
                strategy.tell(id, f(trial.x, trial.context) + noise / 3)
            else:
                strategy.abandon(id, failed=kind == "fail")
        # An action is several events only where it asks, and asking rejects nothing.
        more = len(strategy.events) - len(played.alive)
        played.alive += [list(getattr(strategy, "alive", []))] * more
    return played


# Kernel, noise variance and prior mean of a model.
Described = tuple[Kernel, float, Any]


@dataclass(frozen=True, eq=False)
class Question:
    """One ask that was no initial point: all joint points so far, the asked one at the row ``own``,
    then all that could be chosen."""

    trial: Trial
    points: Tensor
    own: int

    def models(self, described: Sequence[Described]) -> list[Candidate]:
        return candidates(described, self.points)

    def shortfall(self, scores: Tensor, own: Tensor) -> float:
        """How much more the best of what could be chosen scores than ``own`` at its place."""
        return float(scores[..., self.own + 1 :].max() - own[self.own])


def candidates(described: Sequence[Described], points: Tensor) -> list[Candidate]:
    """The models at some points, by their definitions."""
    return [Candidate.at(points, *numbers, u) for u, numbers in enumerate(described)]


def joint(points: Tensor, context: Tensor | None) -> Tensor:
    if context is None:
        return points
    return torch.cat([points, context.expand(len(points), -1)], dim=-1)


def questions(
    played: Played, initial: Initial = None, fine: Tensor | None = None
) -> Iterator[tuple[Event, Session, Question | None]]:
    """Every event with what was known before it, and the question where it is one."""
    strategy, session, rows = played.strategy, *_start(played.policy, initial)
    for event in strategy.events:
        question = None
        if isinstance(event, Asked):
            trial, offer = event.trial, played.offers[event.trial.id]
            context, pool = offer.get("context"), offer.get("actions", fine)
            own = joint(trial.x[None], context)
            if not trial.info.get("initial"):
                pool = strategy.domain.points if pool is None else pool
                points = torch.cat([*(row[None] for row in rows), own, joint(pool, context)])
                question = Question(trial, points, len(rows))
            rows.append(own[0])
        yield event, session, question
        if not (isinstance(event, Abandoned) and event.failed):  # failed: pending for ever
            session.apply(event)


def known(played: Played, initial: Initial = None) -> tuple[Session, Tensor]:
    """What is known after all events, and the joint rows it speaks of."""
    session, rows = _start(played.policy, initial)
    for _, latest, _ in questions(played, initial, played.strategy.domain.like[:0]):
        session = latest
    return session, torch.stack([*rows, *(trial.point for trial in played.strategy.history.trials)])


def _start(policy: str, initial: Initial) -> tuple[Session, list[Tensor]]:
    X, Y = ([], []) if initial is None else (list(initial[0]), initial[1].tolist())
    return Session(policy, lambda trial: len(X) + trial.id, (list(range(len(X))), Y)), [*X]


def grid(num_per_axis: int) -> Tensor:
    """Points of `box`."""
    axes = [
        torch.linspace(*side, num_per_axis, dtype=torch.float64) for side in box().bounds.T.tolist()
    ]
    return torch.cartesian_prod(*axes)

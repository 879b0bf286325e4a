"""Sessions with late, reordered, lost and failed results, with contexts and changing actions, and
what was known before each of their questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.domains import Box, FiniteSet
from botorch_ext.strategies import Abandoned, Asked, Event, Trial
from botorch_ext.testing.sessions import drawn_actions
from tests.oracles.models import Candidate, Session
from tests.strategies.sessions import box

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


def f(x: Tensor, context: Tensor | None = None) -> float:
    """What is observed, but for noise: between -1.9 and 0.1 without contexts."""
    z = 0.0 if context is None else float(context.sum())
    return float(torch.sin(2 * x[0] + 0.7 * z) * torch.cos(x[1] - 0.3 * z) + 0.3 * x[1])


def data(name: str, domain: Any, num_points: int) -> tuple[Tensor, Tensor]:
    """Data from before the study in a setting: joint rows and values."""
    X, draw = domain.sample(num_points, 9), setting_of(name).draw
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

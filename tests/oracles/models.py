"""Methods over several models written out: plain loops, dense algebra."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pytest
import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.strategies import Abandoned, Asked, Event, Told
from tests.laws.scenarios import MINIMUM, POLICIES


@dataclass(frozen=True)
class Candidate:
    """One model on a fixed list of points, whose rows everything below speaks of."""

    K: Tensor
    prior: Tensor
    noise_variance: float
    position: int = 0

    @classmethod
    def at(
        cls,
        points: Tensor,
        kernel: Kernel | Callable[[Tensor], Tensor],
        noise_variance: float,
        mean: Callable[[Tensor], Tensor] | None = None,
        position: int = 0,
    ) -> Candidate:
        with torch.no_grad():
            K = kernel(points)
            K = K if isinstance(K, Tensor) else K.to_dense()
            prior = points.new_zeros(len(points)) if mean is None else mean(points)
        return cls(K.detach(), prior.detach(), noise_variance, position)

    def _system(self, rows: list[int]) -> Tensor:
        return self.K[rows][:, rows] + self.noise_variance * torch.eye(
            len(rows), dtype=self.K.dtype
        )

    def mean(self, rows: list[int], y: list[float]) -> Tensor:
        """The posterior mean at all points."""
        if not rows:
            return self.prior
        residual = self.K.new_tensor(y) - self.prior[rows]
        return self.prior + self.K[:, rows] @ torch.linalg.solve(self._system(rows), residual)

    def std(self, rows: list[int]) -> Tensor:
        """The posterior standard deviation at all points."""
        return _std_and_gain(self, tuple(rows))[0]

    def gain(self, rows: list[int]) -> float:
        """1/2 log det(I + K / lambda)."""
        return _std_and_gain(self, tuple(rows))[1]

    def log_evidence(self, rows: list[int], y: list[float]) -> float:
        """log p(y)."""
        if not rows:
            return 0.0
        A, residual = self._system(rows), self.K.new_tensor(y) - self.prior[rows]
        fit = residual @ torch.linalg.solve(A, residual)
        log_det = torch.linalg.slogdet(A).logabsdet
        return -0.5 * float(fit + log_det + len(rows) * math.log(2 * math.pi))


@lru_cache(maxsize=100)
def _std_and_gain(model: Candidate, rows: tuple[int, ...]) -> tuple[Tensor, float]:
    """Asked for again and again between two events."""
    variance = model.K.diagonal()
    if not rows:
        return variance.sqrt(), 0.0
    A, K = model._system(list(rows)), model.K[list(rows)]
    variance = variance - (torch.linalg.solve(A, K) * K).sum(dim=0)
    gain = 0.5 * torch.linalg.slogdet(A / model.noise_variance).logabsdet.item()
    return variance.clamp_min(0).sqrt(), gain


@dataclass(frozen=True)
class Belief:
    """The rows and values the mean sees, and the rows the standard deviation and the width see."""

    rows: list[int]
    y: list[float]
    seen: list[int]

    @property
    def t(self) -> int:
        return len(self.seen) + 1


@dataclass
class Session:
    """What follows from events alone."""

    policy: str
    row: Callable[[Any], int]
    initial: tuple[list[int], list[float]] = field(default_factory=lambda: ([], []))
    rows: dict[int, int] = field(default_factory=dict)
    info: dict[int, dict[str, Any]] = field(default_factory=dict)
    values: dict[int, float] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    late: set[int] = field(default_factory=set)

    def is_in_time(self, id: int) -> bool:
        """Whether what is told now comes before the ask of step s + m + 1."""
        return len(self.rows) <= id + POLICIES[self.policy].get("timeout", math.inf) + 1

    def apply(self, event: Event) -> None:
        match event:
            case Asked(trial):
                self.rows[trial.id] = self.row(trial)
                self.info[trial.id] = trial.info
            case Told(id, value):
                if self.is_in_time(id):
                    self.values[id] = value
                else:
                    self.late.add(id)
            case Abandoned(id):
                self.gone.add(id)

    def _belief(self, known: dict[int, float], seen: Sequence[int]) -> Belief:
        rows, y = list(self.initial[0]), list(self.initial[1])
        return Belief(
            rows + [self.rows[id] for id in known],
            y + list(known.values()),
            rows + [self.rows[id] for id in seen],
        )

    @property
    def told(self) -> Belief:
        """What was told in time, and nothing else."""
        return self._belief(self.values, list(self.values))

    @property
    def believed(self) -> Belief:
        """As the pending policy says."""
        kept = [id for id in self.rows if id not in self.gone]
        if POLICIES[self.policy]["pending"] == "ignore":
            return self.told
        if POLICIES[self.policy]["pending"] == "censor":
            return self._belief({id: self.values.get(id, MINIMUM) for id in kept}, kept)
        return self._belief(self.values, kept)


# Of a model, the step and the information gain.
WidthFormula = Callable[[Candidate, int, float], float]


def moments(
    session: Session,
    model: Candidate,
    belief: Belief,
    width: WidthFormula,
    offset: Callable[[int], float] = lambda t: 0.0,
) -> dict[str, Any]:
    """Mean and standard deviation of a model at all points, its width and its offset, as the policy
    says."""
    gain = model.gain(belief.seen)
    w = width(model, belief.t, gain)
    if POLICIES[session.policy].get("inflate"):
        w *= math.exp(gain - model.gain(session.told.seen))
    mean, std = model.mean(belief.rows, belief.y), model.std(belief.seen)
    return {"mean": mean, "std": std, "width": w, "offset": offset(belief.t)}


def upper_bounds(
    candidates: Sequence[Candidate],
    session: Session,
    width: WidthFormula,
    offset: Callable[[int], float] = lambda t: 0.0,
) -> Tensor:
    """mean + w std + offset of each model at each point, as the policy says: ``m x N``."""
    found = [moments(session, model, session.believed, width, offset) for model in candidates]
    return torch.stack([own["mean"] + own["width"] * own["std"] + own["offset"] for own in found])


def predictions(
    session: Session,
    model: Candidate,
    place: int,
    width: WidthFormula,
    offset: Callable[[int], float] = lambda t: 0.0,
) -> list[dict[str, float]]:
    """What a model predicts at a point: as the policy says, and from told data alone."""
    found = [moments(session, model, b, width, offset) for b in (session.believed, session.told)]
    return [own | {name: own[name][place].item() for name in ("mean", "std")} for own in found]


def check_record(
    record: dict[str, Any], expected: Any, judged: bool = True, digits: int = 7
) -> None:
    """A trial records both `predictions` where models are judged, else the first of them."""
    assert ("told" in record) == judged
    parts = [(record, expected[0], 6)]  # pending points lie close to others
    if judged:
        parts.append((record["told"], expected[1], digits))
    for part, numbers, correct in parts:
        for key, value in numbers.items():
            assert part[key] == pytest.approx(value, rel=10**-correct, abs=10 ** -(correct + 1)), (
                key
            )


def xi(t: int, num_models: int, noise_std: float, delta: float) -> float:
    """2 R^2 ln(2 |U| pi^2 t^2 / (3 delta)): Ziomek et al. 2024, corrected."""
    return 2 * noise_std**2 * math.log(2 * num_models * math.pi**2 * t**2 / (3 * delta))


@dataclass
class RunningTests:
    """The running tests of all models: |sum of errors| > sqrt(xi_t n) + sum of (w s + eps)."""

    num_models: int
    noise_std: float
    delta: float
    eps: float = 0.0
    num_sides: int = 1
    rejected_at: dict[int, int] = field(default_factory=dict)
    refused: list[int] = field(default_factory=list)  # when the last model would have been rejected
    sums: dict[Any, tuple[int, float, float]] = field(default_factory=dict)
    log: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def alive(self) -> list[int]:
        return [u for u in range(self.num_models) if u not in self.rejected_at]

    def tell(self, t: int, event: Told, record: dict[str, Any], side: str = "optimistic") -> None:
        """An observation, and what the model that played had recorded of it from told data."""
        trial, u, told = event.id, record["model"], record["told"]
        error, half_width = event.value - told["mean"], told["width"] * told["std"] + told["offset"]
        if u in self.rejected_at:
            return
        n, errors, bounds = self.sums.get((side, u), (0, 0.0, 0.0))
        n, errors, bounds = n + 1, errors + error, bounds + half_width + self.eps
        self.sums[side, u] = n, errors, bounds
        own = xi(t, self.num_sides * self.num_models, self.noise_std, self.delta)
        bound = math.sqrt(own * n) + bounds
        fails = abs(errors) > bound
        self.log.append((t, trial, u, n, fails, side, errors, bound))
        if fails and self.alive == [u]:
            self.refused.append(t)
        elif fails:
            self.rejected_at[u] = t

    def check(self, tests: Sequence[Any]) -> None:
        """The tests that a strategy has kept are these."""
        assert len(self.log) > 5
        for mine, (*facts, errors, bound) in zip(tests, self.log, strict=True):
            assert [mine.t, mine.trial, mine.model, mine.count, mine.fails, mine.side] == facts
            assert mine.error == pytest.approx(errors, rel=1e-9, abs=1e-9)
            assert mine.bound == pytest.approx(bound, rel=1e-9, abs=1e-9)

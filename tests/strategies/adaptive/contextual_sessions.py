"""Sessions with contexts and action sets, and their joint kernels written out.

Columns: two of the action, then those of the context.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import IndexKernel, Kernel, MaternKernel, ProductKernel, RBFKernel
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.strategies import Strategy, Trial
from tests.strategies.sessions import POLICIES, Action

NOISE_VARIANCE = 0.02
Gram = Callable[[Tensor], Tensor]  # of n points the n x n matrix


# --- kernels as formulas --------------------------------------------------------------------------


def _squared(X: Tensor, lengthscale: Any) -> Tensor:
    lengthscale = torch.as_tensor(lengthscale, dtype=X.dtype)
    return ((X[:, None, :] - X[None, :, :]) / lengthscale).square().sum(dim=-1)


def rbf_of(lengthscale: Any) -> Gram:
    return lambda X: torch.exp(-_squared(X, lengthscale) / 2)


def matern_of(lengthscale: Any) -> Gram:
    """nu = 3/2."""

    def gram(X: Tensor) -> Tensor:
        r = (3 * _squared(X, lengthscale)).sqrt()
        return (1 + r) * torch.exp(-r)

    return gram


def table_of(covariance: Tensor) -> Gram:
    def gram(X: Tensor) -> Tensor:
        tasks = X[:, 0].long()
        return covariance[tasks][:, tasks]

    return gram


def product_of(of_actions: Gram, of_contexts: Gram) -> Gram:
    return lambda X: of_actions(X[:, :2]) * of_contexts(X[:, 2:])


def half_sum_of(of_actions: Gram, of_contexts: Gram) -> Gram:
    return lambda X: (of_actions(X[:, :2]) + of_contexts(X[:, 2:])) / 2


# --- the same kernels of GPyTorch -----------------------------------------------------------------


def rbf(lengthscale: Any, **more: Any) -> RBFKernel:
    values = torch.as_tensor(lengthscale, dtype=torch.float64)
    kernel = RBFKernel(ard_num_dims=values.numel() if values.ndim else None, **more).double()
    kernel.lengthscale = values
    return kernel


def matern(lengthscale: Any, **more: Any) -> MaternKernel:
    values = torch.as_tensor(lengthscale, dtype=torch.float64)
    ard = values.numel() if values.ndim else None
    kernel = MaternKernel(nu=1.5, ard_num_dims=ard, **more).double()
    kernel.lengthscale = values
    return kernel


# Of four tasks: the first two nearly the same, the third their opposite, the fourth of its own and
# of less variance; of rank 3.
_FACTOR = torch.tensor(
    [[1.0, 0.0, 0.0], [0.9, 0.435889894354067, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 0.7]]
).double()
TASKS = _FACTOR @ _FACTOR.T
# Of three tasks, as a learned `IndexKernel` has it: factor and variances.
INDEX_FACTOR = torch.tensor([[0.8], [0.6], [-0.5]]).double()
INDEX_VARIANCES = torch.tensor([0.36, 0.5, 0.75]).double()
INDEX = INDEX_FACTOR @ INDEX_FACTOR.T + INDEX_VARIANCES.diag()


def task_kernel() -> TaskKernel:
    return TaskKernel(TASKS)


def index_kernel(**more: Any) -> IndexKernel:
    kernel = IndexKernel(num_tasks=3, rank=1, **more).double()
    with torch.no_grad():
        kernel.covar_factor.copy_(INDEX_FACTOR)
    kernel.var = INDEX_VARIANCES
    return kernel


# --- contexts -------------------------------------------------------------------------------------

CONTEXT_BOX = torch.tensor([[-1.0, 4.0], [0.5, 7.0]], dtype=torch.float64)


def uniform(num_steps: int, g: torch.Generator) -> Tensor:
    """In `CONTEXT_BOX`; some contexts come again."""
    low, high = CONTEXT_BOX
    fresh = low + (high - low) * torch.rand(num_steps, 2, generator=g, dtype=torch.float64)
    again = torch.randint(max(num_steps // 4, 1), (num_steps,), generator=g)
    which = torch.rand(num_steps, 1, generator=g) < 0.3
    return torch.where(which, fresh[again], fresh)


def some_task(num_tasks: int) -> Callable[[int, torch.Generator], Tensor]:
    return lambda num_steps, g: torch.randint(num_tasks, (num_steps, 1), generator=g).double()


def hour_and_task(num_steps: int, g: torch.Generator) -> Tensor:
    return torch.cat([uniform(num_steps, g)[:, :1], some_task(3)(num_steps, g)], dim=-1)


@dataclass(frozen=True, eq=False)
class Setting:
    """A joint kernel of GPyTorch, what it is, and contexts for it.

    Args:
        parts: Kernel arguments of `cgp_ucb`.
        gram: The definition of the joint kernel.
        draw: Contexts, from their number and a generator.
        domain: What ``context_domain`` is; None where it follows from the kernel.
    """

    parts: Callable[[], dict[str, Any]]
    gram: Gram
    draw: Callable[[int, torch.Generator], Tensor]
    domain: Callable[[], Any] = lambda: None

    def kernel(self) -> Kernel:
        parts = self.parts()
        return (
            parts["kernel"]
            if "kernel" in parts
            else ActionContextKernel(
                parts["action_kernel"],
                parts["context_kernel"],
                2,
                combination=parts.get("combination", "product"),
            )
        )


ARD = [0.9, 0.5]
SETTINGS: dict[str, Setting] = {
    "product": Setting(
        lambda: {"action_kernel": rbf(ARD), "context_kernel": matern([0.8, 1.5])},
        product_of(rbf_of(ARD), matern_of([0.8, 1.5])),
        uniform,
        lambda: Box(CONTEXT_BOX),
    ),
    "sum": Setting(
        lambda: {
            "action_kernel": matern(0.8),
            "context_kernel": rbf([0.8, 1.5]),
            "combination": "sum",
        },
        half_sum_of(matern_of(0.8), rbf_of([0.8, 1.5])),
        uniform,
        lambda: 2,
    ),
    "tasks": Setting(
        lambda: {"action_kernel": rbf(ARD), "context_kernel": task_kernel()},
        product_of(rbf_of(ARD), table_of(TASKS)),
        some_task(4),
    ),
    "sum of tasks": Setting(
        lambda: {
            "action_kernel": rbf(0.7),
            "context_kernel": index_kernel(),
            "combination": "sum",
        },
        half_sum_of(rbf_of(0.7), table_of(INDEX)),
        some_task(3),
    ),
    "hours and tasks": Setting(
        lambda: {
            "action_kernel": matern(ARD),
            "context_kernel": ProductKernel(
                rbf(0.6, active_dims=[0]), index_kernel(active_dims=[1])
            ),
        },
        product_of(matern_of(ARD), lambda Z: rbf_of(0.6)(Z[:, :1]) * table_of(INDEX)(Z[:, 1:])),
        hour_and_task,
    ),
    "any joint kernel": Setting(
        lambda: {"kernel": rbf([0.9, 0.5, 0.8, 1.5])},
        rbf_of([0.9, 0.5, 0.8, 1.5]),
        uniform,
        lambda: Box(CONTEXT_BOX),
    ),
}


def f(x: Tensor, context: Tensor) -> float:
    """What is observed, but for noise."""
    z = float(context.sum())
    return float(torch.sin(2 * x[0] + 0.7 * z) * torch.cos(x[1] - 0.3 * z) + 0.3 * x[1])


def contextual_data(setting: Setting, domain: Domain, num_points: int) -> tuple[Tensor, Tensor]:
    """Data from before the study: ``n x (2 + d_z)`` and ``n``."""
    X = domain.sample(num_points, 9)
    Z = setting.draw(num_points, torch.Generator().manual_seed(99)).to(X)
    values = [f(x, z) for x, z in zip(X, Z, strict=True)]
    return torch.cat([X, Z], dim=-1), X.new_tensor(values)


# --- sessions -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Offer:
    """What there was to choose from at one ask."""

    context: Tensor | None
    actions: Tensor | None

    def keywords(self) -> dict[str, Any]:
        given = {"context": self.context, "actions": self.actions}
        return {name: value for name, value in given.items() if value is not None}


def offers(
    setting: Setting | None, domain: Domain, num_steps: int, seed: int, share: float = 0.5
) -> list[Offer]:
    """One for each ask: a context, and for a share of them a set of actions, in random order,
    sometimes only one, sometimes one of them twice."""
    g = torch.Generator().manual_seed(seed)
    contexts: list[Any] = [None] * num_steps
    if setting is not None:
        contexts = list(setting.draw(num_steps, g).to(domain.like))
    made = []
    for context in contexts:
        actions = None
        if float(torch.rand((), generator=g)) < share:
            size = int(torch.randint(1, 13, (), generator=g))
            if isinstance(domain, FiniteSet):
                rows = torch.randint(domain.num_points, (size,), generator=g)
                actions = domain.points[rows]
            else:
                share_of_side = torch.rand(size, domain.dim, generator=g, dtype=torch.float64)
                actions = domain.from_unit(share_of_side.to(domain.like))
        made.append(Offer(context, actions))
    return made


def play(
    strategy: Strategy,
    actions: list[Action],
    made: list[Offer],
    before: dict[int, Offer] | None = None,
) -> dict[int, Offer]:
    """Plays a script, as `sessions.play` does; returns what each trial was chosen from.

    Args:
        strategy: Who plays.
        actions: The script.
        made: The offer of each ask, by the id of its first trial.
        before: What the trials so far were chosen from.
    """
    chosen_from = dict(before or {})
    for kind, share, noise in actions:
        if kind in ("ask", "ask three") or not strategy.pending:
            offer = made[len(strategy.history.trials)]
            count = 3 if kind == "ask three" and strategy.pending else None
            asked = strategy.ask(count, **offer.keywords())
            for trial in [asked] if isinstance(asked, Trial) else asked:
                chosen_from[trial.id] = offer
        else:
            id = strategy.pending[int(share * len(strategy.pending))]
            if kind == "tell":
                trial = strategy.history.trials[id]
                z = chosen_from[id].context
                strategy.tell(id, f(trial.x, trial.x.new_zeros(1) if z is None else z) + noise)
            else:
                strategy.abandon(id)
    return chosen_from


def candidates(domain: Domain, offer: Offer, fine: Tensor | None = None) -> Tensor:
    """All joint points that could be chosen: ``m x (2 + d_z)``.

    Args:
        domain: Of the actions.
        offer: Context and actions.
        fine: A grid, in place of a box.
    """
    points = offer.actions
    if points is None:
        points = domain.points if isinstance(domain, FiniteSet) else fine
    return joint(points, offer.context)


def joint(points: Tensor, context: Tensor | None) -> Tensor:
    if context is None:
        return points
    return torch.stack([torch.cat([x, context]) for x in points])


def policy_options(policy: str) -> dict[str, Any]:
    return {"seed": 5, **POLICIES[policy]}

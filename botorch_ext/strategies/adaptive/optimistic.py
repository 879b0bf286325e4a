"""Optimistic selection: the argmax of an upper confidence bound, with pending evaluations."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import ContextSpace, with_context
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.box import ConfidenceBound, evaluate, maximize_bound
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.pending import Pending, PendingPolicy, PendingRows
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Asked, Event
from botorch_ext.strategies.probes import probes_of
from botorch_ext.widths import Width, as_tensor_like, as_width


class OptimisticStrategy(Strategy):
    """x_t in argmax mean + w_t std: GP-UCB and its relatives, told apart by width and pending
    policy.

    Pending trials (asked, not yet told) are treated as ``pending`` says:

    - "ignore": as if they had not been asked; the same point is then asked again until it is told.
    - "hallucinate": they count in the standard deviation and in the width, and leave the mean alone
      (GP-BUCB, Desautels et al. 2014). ``inflate=True`` multiplies the width by exp(information
      gain of the pending points given the told ones), which is what makes the bound valid.
    - "censor": they enter as the known ``minimum`` in mean, standard deviation and width until told
      (GP-UCB-SDF, Verma et al. 2022); with ``timeout`` m a trial asked at step s and not told
      before the ask of step s + m + 1 stays censored for ever.

    With a ``context_domain`` the model is one of joint rows, actions first, then the context; each
    ask is given a context, and the maximum is that over the actions there (CGP-UCB, Krause and Ong
    2011, eq. 2).

    Args:
        domain: A `Box` or a `FiniteSet`, of actions.
        model: A `KernelGP`; it is copied, and data it holds count as steps. They may lie outside
            the domain, so `best` chooses among the points of the study and of ``initial`` alone.
        width: The confidence width, or a number.
        pending: The policy above.
        inflate: Whether "hallucinate" inflates the width.
        minimum: The least value f can take ("censor" only).
        timeout: Steps after which a pending trial stays censored ("censor" only); None for never.
        seed: Seeds the optimiser and the first points. On a finite set ties go to the first one.
        initial: ``(X, Y)`` the user already has.
        num_initial: Sobol points asked first.
        context_domain: The contexts that every ask then needs: a domain, their dimension d_z, or a
            `ContextSpace`.

    Raises:
        ValueError: A batched model, a kernel or prior mean for points of another dimension, mixed
            devices or dtypes, a model with transforms on a finite set, or options that do not
            belong to the pending policy.

    Warns:
        KernelBoundWarning: k(x, x) exceeds 1 somewhere on the domain; with contexts of which no
            domain is known, at an asked point.
    """

    _takes_actions = True

    def __init__(
        self,
        domain: Domain,
        model: KernelGP,
        width: Width | float,
        *,
        pending: Pending = "hallucinate",
        inflate: bool = False,
        minimum: float | None = None,
        timeout: int | None = None,
        seed: int = 0,
        initial: tuple[Tensor, Tensor] | None = None,
        num_initial: int = 0,
        context_domain: Domain | int | ContextSpace | None = None,
    ) -> None:
        super().__init__(domain, seed, initial, num_initial, context_domain)
        policy = PendingPolicy(pending, inflate, minimum, timeout)
        probes = probes_of(domain, self.context_space, self.seed)
        if len(probes):
            model.require_takes(probes)
        self.width = as_width(width)
        if isinstance(domain, FiniteSet) and self.context_space is None:
            if model.has_transforms:
                raise ValueError("model must not have input or outcome transforms on a FiniteSet")
            posterior = FinitePosterior.from_model(model, domain.points)
            self._initial_data_rows = (
                [] if self.initial is None else domain.index(self.initial[0]).tolist()
            )
        else:
            posterior = deepcopy(model)
        if len(probes):
            self._note_large_kernel(float(model.largest_variance(probes)))
            self._raise_warnings(stacklevel=3)
        if self.initial is not None:
            posterior.add(*self.initial)
        self._rows: PendingRows[KernelGP | FinitePosterior] = PendingRows(posterior, policy)

    @property
    def posterior(self) -> KernelGP | FinitePosterior:
        """What is known: the told data, and the pending trials as the policy says.

        The trial asked last gets its row when the next event comes. Until then this is a copy that
        has it already, so that reading changes nothing.
        """
        return self._rows.current().posterior

    def report(self) -> dict[str, Any]:
        posterior = self.posterior
        summary = super().report()
        summary |= {
            "t": posterior.num_observations + 1,
            "width": repr(self.width),
            "current_width": float(self._width_of(posterior)),
            "information_gain": float(posterior.information_gain()),
            "pending_policy": self._rows.policy.pending,
            "inflated": self._rows.policy.inflate,
            "told_too_late": list(self._rows.told_too_late),
            "jittered_rows": int((posterior.factor.jitter > 0).sum()),
        }
        return summary

    # --- decisions --------------------------------------------------------------------------------

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        # Brings the model up to date with the events: `posterior` is the same before and after.
        self._rows.enter_newest()
        posterior = self._rows.posterior
        width = self._width_of(posterior)
        if isinstance(posterior, FinitePosterior):
            x, places = _best_candidate(posterior, width, choices)
            index = places["index"]
            mean, std = posterior.mean[index], posterior.std[index]
        else:
            x, places = self._best_jointly(posterior, width, choices)
            joint = with_context(x, choices.context).unsqueeze(0)
            mean, std = (value[0] for value in posterior.mean_and_std(joint))
        mean, std, width = torch.stack([mean, std, width]).tolist()
        return x, places | {"mean": mean, "std": std, "width": width}

    def _width_of(self, posterior: KernelGP | FinitePosterior) -> Tensor:
        width = self.width(posterior.num_observations + 1, posterior)
        width = as_tensor_like(width, posterior.noise_variance)
        if self._rows.policy.inflate:
            width = width * posterior.factor.pending_information_gain().exp()
        return width

    def _best_jointly(
        self, model: KernelGP, width: Tensor, choices: Choices
    ) -> tuple[Tensor, dict[str, int]]:
        bound = ConfidenceBound(model, width, context=choices.context)
        points = choices.points(self.domain)
        if points is not None:
            row = int(evaluate(bound, points).argmax())  # of equal ones the first
            return points[row].clone(), choices.places(row)
        if not isinstance(self.domain, Box):
            raise TypeError(f"domain must be a Box, got {type(self.domain).__name__}")
        seed, n = self._seed_of(len(self.history.trials)), model.num_observations
        return maximize_bound(bound, self.domain, seed, self._incumbents(), n), {}

    # --- the fold ---------------------------------------------------------------------------------

    def _absorb(self, event: Event) -> None:
        if isinstance(event, Asked) and self._looks_at_kernel_later:
            model: Any = self._rows.posterior
            # First: should the kernel not take this context, nothing has happened.
            largest = float(model.largest_variance(event.trial.point.unsqueeze(0)))
            if not self.warnings:
                self._note_large_kernel(largest)
        self._rows.absorb(event, self.history)

    def _evaluated_means(self) -> Tensor:
        posterior = self._rows.for_means().posterior
        if isinstance(posterior, FinitePosterior):
            told = [self.history.trials[id].info["index"] for id in self.history.values]
            return posterior.mean[self._initial_data_rows + told]
        return self._means_at(self._evaluated()[0])

    @torch.no_grad()
    def _means_at(self, X: Tensor) -> Tensor:
        posterior: Any = self._rows.for_means().posterior
        return posterior.mean_and_std(X)[0]

    def _check_joint(self, X: Tensor) -> None:
        model: Any = self._rows.posterior
        model.require_takes(X)


def _best_candidate(
    posterior: FinitePosterior, width: Tensor, choices: Choices
) -> tuple[Tensor, dict[str, int]]:
    bounds = posterior.mean + width * posterior.std
    if choices.rows is not None:
        bounds = bounds[choices.rows]
    places = choices.places(int(bounds.argmax()))  # of equal ones the first
    return posterior.candidates[places["index"]].clone(), places

"""One strategy for each kind of context, independent of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.state import Immutable
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.masters.master import MasterStrategy


class ContextwiseStrategy(MasterStrategy):
    """Plays one base for each kind of context; no base learns from the results of another.

    This is the baseline of contextual methods, as it ignores that contexts are similar. ``info`` of
    a trial and the report are those of `MasterStrategy`. Source: Krause and Ong 2011, section 6.

    Args:
        bases: The strategies, as for `MasterStrategy`. Bases that take no contexts are given none.
        key: A function from a ``d_z``-dim context to the position of the base that plays.
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. None: the
            contexts of the bases.
        minimize: As for `MasterStrategy`.

    Raises:
        ValueError: If `MasterStrategy` refuses the bases, or if there are no contexts. `ask` raises
            it if ``key`` does not return a position.

    Example:
        >>> import botorch_ext as bx
        >>> points = bx.FiniteSet([[0.0], [1.0]])
        >>> bases = [bx.strategies.RandomSearch(points, seed) for seed in (0, 1)]
        >>> strategy = bx.strategies.ContextwiseStrategy(
        ...     bases, key=lambda z: int(z[0] > 0), context_domain=1
        ... )
        >>> strategy.ask(context=[0.7]).info["base"]
        1
    """

    def __init__(
        self,
        bases: Sequence[Strategy],
        key: Callable[[Tensor], int],
        *,
        context_domain: Domain | int | ContextSpace | None = None,
        minimize: bool | None = None,
    ) -> None:
        super().__init__(bases, context_domain=context_domain, minimize=minimize)
        if self.context_space is None:
            raise ValueError("context_domain must be given if no base takes contexts, got None")
        if not callable(key):
            raise ValueError(f"key must be a function of the context, got {key!r}")
        self._key = _Key(key)
        # Attached results are allowed, since the context says to which base they belong.
        reasons = (base.refuses_attached for base in bases)
        self.refuses_attached = next((why for why in reasons if why is not None), None)

    @property
    def key(self) -> Callable[[Tensor], int]:
        """The function from a context to the position of the base that plays."""
        return self._key.function

    def _choose(self, choices: Choices, given: Sequence[int]) -> int:
        return self._position_of(choices.context)

    def _position_of(self, context: Tensor | None) -> int:
        key: Any = self.key  # contexts are always given
        position = whole_number(key(context), "key of the context")
        if not 0 <= position < len(self.bases):
            shown = None if context is None else context.tolist()
            raise ValueError(
                f"key of the context must be one of {len(self.bases)} positions, got {position} "
                f"for {shown}"
            )
        return position

    def _info_of_attached(self, X: Tensor, context: Tensor | None) -> dict[str, Any]:
        return super()._info_of_attached(X, context) | {"base": self._position_of(context)}

    def _mixture(self, context: Tensor | None) -> GPMixture:
        base = self._base_of(context)
        if base.context_space is not None:
            return base._mixture(context)
        mixture, d = base._mixture(None), self.domain.dim
        return replace(mixture, features=lambda rows: mixture.features(rows[:, :d]))

    def _evaluated_actions(self, context: Tensor | None) -> Tensor:
        return self._base_of(context)._evaluated_actions(context)

    def _base_of(self, context: Tensor | None) -> Strategy:
        if context is None:
            raise ValueError("context must be given, since each one has its own model, got None")
        return self.bases[self._position_of(context)]

    def _judges(self, context: Tensor | None) -> list[Strategy]:
        return self.bases if context is None else [self.bases[self._position_of(context)]]


@dataclass(frozen=True)
class _Key(Immutable):
    """A user's function, which may be impossible to copy."""

    function: Callable[[Tensor], int]

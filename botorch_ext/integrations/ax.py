"""Ax: strategies of the library as generation strategies, and its acquisition functions.

Importing this module makes both known to Ax by name. It is imported where an experiment is made,
and in every process that loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.storage.botorch_modular_registry import register_acquisition_function

from botorch_ext import acquisition
from botorch_ext.integrations.ax_node import StrategyNode
from botorch_ext.integrations.saved_arguments import allow_argument
from botorch_ext.strategies import Strategy

__all__ = ["StrategyNode", "allow_argument", "generation_strategy"]

for _name in acquisition.__all__:
    register_acquisition_function(getattr(acquisition, _name))


def generation_strategy(
    algorithm: str | Callable[..., Strategy],
    *,
    contexts: Sequence[str] = (),
    num_points: int | None = None,
    name: str | None = None,
    **arguments: Any,
) -> GenerationStrategy:
    """A generation strategy of Ax that is one strategy of the library, first points included.

    Args:
        algorithm: A name in `botorch_ext.algorithms`, such as ``"gp_bucb"``.
        contexts: As in `StrategyNode`.
        num_points: As in `StrategyNode`.
        name: Of the generation strategy; None: that of the algorithm.
        arguments: As in `StrategyNode`.

    Raises:
        ValueError: As `StrategyNode`.
    """
    node = StrategyNode(algorithm, contexts=contexts, num_points=num_points, **arguments)
    return GenerationStrategy(nodes=[node], name=name or node.name)

"""Ax: the library's strategies as generation strategies, and its acquisition functions.

Importing this module registers both with Ax by name. Import it where an experiment is made, and in
every process that loads the experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.storage.botorch_modular_registry import register_acquisition_function

from botorch_ext import acquisition
from botorch_ext.codec import allow_argument
from botorch_ext.integrations.ax_node import StrategyNode
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
    """Make a generation strategy of Ax with a single node, a strategy of this library, which also
    chooses the first points.

    Args:
        algorithm: The name of an algorithm in `botorch_ext.algorithms`, such as ``"gp_bucb"``; or a
            function, as for `StrategyNode`.
        contexts: The names of context parameters, as for `StrategyNode`.
        num_points: The number of points among which the method chooses, as for `StrategyNode`.
        name: The name of the generation strategy; None for that of the algorithm.
        **arguments: The arguments of the algorithm, as for `StrategyNode`.

    Returns:
        The generation strategy, for ``Client.set_generation_strategy``.

    Raises:
        ValueError: As for `StrategyNode`.
    """
    node = StrategyNode(algorithm, contexts=contexts, num_points=num_points, **arguments)
    return GenerationStrategy(nodes=[node], name=name or node.name)

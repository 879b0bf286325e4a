"""Nodes of Ax's JSON: what they are made with, read from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from ax.core.experiment_status import ExperimentStatus
from ax.generation_strategy.transition_criterion import PausingCriterion, TransitionCriterion
from ax.storage.json_store.decoder import object_from_json

from botorch_ext.integrations.saved_arguments import from_text
from botorch_ext.integrations.saved_forms import is_of, shown

# What Ax's JSON has of a node, each with its type; the last ones as Ax saves them.
_SAVED = {
    "arguments": str,
    "contexts": list[str],
    "num_points": int | None,
    "name": str,
    "should_deduplicate": bool,
}
_SAVED_BY_AX = {
    "transition_criteria": list[TransitionCriterion],
    "pausing_criteria": list[PausingCriterion],
    "suggested_experiment_status": ExperimentStatus | None,
}


def node_arguments(
    args: Mapping[str, Any], own: Set[str], decoder_registry: Any, class_decoder_registry: Any
) -> dict[str, Any]:
    """What a node is made with. Ax decodes nothing but what is its own.

    Args:
        args: What `serialize_init_args` of the node gave, as Ax's JSON.
        own: Arguments of the node, which its algorithm has not.
        decoder_registry: Of Ax.
        class_decoder_registry: Of Ax.

    Raises:
        ValueError: Anything else.
    """
    registries = {
        "decoder_registry": decoder_registry,
        "class_decoder_registry": class_decoder_registry,
    }
    hints = _SAVED | _SAVED_BY_AX
    if args.keys() != hints.keys():
        raise ValueError(f"a saved node must have {sorted(hints)}, got {shown(sorted(args))}")
    given = {
        key: object_from_json(part, **registries) if key in _SAVED_BY_AX else part
        for key, part in args.items()
    }
    for key, part in given.items():
        if not is_of(part, hints[key]):
            raise ValueError(f"{key} of a saved node must be {hints[key]}, got {shown(part)}")
    arguments = from_text(given.pop("arguments"))
    if "algorithm" not in arguments or not own.isdisjoint(arguments):
        raise ValueError(
            "arguments of a saved node must be an algorithm and its arguments, got "
            f"{shown(sorted(arguments))}"
        )
    return given | arguments

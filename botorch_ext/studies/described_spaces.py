"""Described spaces: makes a space again from the description of a study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from botorch_ext.domains import Choice, Integer, Real, Space
from botorch_ext.domains.choices import Fixed, Ordered
from botorch_ext.exceptions import BrokenStudyError
from botorch_ext.studies.translations import bare

_KINDS = {kind.__name__: kind for kind in (Real, Integer, Choice, Ordered, Fixed)}


def described_space(described: Mapping[str, Any]) -> Space:
    """Makes a space from its description.

    Args:
        described: The description of a `Space`, such as the ``domain`` of a strategy.

    Returns:
        The space, on the CPU. The texts of its constraints are made from their numbers.

    Raises:
        BrokenStudyError: No version wrote the description.
    """
    given = bare(dict(described))
    try:
        parameters = {}
        for name in given["order"]:
            arguments = dict(given["parameters"][name])
            parameters[name] = _KINDS[arguments.pop("class")](**arguments)
        rows = given["constraints"]
        return Space(
            parameters,
            constraints=None if rows is None else tuple(part["values"] for part in rows),
            conditions={
                name: (parent, values)
                for name, (parent, values) in given["named_conditions"].items()
            },
            dtype=getattr(torch, given["bounds"]["dtype"].removeprefix("torch.")),
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BrokenStudyError(f"the space of a study cannot be read: {error!r}") from error

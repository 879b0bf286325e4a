"""Spaces of drawn parameters."""

import math
import random

import torch

import botorch_ext as bx
from botorch_ext.parameters import Fixed, Ordered

WORDS = ("water", "ethanol", "dmso", "thf", "none")


def a_parameter(draw: random.Random):
    low = round(draw.uniform(-50, 50), draw.randint(0, 3))
    positive = round(draw.uniform(0.01, 5), 3)
    kinds = [
        lambda: bx.Real(low, low + draw.uniform(0.1, 90)),
        lambda: bx.Real(positive, positive * draw.uniform(2, 1e4), log=True, unit="mol/l"),
        lambda: bx.Real(low, low + draw.uniform(1, 90), digits=draw.randint(0, 3), unit="°C"),
        lambda: bx.Real(low, low + draw.uniform(1, 9), step=draw.choice((0.1, 0.25, 0.3, 1 / 3))),
        lambda: bx.Real(1, draw.randint(2, 40), log=True, step=0.5),
        lambda: bx.Integer(round(low), round(low) + draw.randint(1, 30)),
        lambda: bx.Integer(1, draw.randint(2, 500), log=True),
        lambda: bx.Integer(round(low), round(low) + draw.randint(3, 99), step=draw.randint(2, 3)),
        lambda: bx.Choice(WORDS[: draw.randint(1, 5)]),
        lambda: bx.Choice([1, 2.5, True, None, "1", math.nan][: draw.randint(2, 6)]),
        lambda: Ordered((0.1, 1, 5)),
        lambda: bx.Choice({word: [len(word), i] for i, word in enumerate(WORDS)}),
        lambda: Fixed(7),
    ]
    return draw.choice(kinds)()


def a_space(seed: int, dtype: torch.dtype = torch.float64) -> bx.Space:
    """A space of up to 8 parameters, with a tree and a constraint where there can be any."""
    draw = random.Random(seed)
    parameters = {f"p{i}": a_parameter(draw) for i in range(draw.randint(1, 7))}
    parameters["last"] = bx.Real(-1, 1)
    choices = [name for name, each in parameters.items() if type(each) is bx.Choice]
    conditions, free = {}, list(parameters)
    if choices and draw.random() < 0.7:
        child = draw.choice([name for name in parameters if name != choices[0]])
        conditions = {child: (choices[0], parameters[choices[0]].values[:1])}
        free.remove(child)
    lines = [name for name in free if isinstance(parameters[name], bx.Real | bx.Integer)]
    constraints = []
    if len(lines) > 1 and draw.random() < 0.7:
        a, b = parameters[lines[0]], parameters[lines[1]]
        weight = draw.uniform(-3, 3)
        top = a.ends[1] + max(weight * end for end in b.ends)
        least = a.ends[0] + min(weight * end for end in b.ends)
        bound = least + draw.uniform(0.3, 0.9) * (top - least)
        constraints = [f"{lines[0]} + {weight!r} * {lines[1]} <= {bound!r}"]
    return bx.Space(parameters, constraints=constraints, conditions=conditions, dtype=dtype)

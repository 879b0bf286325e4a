"""Boxes of drawn columns, and what they are by definition: plain Python, one point at a time."""

import math
import random
from dataclasses import dataclass, field
from decimal import Decimal

from hypothesis import strategies as st

import botorch_ext as bx


def of_decimals(low, high, step):
    """All values of a column of steps as Python reads their decimals."""
    low, high, step = (Decimal(repr(float(number))) for number in (low, high, step))
    return [float(low + k * step) for k in range(int((high - low) / step) + 1)]


@dataclass
class Column:
    """One column: its bounds, all its values (None if continuous), its step and its scale."""

    low: float
    high: float
    values: list[float] | None = None
    step: float | None = None
    log: bool = False

    @property
    def has_codes(self):
        return self.values is not None and self.step is None

    @property
    def cell(self):
        """The interval that the unit interval is mapped to; half a step beyond steps."""
        if self.step is None:
            return self.low, self.high
        return self.values[0] - self.step / 2, self.values[-1] + self.step / 2

    def from_unit(self, u):
        if self.has_codes:
            return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
        low, high = self.cell
        x = low * (high / low) ** u if self.log else low + (high - low) * u
        return x if self.values is None else self.nearest(x)

    def nearest(self, x):
        """The nearest value; of two as near the even whole number or the even step."""

        def key(place):
            parity = self.values[place] % 2 if self.step == 1.0 else place % 2
            return round(abs(self.values[place] - x), 9), parity

        return self.values[min(range(len(self.values)), key=key)]

    def to_unit(self, x):
        if self.has_codes:
            return (self.values.index(x) + 0.5) / len(self.values)
        low, high = self.cell
        return math.log(x / low) / math.log(high / low) if self.log else (x - low) / (high - low)

    def stretch(self, x):
        if self.values is not None:
            return 0.0
        return x * math.log(self.high / self.low) if self.log else self.high - self.low

    @property
    def resting(self):
        return self.values[0] if self.has_codes else self.from_unit(0.5)


@dataclass
class Made:
    """The columns of a box, a map from columns to their parents' values, and rows of A x <= b."""

    columns: list[Column]
    conditions: dict = field(default_factory=dict)
    constraints: list = field(default_factory=list)
    options: dict = field(default_factory=dict)

    def box(self, **more):
        return bx.Box([(c.low, c.high) for c in self.columns], **{**self.options, **more})

    def counts(self, x, j):
        if j not in self.conditions:
            return True
        parent, values = self.conditions[j]
        return self.counts(x, parent) and x[parent] in values

    def settled(self, x):
        return [
            value if self.counts(x, j) else self.columns[j].resting for j, value in enumerate(x)
        ]

    def has(self, x):
        """Whether a point belongs to the box, whose columns that do not count are free."""
        for j, (column, value) in enumerate(zip(self.columns, x, strict=True)):
            if not self.counts(x, j):
                continue
            if not column.low <= value <= column.high:
                return False
            if column.values is not None and value not in column.values:
                return False
        return all(
            sum(a * v for a, v in zip(row, x, strict=True)) <= b + 1e-9
            for row, b in self.constraints
        )


def a_column(draw):
    low = round(draw.uniform(-9, 9), draw.randint(0, 2))
    positive = round(draw.uniform(0.1, 5), 2)
    kind = draw.choice(("real", "log", "integer", "log integer", "steps", "log steps", "codes"))
    if kind == "real":
        return Column(low, low + draw.uniform(0.1, 20))
    if kind == "log":
        return Column(positive, positive * draw.uniform(2, 1e4), log=True)
    if kind == "integer":
        high = low + draw.uniform(1, 9)
        values = [float(k) for k in range(math.ceil(low), math.floor(high) + 1)]
        return Column(low, high, values, 1.0)
    if kind == "log integer":
        high = draw.randint(2, 60)
        return Column(1.0, float(high), [float(k) for k in range(1, high + 1)], 1.0, log=True)
    if kind == "codes":
        codes = sorted(draw.sample([-1.0, 0.5, 3.0, 4.0, 7.25], draw.randint(1, 5)))
        return Column(-1.0, 7.25, codes)
    if kind == "steps":
        step = draw.choice((0.1, 0.05, 0.3, 2.5, 0.7))
        high = low + step * draw.uniform(1, 12)
        return Column(low, high, of_decimals(low, high, step), step)
    step = draw.choice((0.1, 0.15))
    high = positive + step * draw.uniform(2, 40)
    return Column(positive, high, of_decimals(positive, high, step), step, log=True)


def made(seed, constrained=True):
    draw = random.Random(seed)
    columns = [a_column(draw) for _ in range(draw.randint(1, 5))]
    conditions = {}
    for j in range(1, len(columns)):
        parents = [i for i in range(j) if columns[i].values is not None]
        if parents and draw.random() < 0.4:
            parent = draw.choice(parents)
            values = columns[parent].values
            conditions[j] = parent, draw.sample(values, draw.randint(1, len(values)))
    free = [j for j in range(len(columns)) if j not in conditions]
    constraints = []
    if constrained and len(free) > 1 and draw.random() < 0.5:
        inside = [column.from_unit(draw.random()) for column in columns]
        row = [
            draw.uniform(-2, 2) / (c.high - c.low) if j in free else 0.0
            for j, c in enumerate(columns)
        ]
        slack = draw.uniform(0.05, 0.5)
        constraints = [(row, sum(a * x for a, x in zip(row, inside, strict=True)) + slack)]
    kinds = dict(enumerate(columns))
    options = {
        "integer": [j for j, c in kinds.items() if c.step == 1.0],
        "steps": {j: c.step for j, c in kinds.items() if c.step not in (None, 1.0)},
        "log": [j for j, c in kinds.items() if c.log],
        "categories": {j: c.values[::-1] for j, c in kinds.items() if c.has_codes},
        "conditions": conditions,
    }
    if constraints:
        options["constraints"] = tuple(map(list, zip(*constraints, strict=True)))
    return Made(columns, conditions, constraints, options)


boxes = st.integers(0, 10**6).map(made)
unconstrained = st.integers(0, 10**6).map(lambda seed: made(seed, constrained=False))

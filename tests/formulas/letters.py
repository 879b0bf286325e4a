"""The letters of the papers as drawn numbers, and the widths that are made of them."""

import math
from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass
class Numbers:
    """The letters of the papers."""

    B: float = 1.0
    sigma: float = 1.0
    delta: float = 1.0
    lam: float = 1.0
    gain: float = 1.0
    n: int = 1
    T: int = 1
    d: int = 1
    N: int = 1
    R: int = 1
    models: int = 1
    u: int = 1
    eps: float = 1.0
    factor: float = 1.0
    share: float = 1.0
    kappa: float = 1.0

    @property
    def t(self) -> int:
        return self.n + 1

    @property
    def noise(self) -> float:
        return self.sigma / math.sqrt(self.lam)

    def self_normalized(self, delta: float) -> float:
        return self.B + self.noise * math.sqrt(2 * math.log(1 / delta) + 2 * self.gain)

    def chowdhury(self, gamma: float, noise: float, delta: float) -> float:
        return self.B + noise * math.sqrt(2 * (gamma + 1 + math.log(1 / delta)))

    def srinivas(self, gamma: float, t: int) -> float:
        return math.sqrt(2 * self.B**2 + 300 * gamma * math.log(t / self.delta) ** 3)

    def fixed_design(self, union: float) -> float:
        return self.B + self.noise * math.sqrt(2 * math.log(union / self.delta))

    def bayes_finite(self, t: int, delta: float) -> float:
        return math.sqrt(2 * math.log(self.N * math.pi**2 * t**2 / (6 * delta)))

    def bayes_continuous(self, t: int, delta: float, a: float, b: float, r: float) -> float:
        grid = t**2 * self.d * b * r * math.sqrt(math.log(4 * self.d * a / delta))
        union = 2 * math.log(2 * math.pi**2 * t**2 / (3 * delta))
        return math.sqrt(union + 2 * self.d * math.log(grid))


def drawn_numbers(**ranges):
    """Numbers, some of them of other ranges."""
    usual = {
        **dict.fromkeys(("B", "factor"), st.floats(0.1, 5)),
        "sigma": st.floats(0.01, 2),
        "delta": st.floats(0.01, 0.9),
        "lam": st.floats(1e-3, 3),
        "gain": st.floats(0.1, 60),
        "n": st.integers(1, 300),
        "T": st.integers(2, 3000),
        "d": st.integers(1, 6),
        "N": st.integers(2, 5000),
        **dict.fromkeys(("R", "models"), st.integers(1, 9)),
        "u": st.integers(0, 80),
        "eps": st.floats(0, 1),
        "share": st.floats(0.05, 1),
        "kappa": st.floats(1, 2),
    }
    return st.builds(Numbers, **(usual | ranges))

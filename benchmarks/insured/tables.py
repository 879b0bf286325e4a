"""Tables of the insured benchmark: which methods are played on which problems, how and how long."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.common.tables import Row
from benchmarks.delayed_feedback.runs import DELAYS, POISSON, TAILS
from benchmarks.insured import methods as m
from benchmarks.insured.problems import BOX_LOCK_OUT, CONTEXTS_LOCK_OUT, DELAYED, DIMS, EPSILONS
from botorch_ext.delays import Delay, Poisson

# Others have been played with before the constants were fixed.
FIRST_SEED = 20000
SEEDS = 20
MANY_SEEDS = 200
SMOKE_HORIZON = 16


@dataclass(frozen=True)
class Setting:
    """How evaluations go.

    Args:
        delay: The law of the delays, or whole steps, or None.
        share: Of the candidates that an evaluation may choose from; 1 for all.
    """

    delay: Delay | int | None = None
    share: float = 1.0


SEQUENTIAL, CHANGING = "sequential", "changing"
LATE = "Poisson(10)"
SETTINGS = {
    SEQUENTIAL: Setting(),
    # Evaluations that take the same time: at each question three are under way.
    "four workers": Setting(3),
    LATE: Setting(Poisson(10)),
    CHANGING: Setting(share=0.2),
    **{name: Setting(DELAYS[name]) for name in (*POISSON, *TAILS[1:])},
}


@dataclass(frozen=True)
class Cell:
    """Methods that are compared with each other.

    Args:
        problems: Keys of `PROBLEMS`; in "hyperparameters" those of the experiments.
        methods: Keys of `METHODS`; the first is what the others are divided by.
        settings: Keys of `SETTINGS`.
        horizons: T; 0 where the experiment has its own.
        seeds: How many runs of each.
    """

    problems: tuple[str, ...]
    methods: tuple[str, ...]
    settings: tuple[str, ...] = (SEQUENTIAL,)
    horizons: tuple[int, ...] = (300,)
    seeds: int = SEEDS

    def has(self, row: Row) -> bool:
        """Whether a row is of these methods, problems, settings and horizons."""
        return (
            row["method"] in self.methods
            and row["problem"] in self.problems
            and row["setting"] in self.settings
            and row["horizon"] in (*self.horizons, SMOKE_HORIZON)
        )


OURS = (m.GP_UCB, m.INSURED, m.SAFE)
IN_CONTEXTS = ("CGP-UCB", f"{m.INSURED}, contexts")
# Of lock-outs on a box and in contexts.
LONG = (300, 1000)
ALL = (m.GP_UCB, m.EC_GP_UCB, m.INSURED, m.SAFE)
HYPERPARAMETERS = ("HE-GP-UCB", "MLE-UCB", "ExpectedUCB", m.CREDIBLE)
LATE_METHODS = (m.GP_BUCB, m.BPE_DELAY, m.USEFUL, m.ALWAYS)
LOCKED = tuple(f"lock-out, d = {d}" for d in (2, 3, 6))
NOISY = tuple(f"noisy lock-out, gap {gap:g}" for gap in (0.5, 1.0, 2.0))
SMOOTH = tuple(f"d = {d}" for d in DIMS)
SCALES = (m.CREDIBLE, f"{m.SAFE}, models")
_THEORY = tuple(f"{name}{m.THEORY}" for name in LATE_METHODS)
_LOST = (m.USEFUL, m.ORACLE_USEFUL, m.ORACLE, f"{m.USEFUL}{m.THEORY}", f"{m.ORACLE}{m.THEORY}")
_LAST = POISSON[2:]

TABLES: dict[str, tuple[Cell, ...]] = {
    "price": (
        Cell(SMOOTH, OURS, (SEQUENTIAL, "four workers", LATE, CHANGING)),
        Cell(SMOOTH, OURS, horizons=(1000,)),
        Cell(SMOOTH[:2], OURS, horizons=(2000,)),
        Cell(SMOOTH[:2], (m.GP_UCB, f"{m.SAFE}, certificates")),
    ),
    "generic": (Cell(tuple(f"d = {d}, eps = {eps:g}" for d in DIMS[:3] for eps in EPSILONS), ALL),),
    "worst": (
        Cell((*LOCKED, "white", "hidden arm"), (*ALL, m.NUGGET)),
        Cell(LOCKED, ALL, (LATE, CHANGING)),
        Cell(LOCKED, ALL, horizons=(2000,)),
        Cell(("random linear",), (*ALL, m.NUGGET), seeds=400),
        Cell(("random linear, d = 6",), OURS, horizons=(300, 2000)),
        Cell(NOISY, ALL, horizons=(300, 2000)),
    ),
    "scales": (
        Cell(("wrong scales",), SCALES, (SEQUENTIAL, LATE)),
        Cell(("wrong scales",), SCALES, horizons=(2000,)),
    ),
    "delays": (
        Cell(DELAYED, LATE_METHODS, (*POISSON, *TAILS[1:]), (1000,)),
        Cell(DELAYED, _THEORY, _LAST, (1000,)),
        Cell(("f1",), _THEORY, _LAST, (4000,), seeds=3),
        Cell(("f1",), (m.BPE_DELAY, m.ORACLE), POISSON[:1], (1000,), seeds=3),
    ),
    "lost": (Cell(("200 points",), _LOST, POISSON[1:2], (1000,), MANY_SEEDS),),
    "hyperparameters": (Cell(("a", "b", "c", "d"), HYPERPARAMETERS, horizons=(0,)),),
    "boxes": (
        Cell(("box, d = 1", "box, d = 1, eps = 0.1"), ALL, (SEQUENTIAL, LATE), (150,)),
        Cell(("box, d = 2", "box, d = 4", "box, d = 2, eps = 0.1"), ALL, horizons=(150,)),
        Cell((BOX_LOCK_OUT,), ALL, horizons=LONG),
        Cell((BOX_LOCK_OUT,), ALL, (LATE,)),
        Cell(("contexts",), IN_CONTEXTS),
        Cell((CONTEXTS_LOCK_OUT,), IN_CONTEXTS, horizons=LONG),
    ),
    "failures": (
        Cell(("d = 1, noise 0.02",), OURS),
        Cell(("d = 1", "d = 2"), (m.GP_UCB, f"{m.INSURED}, narrow tests")),
        Cell(("d = 2",), (f"{m.GP_UCB}, 0.3", f"{m.INSURED}, 0.3"), horizons=(2000,)),
    ),
}

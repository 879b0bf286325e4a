"""Some methods whose study files of earlier versions are in ``files``, and what is done to each.

    python -m tests.studies.kept_methods tests/studies/files/VERSION

plays them with the code of now. A method that is changed here no longer fits its files: add another
one instead.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from torch import Tensor

import botorch_ext as bx
from botorch_ext.strategies import Strategy

FILES = Path(__file__).with_name("files")
NUMBERS = {"rkhs_bound": 1.0, "noise_std": 0.1}
LAMBDA = {"noise_variance": 0.01}


def _box() -> bx.Box:
    return bx.Box([(-1.0, 1.0), (2.0, 5.0)])


def _grid(num: int = 7, dtype: torch.dtype = torch.float64) -> bx.FiniteSet:
    """``num^2`` points."""
    ends = (_line(low, high, num, dtype) for low, high in ((-1, 1), (2, 5)))
    return bx.FiniteSet(torch.cartesian_prod(*ends))


def _line(low: int, high: int, num: int, dtype: torch.dtype) -> Tensor:
    """The numbers that `torch.linspace` had where the files were written, with one rounding for
    each: on other processors it rounds twice, and digests of large sets would differ."""
    step = Fraction(torch.tensor((high - low) / (num - 1), dtype=dtype).item())
    exact = [low + step * i if i < num // 2 else high - step * (num - 1 - i) for i in range(num)]
    return torch.tensor([float(number) for number in exact], dtype=torch.float64).to(dtype)


def _kernel(lengthscale: float = 0.7) -> Kernel:
    inner = MaternKernel(nu=2.5, ard_num_dims=2).double()
    inner.lengthscale = torch.tensor([[lengthscale, 1.3]])
    outer = ScaleKernel(inner).double()
    outer.outputscale = 0.9
    return outer


def _joint(dim: int = 3) -> Kernel:
    kernel = RBFKernel(ard_num_dims=dim).double()
    kernel.lengthscale = torch.tensor([[0.7, 1.3, 2.0][:dim]])
    return kernel


def _data() -> tuple[Tensor, Tensor]:
    return _grid().points[[0, 24]], torch.tensor([0.25, -0.5], dtype=torch.float64)


_functions = bx.algorithms
METHODS: dict[str, Callable[[], Strategy]] = {
    "gp_ucb_box": lambda: _functions.gp_ucb(
        bx.Box([(-1.0, 1.0), (1.0, 5.0)], log=[1]), _kernel(), **LAMBDA, width=2.0, num_initial=2
    ),
    "gp_ucb_float32": lambda: _functions.gp_ucb(
        _grid(11, torch.float32), _kernel(), **LAMBDA, **NUMBERS
    ),
    "regret_balancing": lambda: _functions.regret_balancing(
        _grid(),
        _kernel(),
        **LAMBDA,
        **NUMBERS,
        horizon=40,
        misspecifications=[0.1, 0.3],
        reward_range=(-3.0, 2.0),
    ),
    "contextwise": lambda: bx.ContextwiseStrategy(
        [
            _functions.cgp_ucb(_grid(), _joint(), **LAMBDA, **NUMBERS, context_domain=1),
            bx.strategies.RandomSearch(_grid(), seed=1),
        ],
        by_size,
    ),
    "random": lambda: bx.strategies.RandomSearch(_box(), seed=5),
    "integrated_ei": lambda: _functions.integrated_ei(
        bx.Space(
            time=bx.Real(1, 60, log=True, unit="min"),
            solvent=bx.Choice({"water": [80.1], "ethanol": [24.5], "thf": [7.6]}),
            size=bx.Integer(1, 9, step=2),
            heat=bx.Real(20, 80, unit="°C", digits=1),
            dose=bx.Real(0, 1),
            constraints=["heat + 60 * dose <= 110"],
            conditions={"size": ("solvent", ["water", "thf"])},
        ),
        seed=2,
        num_initial=4,
    ),
    "insured_ucb": lambda: _functions.insured_ucb(
        _grid(), _kernel(), **LAMBDA, **NUMBERS, initial=_data()
    ),
    "he_gp_ucb": lambda: _functions.he_gp_ucb(
        _grid(), bx.CandidateModels.lengthscales(_joint(2), [2.0, 1.0, 0.5], 0.01), **NUMBERS
    ),
    "bpe_delay": lambda: _functions.bpe_delay(
        _grid(), _kernel(), **LAMBDA, **NUMBERS, horizon=40, delay=bx.delays.Poisson(3.0)
    ),
    "cgp_ucb": lambda: _functions.cgp_ucb(
        _box(),
        action_kernel=_joint(2),
        context_kernel=RBFKernel(),
        **LAMBDA,
        width=bx.widths.Scaled(bx.widths.Constant(2.0), 0.5),
        context_domain=bx.Space(humidity=bx.Real(0.0, 3.0)),
    ),
}
MINIMISED = ("gp_ucb_box", "integrated_ei")


def by_size(context: Tensor) -> int:
    return int(context[0] > 1)


def context_of(name: str, step: int) -> list[float] | None:
    return [0.3 + 0.4 * (step % 4)] if name in ("contextwise", "cgp_ucb") else None


def value_of(trial: Any) -> float:
    x = trial.x.double()
    extra = 0.0 if trial.context is None else float(trial.context[0])
    return float(torch.sin(3 * x[0]) - x[1] / 5) + 0.1 * extra


def play(study: bx.Study, name: str) -> None:
    """Asks twelve and more; two are corrected or failed, three stay pending."""
    trials = [study.ask(context=context_of(name, step)) for step in range(5)]
    for trial in (trials[3], trials[0], trials[1]):
        study.tell(trial, value_of(trial))
    study.abandon(trials[2], failed=True)
    study.correct(trials[0], value_of(trials[0]) + 0.05)
    for step in range(5, 9):
        trial = study.ask(context=context_of(name, step))
        study.tell(trial, value_of(trial))
    if study.strategy.refuses_attached is None:
        last = study.strategy.history.trials[-1]
        study.attach(last.x, 0.1, last.context)
    for step in range(9, 11):
        study.ask(context=context_of(name, step))


def seen(study: bx.Study) -> list[Any]:
    """Every event, as plain data: values in the sign of the study, records in that of the
    strategy."""
    text = []
    for event, own in zip(study.events, study.strategy.events, strict=True):
        trial = getattr(own, "trial", None)
        of = [event.id] if trial is None else [trial.id, trial.x.tolist(), trial.info]
        if trial is not None and trial.context is not None:
            of.append(trial.context.tolist())
        said = [getattr(event, name, None) for name in ("value", "failed")]
        text.append([type(event).__name__, *of, *said])
    return json.loads(json.dumps(text))


def write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    expected = {}
    for name, make in METHODS.items():
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "study.db"
            study = bx.Study(path, make(), minimize=name in MINIMISED)
            play(study, name)
            expected[name] = seen(study)
            del study
            with closing(sqlite3.connect(path)) as connection:
                # As the library wrote it, in small pages and without a log beside it.
                connection.execute("PRAGMA journal_mode=delete")
                connection.execute("PRAGMA page_size=512")
                connection.execute("VACUUM")
            (folder / f"{name}.sqlite").write_bytes(path.read_bytes())
    lines = (f"{json.dumps(name)}: {json.dumps(events)}" for name, events in expected.items())
    (folder / "events.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    write(Path(sys.argv[1]))

"""What the tests of Ax share: experiments, and strategies that are asked by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig, StorageConfig
from ax.core.experiment import Experiment
from ax.core.metric import Metric
from ax.core.objective import Objective
from ax.core.optimization_config import OptimizationConfig
from ax.core.parameter import ParameterType, RangeParameter
from ax.core.parameter_constraint import ParameterConstraint
from ax.core.search_space import SearchSpace
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.storage.sqa_store.db import create_all_tables, get_engine, init_engine_and_session_factory
from gpytorch.kernels import MaternKernel

import botorch_ext as bx
from botorch_ext import acquisition
from botorch_ext.domains.space import Space
from botorch_ext.integrations.ax import generation_strategy
from botorch_ext.integrations.ax_space import AxSpace
from botorch_ext.strategies import Strategy

Parameters = Mapping[str, Any]


def in_range(name: str, *bounds: float, kind: Any = "float", **options: Any) -> Any:
    return RangeParameterConfig(name=name, parameter_type=kind, bounds=bounds, **options)


def among(name: str, *values: Any, kind: Any, is_ordered: bool | None = None) -> Any:
    return ChoiceParameterConfig(
        name=name, parameter_type=kind, values=list(values), is_ordered=is_ordered
    )


PLAIN = (in_range("x", 2.0, 5.0), in_range("y", -30.0, -10.0))
MIXED = (
    in_range("time", 2.0, 5.0),
    in_range("rate", 1e-4, 1e-1, scaling="log"),
    in_range("cycles", 1, 9, kind="int"),
    in_range("load", 0.0, 1.0, step_size=0.1),
    among("solvent", "water", "ether", "hexane", kind="str", is_ordered=False),
    among("stirred", True, False, kind="bool"),
    among("size", 0.1, 0.5, 2.0, kind="float", is_ordered=True),
    among("grade", "low", "middle", "high", kind="str", is_ordered=True),
    among("vessel", "glass", kind="str"),
)


def kernel() -> MaternKernel:
    made = MaternKernel(nu=2.5, ard_num_dims=2).double()
    made.lengthscale = torch.tensor([1.3, 7.1], dtype=torch.float64)
    return made


#: Methods with arguments; no test has more trials than the horizons.
METHODS: dict[str, dict[str, Any]] = {
    "gp_bucb": {"num_initial": 4},
    "integrated_ei": {"num_initial": 4, "particles": bx.Particles(8)},
    "certified_bucb": {
        "kernel": kernel(),
        "noise_variance": 0.01,
        "horizon": 40,
        "width": 2.0,
        "num_initial": 2,
    },
    "he_gp_ucb": {
        "models": bx.CandidateModels.lengthscales(MaternKernel(2.5), [1.0, 3.0, 9.0], 0.01),
        "noise_std": 0.1,
        "rkhs_bound": 3.0,
        "num_initial": 2,
    },
}


def cost(parameters: Parameters) -> float:
    """To minimise, with few decimals that Ax does not keep."""
    x, y = float(parameters["x"]), float(parameters["y"])
    return (x - 3.0) ** 2 / 3 + (y + 17.0) ** 2 / 70


def client(
    parameters: Iterable[Any] = PLAIN,
    algorithm: Any = "gp_bucb",
    storage: Any = None,
    constraints: list[str] | None = None,
    objective: str = "-cost",
    **arguments: Any,
) -> Client:
    """An experiment with one strategy."""
    made = Client(storage_config=storage, random_seed=0)
    made.configure_experiment(list(parameters), constraints, name="lab")
    made.configure_optimization(objective=objective)
    made.set_generation_strategy(generation_strategy(algorithm, **arguments))
    return made


def store_of(kind: str, folder: Path) -> StorageConfig | None:
    """Of the database in a folder, opened by this process; None for JSON."""
    if kind == "JSON":
        return None
    url = f"sqlite:///{folder / 'lab.db'}"
    # Ax has one engine at a time, and connections are none of a forked process.
    init_engine_and_session_factory(url=url, force_init=True)
    create_all_tables(get_engine())
    return StorageConfig(url=url)


def loaded(kind: str, folder: Path) -> Client:
    """The experiment in a folder, as ``lab.json`` or as a database."""
    if kind == "JSON":
        return Client.load_from_json_file(str(folder / "lab.json"))
    return Client.load_from_database("lab", storage_config=store_of(kind, folder))


def with_acquisition(name: str, **options: Any) -> GenerationStrategy:
    """Ax's own model, with an acquisition function of the library."""
    spec = GeneratorSpec(
        generator_enum=Generators.BOTORCH_MODULAR,
        generator_kwargs={
            "botorch_acqf_class": getattr(acquisition, name),
            "botorch_acqf_options": options,
        },
    )
    return GenerationStrategy(nodes=[GenerationNode(name=name, generator_specs=[spec])])


def kept(value: float) -> float:
    """A value as Ax saves it."""
    text = pd.DataFrame({"mean": [value]}).to_json()
    return float(pd.read_json(StringIO(text))["mean"][0])


class ByHand:
    """A strategy that is asked and told as Ax does it: what happened is told before an ask, in the
    order of the trials."""

    def __init__(self, space: Space, strategy: Strategy, sign: float = -1.0) -> None:
        self.space, self.strategy, self._sign = space, strategy, sign
        self._news: dict[int, Callable[[], Any]] = {}

    @classmethod
    def of(cls, client: Client, algorithm: str, context: Any = None, **arguments: Any) -> ByHand:
        space = AxSpace(client._experiment.search_space).chosen
        return cls(space, getattr(bx.algorithms, algorithm)(space, **arguments))

    def ask(self, num_trials: int, context: Any = None) -> list[dict[str, Any]]:
        for id in sorted(self._news):
            self._news[id]()
        self._news = {}
        trials = self.strategy.ask(num_trials, context=context)
        return [self.space.params(trial.x) for trial in trials]

    def tell(self, id: int, value: float) -> None:
        self._news[id] = lambda: self.strategy.tell(id, self._sign * kept(value))

    def abandon(self, id: int, failed: bool = False) -> None:
        self._news[id] = lambda: self.strategy.abandon(id, failed=failed)


def arguments_of(method: str) -> dict[str, Any]:
    """Those of `METHODS`, with the defaults of a strategy in Ax."""
    fitted = {"kernel": bx.Fitted(), "width": 2.0} if method == "gp_bucb" else {}
    return fitted | METHODS[method]


def search_space(*parameters: Any, constraints: Iterable[str] = ()) -> SearchSpace:
    return SearchSpace(list(parameters), [ParameterConstraint(each) for each in constraints])


def ranged(name: str, lower: float = 0.0, upper: float = 1.0, **options: Any) -> RangeParameter:
    return RangeParameter(name, ParameterType.FLOAT, lower, upper, **options)


def experiment(space: SearchSpace) -> Experiment:
    """A cost is minimised."""
    objective = Objective("-cost", metric_name_to_signature={"cost": "cost"})
    made = Experiment(space, "lab", tracking_metrics=[Metric("cost")])
    made.optimization_config = OptimizationConfig(objective)
    return made


def parameters_of(trials: Mapping[int, Parameters]) -> list[dict[str, Any]]:
    """Of what a client gave."""
    return [dict(each) for each in trials.values()]

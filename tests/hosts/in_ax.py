"""Experiments of Ax for the tests, and the adapter of the machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
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
from ax.exceptions.core import DataRequiredError
from ax.exceptions.generation_strategy import GenerationStrategyCompleted
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.storage.sqa_store.db import create_all_tables, get_engine, init_engine_and_session_factory

from botorch_ext import acquisition
from botorch_ext.integrations.ax import generation_strategy
from botorch_ext.integrations.recipes import Recipe
from botorch_ext.strategies import Strategy
from tests.helpers import matern
from tests.hosts.machine import Values

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


#: The space of the machine.
NAMED = (
    in_range("depth", 2, 9, kind="int"),
    among("kind", "rbf", "linear", "poly", kind="str", is_ordered=False),
    in_range("rate", 1e-3, 0.5, scaling="log"),
)
KERNEL = matern(1.3, 7.1)
FIXED = {"kernel": KERNEL, "noise_variance": 0.01, "width": 2.0, "num_initial": 2}


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


def kept(value: float) -> float:
    """A value as Ax saves it, and reads it."""
    text = pd.DataFrame({"mean": [value]}).to_json()
    return float(pd.read_json(StringIO(text))["mean"][0])


def parameters_of(trials: Mapping[int, Parameters]) -> list[dict[str, Any]]:
    """The parameters of the trials that a client gave."""
    return [dict(each) for each in trials.values()]


def node_of(ours: Client) -> Any:
    return ours._generation_strategy.current_node


def values_of(ours: Client) -> list[float]:
    """What the strategy was told, in the sign of what it maximises."""
    return [*node_of(ours).strategy.history.values.values()]


class InAx:
    """An experiment of Ax, saved as JSON."""

    cannot = ("late",)
    is_immediate = False
    minimizes = True

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.folder = folder
        more = {"num_points": recipe.num_points, **recipe.arguments}
        self.client = client(NAMED, recipe.algorithm, **more)

    def ask(self) -> Values | None:
        try:
            (values,) = self.client.get_next_trials(1).values()
        except (DataRequiredError, GenerationStrategyCompleted):
            return None
        return values

    def tell(self, key: int, value: float) -> None:
        self.client.complete_trial(key, {"cost": value})

    def correct(self, key: int, value: float) -> None:
        self.client.attach_data(key, {"cost": value})

    def fail(self, key: int, value: float) -> None:
        if key % 2:
            self.client.mark_trial_failed(key)
        else:  # whose value is not that of a whole evaluation
            self.client.attach_data(key, {"cost": -100.0}, progression=1)
            self.client.mark_trial_early_stopped(key)

    def give_up(self, key: int) -> bool:
        self.client.mark_trial_abandoned(key)
        return False

    def attach(self, values: Values, value: float) -> None:
        self.tell(self.client.attach_trial(dict(values)), value)

    def kept(self, value: float) -> float:
        return kept(value)

    def resume(self) -> None:
        self.client.save_to_json_file(str(self.folder / "lab.json"))
        self.client = loaded("JSON", self.folder)

    def strategy(self) -> Strategy:
        return node_of(self.client).strategy

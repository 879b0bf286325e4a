"""Acquisition functions of the library in an Ax experiment that is saved and loaded."""

import json

import pytest
import torch

from botorch_ext import acquisition

pytest.importorskip("ax")

from ax.adapter.registry import Generators
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.encoder import object_to_json

import botorch_ext.integrations.ax  # noqa: F401  registers them

pytestmark = pytest.mark.filterwarnings(
    "ignore",
    "error::botorch_ext.exceptions.BotorchExtWarning",
)

OPTIONS = {
    "EnlargedUpperConfidenceBound": {"width": 1.5, "misspecification": 0.01},
    "ExpectedUCB": {"width": 1.5, "probabilities": [0.25, 0.75]},
    "IntegratedLogEI": {},
    "LowerConfidenceBound": {"width": torch.tensor(1 / 3, dtype=torch.float64)},
    "MaxVariance": {},
    "OptimisticModelUCB": {"width": 1.5},
    "StableUCB": {"width": 1.5, "radius": [0.1, 0.2], "norm": "linf"},
}


def strategy_of(name):
    spec = GeneratorSpec(
        generator_enum=Generators.BOTORCH_MODULAR,
        generator_kwargs={
            "botorch_acqf_class": getattr(acquisition, name),
            "botorch_acqf_options": OPTIONS[name],
        },
    )
    return GenerationStrategy(nodes=[GenerationNode(name=name, generator_specs=[spec])])


def test_the_options_of_all_are_tried():
    assert OPTIONS.keys() == set(acquisition.__all__)


@pytest.mark.parametrize("name", OPTIONS)
def test_class_and_options_come_back(name):
    text = json.dumps(object_to_json(strategy_of(name)))
    (node,) = object_from_json(json.loads(text))._nodes
    given = node.generator_specs[0].generator_kwargs
    assert given["botorch_acqf_class"] is getattr(acquisition, name)
    kept, options = given["botorch_acqf_options"], OPTIONS[name]
    assert kept.keys() == options.keys()
    for key, option in options.items():
        is_tensor = isinstance(option, torch.Tensor)
        assert torch.equal(kept[key], option) if is_tensor else kept[key] == option


def test_an_experiment_goes_on_after_it_was_loaded(tmp_path):
    client = Client(random_seed=0)
    client.configure_experiment(
        [
            RangeParameterConfig(name=name, parameter_type="float", bounds=(2.0, 5.0))
            for name in ("x", "y")
        ]
    )
    client.configure_optimization(objective="-cost")
    client.set_generation_strategy(strategy_of("EnlargedUpperConfidenceBound"))
    for x, y in [(2.5, 3.0), (4.0, 4.5), (3.0, 2.2)]:
        index = client.attach_trial({"x": x, "y": y})
        client.complete_trial(index, raw_data={"cost": (x - 3) ** 2 + (y - 4) ** 2})
    client.get_next_trials(1)
    path = str(tmp_path / "experiment.json")
    client.save_to_json_file(path)
    again = Client.load_from_json_file(path)
    (parameters,) = again.get_next_trials(1).values()
    assert parameters.keys() == {"x", "y"}
    run = again._experiment.trials[3].generator_run
    assert run._generator_kwargs["botorch_acqf_class"] is (acquisition.EnlargedUpperConfidenceBound)

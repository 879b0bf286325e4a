"""Acquisition functions of the library in an Ax experiment that is saved and loaded."""

import json

import pytest
import torch

from botorch_ext import acquisition

pytest.importorskip("ax")

from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.encoder import object_to_json

from tests.integrations.in_ax import PLAIN, client, cost, loaded, store_of, with_acquisition

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


def test_the_options_of_all_are_tried():
    assert OPTIONS.keys() == set(acquisition.__all__)


@pytest.mark.parametrize("name", OPTIONS)
def test_class_and_options_come_back(name):
    text = json.dumps(object_to_json(with_acquisition(name, **OPTIONS[name])))
    (node,) = object_from_json(json.loads(text))._nodes
    given = node.generator_specs[0].generator_kwargs
    assert given["botorch_acqf_class"] is getattr(acquisition, name)
    kept, options = given["botorch_acqf_options"], OPTIONS[name]
    assert kept.keys() == options.keys()
    for key, option in options.items():
        is_tensor = isinstance(option, torch.Tensor)
        assert torch.equal(kept[key], option) if is_tensor else kept[key] == option


@pytest.mark.parametrize("kind", ["JSON", "SQLite"])
def test_an_experiment_goes_on_after_it_was_loaded(kind, tmp_path):
    name = "EnlargedUpperConfidenceBound"
    ours = client(PLAIN, storage=store_of(kind, tmp_path))
    # The one before is not saved yet.
    ours.set_generation_strategy(with_acquisition(name, **OPTIONS[name]))
    for x, y in [(2.5, -20.0), (4.0, -12.0), (3.0, -28.0)]:
        index = ours.attach_trial({"x": x, "y": y})
        ours.complete_trial(index, raw_data={"cost": cost({"x": x, "y": y})})
    ours.get_next_trials(1)
    ours.save_to_json_file(str(tmp_path / "lab.json"))
    again = loaded(kind, tmp_path)
    (parameters,) = again.get_next_trials(1).values()
    assert parameters.keys() == {"x", "y"}
    for index in (3, 4):
        run = again._experiment.trials[index].generator_run
        assert run._generator_kwargs["botorch_acqf_class"] is getattr(acquisition, name)

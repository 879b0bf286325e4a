"""The acquisition function inside Ax: its input constructor, pending trials and minimisation."""

import pytest
import torch

from botorch_ext.acquisition import EnlargedUpperConfidenceBound

pytest.importorskip("ax")

# Ax and what it imports warn about themselves; our own warnings stay errors.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(
        "ignore",
        "error::botorch_ext.exceptions.BotorchExtWarning",
        # With so little noise in the fit an eps of .05 is much.
        "ignore::botorch_ext.exceptions.EnlargementWarning",
    ),
]


def objective(x, y):
    return (x - 3.0) ** 2 + 2 * (y + 2.5) ** 2


@pytest.fixture
def client():
    from ax.adapter.registry import Generators
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig
    from ax.generation_strategy.generation_node import GenerationNode
    from ax.generation_strategy.generation_strategy import GenerationStrategy
    from ax.generation_strategy.generator_spec import GeneratorSpec

    client = Client(random_seed=0)
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name="x", parameter_type="float", bounds=(2.0, 5.0)),
            RangeParameterConfig(name="y", parameter_type="float", bounds=(-3.0, -1.0)),
        ]
    )
    client.configure_optimization(objective="-cost")
    spec = GeneratorSpec(
        generator_enum=Generators.BOTORCH_MODULAR,
        generator_kwargs={
            "botorch_acqf_class": EnlargedUpperConfidenceBound,
            "botorch_acqf_options": {"width": 2.0, "misspecification": 0.05},
        },
    )
    node = GenerationNode(name="EnlargedUCB", generator_specs=[spec])
    client.set_generation_strategy(GenerationStrategy(name="EC-GP-UCB", nodes=[node]))
    return client


@pytest.fixture
def built(monkeypatch):
    """The keyword arguments of every acquisition function that Ax makes."""
    calls, init = [], EnlargedUpperConfidenceBound.__init__

    def recording(self, *args, **kwargs):
        calls.append(kwargs)
        init(self, *args, **kwargs)

    monkeypatch.setattr(EnlargedUpperConfidenceBound, "__init__", recording)
    return calls


def test_minimisation_with_pending_trials(client, built):
    g = torch.Generator().manual_seed(0)
    for u, v in torch.rand(5, 2, generator=g).tolist():
        point = {"x": 2.0 + 3.0 * u, "y": -3.0 + 2.0 * v}
        index = client.attach_trial(parameters=point)
        client.complete_trial(trial_index=index, raw_data={"cost": objective(**point)})
    asked = []
    for _ in range(5):
        # Three trials at a time: the second and third are asked while others are pending.
        batch = client.get_next_trials(max_trials=3)
        asked += [tuple(point.values()) for point in batch.values()]
        for index, point in batch.items():
            client.complete_trial(trial_index=index, raw_data={"cost": objective(**point)})
    assert len(asked) == 15
    assert {call["misspecification"] for call in built} == {0.05}
    assert all(call["posterior_transform"] is not None for call in built)
    assert max(0 if c["X_pending"] is None else len(c["X_pending"]) for c in built) == 2
    assert torch.pdist(torch.tensor(asked, dtype=torch.float64)).min() > 1e-4
    # Cost, not reward, was optimised: the last points are near the minimum at (3, -2.5).
    assert min(objective(*point) for point in asked) < 0.05

"""Methods ask only points that satisfy texts and functions, and studies keep these."""

import pytest
import torch

import botorch_ext as bx
from botorch_ext.codec import allow_argument
from botorch_ext.exceptions import OutsideDomainError, StudyError
from botorch_ext.strategies import RandomSearch
from tests.laws.scenarios import quietly

pytestmark = quietly


def dry(params):
    """Ethanol burns when it is hot for many cycles."""
    assert type(params["cycles"]) is int
    return params["solvent"] != "ethanol" or params["temperature"] * params["cycles"] <= 150


SPACE = bx.Space(
    temperature=bx.Real(20, 120, digits=1),
    time=bx.Real(1, 60, log=True),
    cycles=bx.Integer(1, 4),
    solvent=bx.Choice(["water", "ethanol"]),
    constraints=["temperature * time <= 3000", "temperature + 20 * cycles <= 160", dry],
)


def measured(params):
    burnt = params["temperature"] * params["time"] / 3000
    return burnt + 0.1 * params["cycles"] + 0.2 * (params["solvent"] == "ethanol")


def holds(params):
    return (
        params["temperature"] * params["time"] <= 3000 * (1 + 1e-7)
        and params["temperature"] + 20 * params["cycles"] <= 160 + 1e-7
        and dry(params)
    )


def below(params):
    return params["temperature"] * params["time"] <= 3000


METHODS = {
    "integrated_ei": lambda: bx.algorithms.integrated_ei(SPACE, num_initial=5, seed=2),
    "gp_bucb": lambda: bx.algorithms.gp_bucb(SPACE, bx.Fitted(), width=2.0, num_initial=5),
    "thompson_sampling": lambda: bx.algorithms.thompson_sampling(
        SPACE, bx.Fitted(), num_initial=5, seed=1
    ),
    "random": lambda: RandomSearch(SPACE, seed=4),
}


@pytest.mark.parametrize("method", METHODS)
def test_every_asked_point_holds_and_a_replay_asks_the_same(method):
    strategy, num = METHODS[method](), 9 if method == "integrated_ei" else 6
    for _ in range(num):
        trial = strategy.ask()
        assert holds(trial.params), trial.params
        assert len(f"{trial.params['time']:.9g}".replace(".", "").strip("0")) <= 3
        strategy.tell(trial, measured(trial.params))
    assert holds(strategy.best_params())
    again = METHODS[method]()
    again.replay(strategy.events)
    one, other = strategy.ask(2), again.ask(2)
    assert all(holds(trial.params) for trial in one)
    for first, second in zip(one, other, strict=True):
        assert torch.equal(first.x, second.x)


@pytest.mark.parametrize("curve", ["temperature * time <= 3000", below])
def test_the_best_trials_lie_on_the_boundary(curve):
    space = bx.Space(temperature=bx.Real(20, 120), time=bx.Real(1, 60), constraints=[curve])
    strategy = bx.algorithms.integrated_ei(space, num_initial=4, seed=1)
    for _ in range(12):
        trial = strategy.ask()
        assert bool(space.contains(trial.x).all())
        strategy.tell(trial, trial.params["temperature"] / 120 + 1.3 * trial.params["time"] / 60)
    assert max(strategy.history.values.values()) > 0.99 * (50 / 120 + 1.3)


def test_results_outside_are_refused_or_kept():
    strategy = METHODS["random"]()
    params = SPACE.params(SPACE.sample(1, 0)[0]) | {"temperature": 120.0, "time": 50.0}
    with pytest.raises(OutsideDomainError, match=r"temperature \* time <= 3000 must hold"):
        strategy.attach(params, 1.0)
    free = bx.Space(a=bx.Real(0, 9), constraints=[lambda params: params["a"] <= 3])
    strategy = bx.algorithms.integrated_ei(free, num_initial=1)
    with pytest.raises(OutsideDomainError, match=r"<lambda> must hold, got \{'a': 5.0\}"):
        strategy.attach({"a": 5.0}, 1.0)
    strategy.attach({"a": 5.0}, 9.0, outside=True)
    strategy.attach({"a": 2.0}, 1.0)
    assert strategy.ask().params["a"] <= 3


def low(params):
    return params["a"] <= 5


def test_studies_keep_them(tmp_path):
    def study(name, constraints):
        space = bx.Space(a=bx.Real(1, 9), b=bx.Real(1, 9), constraints=constraints)
        return bx.Study(tmp_path / f"{name}.db", RandomSearch(space, seed=1))

    trial = study("text", ["a * b <= 20"]).ask()
    opened = bx.Study(tmp_path / "text.db")
    assert opened.strategy.domain.to_arguments()["constraints"] == ("a * b <= 20",)
    assert torch.equal(opened.strategy.clone().history.trials[0].x, trial.x)
    with pytest.raises(StudyError, match="constraints"):
        study("text", ["a * b <= 21"])
    study("function", [low]).ask()
    with pytest.raises(ValueError, match="allow_argument"):
        bx.Study(tmp_path / "function.db").ask()
    study("function", [low]).ask()
    allow_argument(low)
    assert all(trial.params["a"] <= 5 for trial in bx.Study(tmp_path / "function.db").ask(3))

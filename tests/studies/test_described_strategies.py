"""Strategies are made again from the description of their study, or refused by name."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel

import botorch_ext as bx
from botorch_ext import algorithms
from botorch_ext.exceptions import StudyError
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.described_strategies import described_strategy
from botorch_ext.studies.description import describe
from botorch_ext.studies.plain_events import from_json, to_json

BOX = bx.Box([(0, 1), (2, 5)], integer=[1], log=[])
SPACE = bx.Space(
    time=bx.Real(1, 9, log=True, unit="s"),
    kind=bx.Choice({"a": [0.0], "b": [1.0], "c": [5.0]}),
    depth=bx.Integer(1, 9, step=2),
    constraints=["depth + time <= 12"],
    conditions={},
)
DATA = (BOX.sample(3, seed=2), torch.tensor([[1.0], [2.0], [0.5]]).double())


def kernel():
    inner = MaternKernel(nu=1.5, ard_num_dims=2).double()
    inner.lengthscale = [[0.3, 2.0]]
    scaled = ScaleKernel(inner).double()
    scaled.outputscale = 0.5
    return scaled


MADE = {
    "integrated_ei": lambda: algorithms.integrated_ei(SPACE, seed=4),
    "particles": lambda: algorithms.integrated_ei(BOX, bx.Particles(16), initial=DATA),
    "fitted": lambda: algorithms.gp_bucb(SPACE, bx.Fitted(), width=2.0, num_initial=4),
    "kernel": lambda: algorithms.gp_ucb(BOX, kernel(), noise_variance=0.1, width=2.0),
    "width": lambda: algorithms.gp_bucb(
        bx.Box([(0, 1), (2, 5)]),
        RBFKernel().double(),
        noise_variance=0.1,
        width=bx.widths.SelfNormalized(1.0, 0.1, 0.05),
    ),
    "rounds": lambda: algorithms.bpe(
        bx.FiniteSet(BOX.sample(9, seed=1)),
        RBFKernel().double(),
        horizon=20,
        noise_variance=0.1,
        width=2.0,
    ),
    "contexts": lambda: algorithms.integrated_ei(
        BOX, context_domain=bx.Space(humidity=bx.Real(0, 1))
    ),
    "class": lambda: RandomSearch(SPACE, seed=3, num_initial=2),
}


def described(strategy):
    return from_json(to_json(describe(strategy)))


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
@pytest.mark.parametrize("name", MADE)
def test_the_strategy_made_again_asks_the_same(name):
    made = MADE[name]()
    again = described_strategy(described(made), "study 'a'")
    assert described(again) == described(made)
    context = {"context": [0.5]} if made.context_space is not None else {}
    for _ in range(3):
        first, second = made.ask(**context), again.ask(**context)
        assert torch.equal(first.x, second.x) and first.params == second.params
        made.tell(first, float(first.x.sum()))
        again.tell(second, float(first.x.sum()))


class Own(RandomSearch):
    """A strategy that a user wrote."""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Own(BOX), "does not have, Own: open the study in Python, with the strategy"),
        (
            lambda: algorithms.gp_bucb(
                BOX, PeriodicKernel().double(), noise_variance=1.0, width=2.0
            ),
            "cannot make its strategy gp_bucb again, kernel is a PeriodicKernel",
        ),
        (
            lambda: algorithms.integrated_ei(
                BOX, initial=(BOX.sample(300, seed=0), torch.zeros(300).double())
            ),
            "initial has too many numbers for its description",
        ),
        (
            lambda: algorithms.gp_bucb(
                BOX, kernel(), noise_variance=0.1, width=2.0, mean=lambda X: X.sum(dim=-1)
            ),
            "mean is a ",
        ),
    ],
    ids=["class", "kernel", "data", "function"],
)
def test_what_a_description_does_not_hold_is_named(make, message):
    with pytest.raises(StudyError, match=message) as raised:
        described_strategy(described(make()), "study 'a'")
    assert str(raised.value).startswith("study 'a' ")


def test_another_argument_is_never_made_up():
    kept = described(MADE["kernel"]())
    call = kept["strategy"]["<call>"]
    call["kernel"]["base_kernel"]["period_length"] = {"dtype": "torch.float64", "values": 2.0}
    with pytest.raises(StudyError, match=r"again: .*period_length is"):
        described_strategy(kept, "study 'a'")


@pytest.mark.parametrize("wrong", [{}, {"strategy": "x"}, {"strategy": {"class": "Strategy"}}])
def test_descriptions_of_nothing(wrong):
    with pytest.raises(StudyError, match="study 'a'"):
        described_strategy(wrong, "study 'a'")


def test_a_study_is_opened_by_its_place_alone(tmp_path):
    pytest.importorskip("sqlalchemy")
    study = bx.Study(tmp_path / "a.db", MADE["integrated_ei"](), minimize=True)
    trial = study.ask()
    again = bx.Study(tmp_path / "a.db")
    assert again.minimize and again.pending == [0]
    again.tell(trial, 3.0)
    assert study.best()[1] == again.best()[1]

"""Messages of errors stay short however much was given, and say the cure where there is one."""

import pytest
import torch
from botorch.models import ModelListGP, SingleTaskGP

import botorch_ext as bx
from botorch_ext.acquisition import ExpectedUCB, OptimisticModelUCB
from botorch_ext.analysis import fitted_slope
from tests.helpers import drawn, rbf

MANY = 999
NOTHING = [0.0] * MANY


def of_a_model() -> bx.KernelGP:
    model = bx.KernelGP(rbf(0.5), 0.01)
    model.add(drawn(5, 2), drawn(5))
    return model


LONG = [
    lambda: bx.problems.tabulated(bx.FiniteSet(drawn(1000, 1)), NOTHING),
    lambda: bx.problems.tabulated(bx.FiniteSet(drawn(MANY, 1)), torch.full((MANY,), torch.nan)),
    lambda: bx.CandidateModels.lengthscales(rbf(0.5), NOTHING, 0.01),
    lambda: bx.Box([(0, 1)], categories={0: NOTHING}),
    lambda: bx.Box([(0, 1)], categories={0: range(MANY)}),
    lambda: bx.Box(torch.full((2, MANY), torch.nan)),
    lambda: bx.Box(torch.zeros(2, MANY)),
    lambda: of_a_model().set_targets([9] * MANY, NOTHING),
    lambda: fitted_slope([1.0] * MANY, drawn(3, MANY)),
    lambda: ExpectedUCB(of_a_model(), width=2.0, probabilities=torch.ones(MANY).double()),
]


@pytest.mark.parametrize("call", LONG)
def test_of_many_values_a_few_are_shown_and_their_number(call):
    with pytest.raises(ValueError, match=str(MANY)) as error:
        call()
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("method", [OptimisticModelUCB, ExpectedUCB])
def test_a_model_list_is_refused_with_what_to_give_in_its_place(method):
    X, Y = drawn(5, 2), drawn(5, 1, seed=1)
    together = ModelListGP(SingleTaskGP(X, Y), SingleTaskGP(X, 2 * Y))
    more = {"probabilities": [0.5, 0.5]} if method is ExpectedUCB else {}
    for given in (together, [together, together]):
        with pytest.raises(ValueError, match=r"models must .* ModelListGP .*\[\*model\.models\]"):
            method(given, width=2.0, **more)
    with pytest.raises(ValueError, match=r"models must .* posterior_transform"):
        method(SingleTaskGP(X, torch.cat([Y, Y], dim=-1)), width=2.0)
    method([*together.models], width=2.0, **more)  # the cure


@pytest.mark.parametrize(
    ("given", "wanted", "way"),
    [(torch.float32, torch.float64, "double"), (torch.float64, torch.float32, "float")],
)
def test_data_of_another_dtype_are_refused_with_both_cures(given, wanted, way):
    bounds, X = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=wanted), drawn(5, 2).to(given)
    box, back = bx.Box(bounds), {"double": "float", "float": "double"}[way]
    cures = rf"X must be {wanted} .* with \.{way}\(\), or .* as with bx\.Box\(bounds\.{back}\(\)\)"
    with pytest.raises(ValueError, match=cures):
        box.contains(X)
    assert box.contains(getattr(X, way)()).all()
    assert bx.Box(getattr(bounds, back)()).contains(X).all()

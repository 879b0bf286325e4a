"""Models that are replaced: a successor leaves the model it comes from as it was, bit for bit, also
where it is dropped and its rows lie in a buffer that both share."""

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import CandidateModels, FinitePosterior, KernelGP
from botorch_ext.models.replicates import RepeatedDesign
from tests.helpers import tolerance
from tests.laws.shared_sessions import quietly
from tests.strategies.sessions import LAMBDA, finite, kernel

pytestmark = quietly


# --- models ---------------------------------------------------------------------------------------

POINTS = finite().points
FRESH = {
    "FinitePosterior": lambda: FinitePosterior(kernel(), POINTS, LAMBDA, capacity=3),
    "KernelGP": lambda: KernelGP(kernel(), LAMBDA),
    "CandidateModels": lambda: CandidateModels.lengthscales(kernel(), [0.3, 0.8, 2.0], LAMBDA),
    "FiniteCandidates": lambda: CandidateModels.lengthscales(kernel(), [0.3, 0.8, 2.0], LAMBDA).on(
        POINTS
    ),
}


def numbers_of(model):
    """Means and standard deviations at all points."""
    if isinstance(model, KernelGP | CandidateModels):
        return model.mean_and_std(POINTS)
    return model.mean, model.std


def all_of(model):
    """Copies of them, and of what later ones follow from."""
    parts = [part.model for part in model.parts] if hasattr(model, "parts") else [model]
    numbers = list(numbers_of(model))
    for part in parts:
        rows = part.factor.state_dict()
        numbers += [torch.tensor(rows.pop("pending")), *rows.values()]
        numbers += part.train_inputs if part.num_observations else ()
    return [values.clone() for values in numbers]


def changed(model, rows, generator):
    """Changes a model at random; its rows are points and values, None while one is pending."""

    def below(n):
        return int(torch.randint(n, (), generator=generator))

    rows, kind = list(rows), below(6)
    if kind < 3 or not rows:
        row, y = below(len(POINTS)), None if kind else float(below(1000)) / 500 - 1
        model.add(POINTS[row : row + 1], None if y is None else POINTS.new_tensor([y]))
        rows.append((row, y))
    elif kind < 5:
        numbers = sorted({below(len(rows)) for _ in range(3)})
        values = [float(below(1000)) / 500 - 1 for _ in numbers]
        model.set_targets(numbers, POINTS.new_tensor(values))
        for number, y in zip(numbers, values, strict=True):
            rows[number] = rows[number][0], y
    else:
        del rows[number := below(len(rows))]
        model.remove(number)
    return rows


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", FRESH)
def test_successors_of_models_know_their_rows_and_leave_what_came_before(kind, seed):
    generator = torch.Generator().manual_seed(seed)
    model, rows, dropped = FRESH[kind](), [], []
    for step in range(40):
        before = all_of(model)
        new = model.successor()
        own = changed(new, rows, generator)
        if isinstance(new, KernelGP | FinitePosterior):
            assert new.factor.pending == [i for i, (_, y) in enumerate(own) if y is None]
        elif step in (13, 26):
            new.drop(0)
        known = FRESH[kind]()
        for _ in range(len(known) - len(new) if hasattr(known, "drop") else 0):
            known.drop(0)
        for row, y in own:
            known.add(POINTS[row : row + 1], None if y is None else POINTS.new_tensor([y]))
        for ours, theirs in zip(numbers_of(new), numbers_of(known), strict=True):
            assert_close(ours, theirs, **tolerance(ours.dtype))
        assert all(map(torch.equal, all_of(model), before))
        if torch.rand((), generator=generator) < 0.6 or step in (13, 26):
            model, rows = new, own
        else:
            dropped.append(step)
    assert len(dropped) > 8
    assert len(rows) > 5


@pytest.mark.parametrize("seed", range(3))
def test_successors_of_repeated_designs_leave_what_came_before(seed):
    generator = torch.Generator().manual_seed(seed)
    model, some = KernelGP(kernel(), LAMBDA), POINTS[:20]
    design, counts = RepeatedDesign(model, some), torch.zeros(20, dtype=torch.long)

    def numbers_of(design):
        return design.variance.clone(), design.information_gain().clone(), design.counts.clone()

    for _ in range(60):
        before, new, own = numbers_of(design), design.successor(), counts.clone()
        row = int(torch.randint(20, (), generator=generator))
        removes = own[row] and torch.rand((), generator=generator) < 0.2
        (new.remove if removes else new.add)(row)
        own[row] += -1 if removes else 1
        known = RepeatedDesign.from_counts(model, some, own)
        for ours, theirs in zip(numbers_of(new), numbers_of(known), strict=True):
            assert_close(ours, theirs, **tolerance(torch.float64))
        assert all(map(torch.equal, numbers_of(design), before))
        if torch.rand((), generator=generator) < 0.7:
            design, counts = new, own
    assert counts.sum() > 20

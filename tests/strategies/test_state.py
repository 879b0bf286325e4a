"""State that is replaced: a successor leaves the value it comes from as it was, bit for bit, also
where it is dropped and its rows lie in a buffer that both share."""

import pickle
import warnings

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import CandidateModels, FinitePosterior, KernelGP
from botorch_ext.exceptions import PriorScaleWarning
from botorch_ext.models.replicates import RepeatedDesign
from botorch_ext.state import Log
from botorch_ext.strategies import (
    Abandoned,
    Asked,
    Attached,
    Corrected,
    OptimisticStrategy,
    Told,
    Trial,
)
from botorch_ext.testing.sessions import Session, question
from botorch_ext.testing.states import state
from tests.helpers import tolerance
from tests.laws.registry import METHODS, QUICK, entry_of
from tests.laws.scenarios import SCENARIOS
from tests.laws.shared_sessions import quietly
from tests.strategies.sessions import LAMBDA, finite, kernel

pytestmark = quietly

# --- strategies -----------------------------------------------------------------------------------


def in_the_middle(entry):
    """A session of which something is told and something pends."""
    session = Session(entry, seed=838, num_actions=9 if entry.scenario.is_box else 18)
    session.play()
    if not session.strategy.pending:
        session.do(("ask", 0.0, 0.0))
    return session


def possible(session):
    """Events that can come now, other than that a trial is asked."""
    strategy = session.strategy
    ids = strategy.pending  # what is told is a slice of them, from the first or up to the last
    yield from (Told(id, 0.31) for id in dict.fromkeys([ids[0], ids[-1]]))
    yield from (Abandoned(strategy.pending[0], failed) for failed in (False, True))
    if strategy.history.values:
        yield Corrected(next(iter(strategy.history.values)), -0.27)
    if strategy.refuses_attached is None:
        x, context = strategy.domain.sample(1, seed=5), session.offer().get("context")
        context = None if context is None else strategy.checked_context(context)
        info = strategy._info_of_attached(x, context)
        yield Attached(Trial(len(strategy.history.trials), x[0], context, info), 0.11)


SLOW = [name for name in METHODS if entry_of(name).scenario.is_box and name not in QUICK]


@pytest.mark.parametrize(
    "method",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in METHODS],
)
def test_what_comes_after_leaves_the_state_before_it(method):
    entry = entry_of(method)
    session, expected = in_the_middle(entry), entry.make(838)
    strategy, offer = session.strategy, session.offer()
    expected.replay(strategy.events)
    before = state(strategy)
    # Each of them is dropped, with the question that it leads to.
    for event in possible(session):
        after = strategy.after(event)
        assert len(after.history.events) == len(before["events"]) + 1
        question(after, offer)
        assert state(strategy) == before, event
    # What follows instead lies where the rows of the dropped ones were.
    asked = question(expected, offer)
    assert question(strategy.successor(), offer) == asked
    assert state(strategy) == before
    after = strategy
    if "info" in asked:
        after = strategy.after(Asked(expected.history.trials[-1]))
        assert state(after) == state(expected)
        assert state(strategy) == before
    told = Told(after.pending[-1], 0.42)
    expected.tell(told.id, told.value)
    last = after.after(told)
    assert state(last) == state(expected)
    assert question(last, offer) == question(expected, offer)
    assert state(strategy) == before


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
    """Changes a model at random, and its rows: of each the point, and the value, None while it is
    pending."""

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
    for _ in range(60):
        before = design.variance.clone(), design.information_gain().clone(), design.counts.clone()
        new, own = design.successor(), counts.clone()
        row = int(torch.randint(20, (), generator=generator))
        if own[row] and torch.rand((), generator=generator) < 0.2:
            new.remove(row)
            own[row] -= 1
        else:
            new.add(row)
            own[row] += 1
        known = RepeatedDesign.from_counts(model, some, own)
        assert torch.equal(new.counts, own)
        for ours, theirs in (
            (new.variance, known.variance),
            (new.information_gain(), known.information_gain()),
        ):
            assert_close(ours, theirs, **tolerance(ours.dtype))
        after = design.variance, design.information_gain(), design.counts
        assert all(map(torch.equal, after, before))
        if torch.rand((), generator=generator) < 0.7:
            design, counts = new, own
    assert counts.sum() > 20


def test_what_is_said_of_rows_is_said_of_their_own():
    """A dropped successor leaves rows behind, which need jitter."""
    model = FRESH["KernelGP"]()
    x = POINTS[:1]
    model.add(x, x.new_tensor([0.5]))
    dropped = model.successor()
    dropped.add(x, x.new_tensor([0.5]))
    dropped.factor.jitter[..., 1] = 1.0
    models = CandidateModels.of(model)
    assert models.jittered_rows().tolist() == [0]
    assert models.on(POINTS).jittered_rows().tolist() == [0]


# --- the state before the first event -------------------------------------------------------------


def test_reading_before_the_first_event_leaves_no_chain():
    strategy = METHODS["gp_ucb"](SCENARIOS["set"], seed=3, pending="hallucinate")
    for _ in range(5):
        strategy = strategy.successor()
    assert strategy._first.state._first is None
    strategy.tell(strategy.ask().id, 0.4)
    assert pickle.loads(pickle.dumps(strategy)).events[1] == strategy.events[1]


def test_a_warning_made_an_error_leaves_a_replay_undone():
    def make():
        model = KernelGP(kernel(), noise_variance=LAMBDA)
        return OptimisticStrategy(finite(), model, 2.0)

    strategy, fresh = make(), make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorScaleWarning)
        for _ in range(8):
            strategy.tell(strategy.ask().id, 100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorScaleWarning)
        with pytest.raises(PriorScaleWarning):
            fresh.replay(strategy.events)
    assert fresh.events == ()


def test_logs_share_their_items_and_nothing_else():
    log = Log("ab")
    one, other = log.with_item("c"), log.with_item("d")
    assert ("".join(log), "".join(one), "".join(other)) == ("ab", "abc", "abd")
    longer = one.with_item("e").with_item_at(1, "x")
    assert list(longer) == list("axce") and list(one) == list("abc")
    assert (one[-1], one[1:], len(one), one[-3]) == ("c", ["b", "c"], 3, "a")
    for position in (3, -4):
        with pytest.raises(IndexError):
            one[position]
    assert list(pickle.loads(pickle.dumps(log))) == ["a", "b"]

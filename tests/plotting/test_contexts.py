"""The maps of actions and contexts hold what the strategy believes and what it chose."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.plotting import plot_action_map, plot_action_map_1d
from botorch_ext.problems import ContextualRKHSFunction
from botorch_ext.strategies import OptimisticStrategy
from botorch_ext.strategies.random_search import RandomSearch
from tests.helpers import rbf
from tests.plotting.reading import CLOSE, dots, heights, legend, mesh

ARMS = bx.FiniteSet([[2.0, -6.4], [2.3, -6.9], [3.1, -6.2], [4.0, -7.0], [4.8, -6.6]])
HOURS = torch.tensor([[10.0], [12.5], [17.0], [23.0]], dtype=torch.float64)
DAY = bx.Box([[8.0], [24.0]])
LINE = bx.Box([[2.0], [5.0]])


def kernel(dim=2):
    return ActionContextKernel(rbf(0.9), rbf(4.0), dim)


def study(domain=ARMS, contexts=HOURS, num=40, context_domain=DAY):
    problem = ContextualRKHSFunction.random(
        domain, DAY, kernel(domain.dim), norm=2.0, num_centers=9, seed=1
    )
    strategy = OptimisticStrategy(
        domain, bx.KernelGP(kernel(domain.dim), 0.02), 2.0, context_domain=context_domain
    )
    for step in range(num):
        trial = strategy.ask(context=contexts[step % len(contexts)])
        strategy.tell(trial.id, float(problem(trial.point)))
    return strategy, problem


def lines(ax):
    return {line.get_label(): line.get_xydata() for line in ax.lines if len(line.get_xydata())}


def colour_label(ax):
    return [other.get_ylabel() for other in ax.get_figure().axes if other is not ax]


def mean_at(strategy, x, z):
    point = torch.tensor([[*x, *z]], dtype=torch.float64)
    return float(strategy.posterior.mean_and_std(point)[0])


def test_cells_dots_and_frames_are_means_counts_and_the_best():
    strategy, problem = study()
    ax = plot_action_map(strategy, HOURS, truth=problem)
    arms, hours = ARMS.points.tolist(), HOURS.tolist()
    means = np.array([[mean_at(strategy, x, z) for z in hours] for x in arms])
    np.testing.assert_allclose(heights(ax), means, **CLOSE)
    (chosen,) = dots(ax)
    counts = {}
    for trial in strategy.history.trials:
        place = hours.index(trial.context.tolist()), arms.index(trial.x.tolist())
        counts[place] = counts.get(place, 0) + 1
    places = [tuple(map(int, place)) for place in chosen.get_offsets()]
    shown = dict(zip(places, chosen.get_sizes(), strict=True))
    assert set(shown) == set(counts)
    most = max(counts.values())
    assert most > 1
    largest = max(shown.values())
    for place, count in counts.items():
        assert shown[place] == pytest.approx(max(largest * count / most, 3.0))
    true = [[float(problem([*x, *z])) for x in arms] for z in hours]
    expected = {
        "highest posterior mean": [[i, int(means[:, i].argmax())] for i in range(4)],
        "truly best": [[i, values.index(max(values))] for i, values in enumerate(true)],
    }
    assert {label: points.tolist() for label, points in lines(ax).items()} == expected
    assert legend(ax) == [f"chosen (largest: {most} times)", *expected]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["10", "12.5", "17", "23"]
    assert [label.get_text() for label in ax.get_yticklabels()] == list("01234")
    assert colour_label(ax) == ["posterior mean"]


def test_relative_means_and_labels():
    strategy, _ = study()
    names, hours = list("abcde"), ["ten", "noon", "five", "eleven"]
    ax = plot_action_map(
        strategy, HOURS.tolist(), relative=True, action_labels=names, context_labels=hours
    )
    plain = heights(plot_action_map(strategy, HOURS))
    np.testing.assert_allclose(heights(ax), plain - plain.max(axis=0), **CLOSE)
    assert [label.get_text() for label in ax.get_xticklabels()] == hours
    assert [label.get_text() for label in ax.get_yticklabels()] == names
    assert colour_label(ax) == ["posterior mean, less the highest in its context"]


def test_choices_in_other_contexts_are_not_shown_and_many_labels_are_thinned_out():
    strategy, _ = study()
    ax = plot_action_map(strategy, DAY.sample(30, seed=1))
    assert not dots(ax)
    assert legend(ax) == ["highest posterior mean"]
    assert ax.get_xticks().tolist() == [0, 4, 8, 12, 16, 20, 24, 28]


def test_tasks_and_other_numbers_and_many_models():
    # Two columns of context: a number and a task. Positions are the labels.
    of_contexts = ActionContextKernel(rbf(4.0), TaskKernel([[1.0, 0.3], [0.3, 1.0]]), 1)
    joint = ActionContextKernel(rbf(0.9), of_contexts, 2)
    space = ContextSpace(dim=2, tasks=((1, 2),))
    models = bx.CandidateModels([joint, rbf(2.0)], noise_variance=0.02)
    strategy = bx.HyperparameterElimination(ARMS, models, 2.0, noise_std=0.1, context_domain=space)
    contexts = [[10.0, 0.0], [12.0, 1.0], [12.0, 0.0]]
    for step in range(6):
        strategy.tell(strategy.ask(context=contexts[step % 3]).id, 0.1 * step)
    ax = plot_action_map(strategy, contexts)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1", "2"]
    position = np.argmax([row["log_marginal_likelihood"] for row in strategy.report()["models"]])
    for column, z in enumerate(contexts):
        means, _ = strategy.bands(ARMS.points, z)
        np.testing.assert_allclose(heights(ax)[:, column], means[position].numpy(), **CLOSE)


def test_the_map_of_a_line_of_actions_shows_means_choices_and_the_best():
    strategy, problem = study(LINE, DAY.sample(6, seed=2), num=6)
    ax = plot_action_map_1d(strategy, truth=problem, num_points=15)
    across, up = np.linspace(8.0, 24.0, 15), np.linspace(2.0, 5.0, 15)
    np.testing.assert_allclose(mesh(ax).get_coordinates()[..., 0], np.tile(across, (15, 1)))
    np.testing.assert_allclose(mesh(ax).get_coordinates()[..., 1], np.tile(up[:, None], 15))
    means = np.array([[mean_at(strategy, [x], [z]) for z in across] for x in up])
    np.testing.assert_allclose(heights(ax), means, **CLOSE)
    (chosen,) = dots(ax)
    asked = [[*t.context.tolist(), *t.x.tolist()] for t in strategy.history.trials]
    assert np.asarray(chosen.get_offsets()).tolist() == asked
    assert (np.diff(chosen.get_sizes()) > 0).all()
    true = np.array([[float(problem([x, z])) for z in across] for x in up])
    expected = {"highest posterior mean": means, "truly best": true}
    for label, values in expected.items():
        drawn = np.column_stack([across, up[values.argmax(axis=0)]])
        np.testing.assert_allclose(lines(ax)[label], drawn)
    assert legend(ax) == ["first asked point", "last asked point", *expected]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("context", "action")


def test_the_range_of_contexts():
    hours = torch.tensor([[11.0], [13.0], [20.0]], dtype=torch.float64)
    strategy, _ = study(LINE, hours, num=6, context_domain=1)
    assert plot_action_map_1d(strategy, num_points=5).get_xlim() == (11.0, 20.0)
    ax = plot_action_map_1d(strategy, context_bounds=(12.0, 22.0), num_points=5)
    assert ax.get_xlim() == (12.0, 22.0)
    (chosen,) = dots(ax)
    assert len(chosen.get_offsets()) == 4  # those inside
    fresh = OptimisticStrategy(LINE, bx.KernelGP(kernel(1), 0.02), 2.0, context_domain=DAY)
    ax = plot_action_map_1d(fresh, num_points=5)
    assert ax.get_xlim() == (8.0, 24.0)
    assert legend(ax) == ["highest posterior mean"]


def test_what_cannot_be_drawn_is_refused():
    strategy, _ = study(num=2)
    on_line, _ = study(LINE, num=1)
    without = OptimisticStrategy(ARMS, bx.KernelGP(rbf(0.5), 0.1), 2.0)
    for other, kind in (
        (without, "OptimisticStrategy without contexts"),
        (RandomSearch(ARMS, context_domain=1), "RandomSearch"),
    ):
        with pytest.raises(ValueError, match=f"strategy must be one that plays .* got a {kind}$"):
            plot_action_map(other, HOURS)
        with pytest.raises(ValueError, match=f"strategy must be one that plays .* got a {kind}$"):
            plot_action_map_1d(other)
    with pytest.raises(ValueError, match="strategy must choose from a finite set, got a Box"):
        plot_action_map(on_line, HOURS)
    with pytest.raises(ValueError, match="strategy must choose from a box of one coordinate"):
        plot_action_map_1d(strategy)
    with pytest.raises(ValueError, match="contexts must hold at least one context, got none"):
        plot_action_map(strategy, [])
    with pytest.raises(ValueError, match=r"contexts\[1\] must lie in the box"):
        plot_action_map(strategy, [[9.0], [25.0]])
    with pytest.raises(ValueError, match="action_labels must be 5 labels, got 2"):
        plot_action_map(strategy, HOURS, action_labels=["a", "b"])
    with pytest.raises(ValueError, match="context_labels must be 4 labels, got 1"):
        plot_action_map(strategy, HOURS, context_labels=["a"])
    with pytest.raises(ValueError, match="context_bounds must be a number and a larger one"):
        plot_action_map_1d(on_line, context_bounds=(3.0, 3.0))
    unknown = OptimisticStrategy(LINE, bx.KernelGP(kernel(1), 0.02), 2.0, context_domain=1)
    with pytest.raises(ValueError, match="context_bounds must be given before two contexts"):
        plot_action_map_1d(unknown)
    two = OptimisticStrategy(LINE, bx.KernelGP(kernel(1), 0.02), 2.0, context_domain=2)
    with pytest.raises(ValueError, match="strategy must have contexts of one number, got 2"):
        plot_action_map_1d(two)
    assert not plt.get_fignums()

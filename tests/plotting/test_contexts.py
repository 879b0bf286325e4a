"""The maps of actions and contexts hold what the strategy believes and what it chose."""

from collections import Counter

import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.plotting import plot_action_map, plot_action_map_1d
from botorch_ext.problems import ContextualRKHSFunction
from botorch_ext.strategies import OptimisticStrategy
from tests.helpers import rbf
from tests.plotting.reading import color_label, dots, heights, legend, lines, mesh, near, words

ARMS = bx.FiniteSet([[2.0, -6.4], [2.3, -6.9], [3.1, -6.2], [4.0, -7.0], [4.8, -6.6]])
HOURS = torch.tensor([[10.0], [12.5], [17.0], [23.0]], dtype=torch.float64)
DAY = bx.Box([[8.0], [24.0]])
LINE = bx.Box([[2.0], [5.0]])


def study(domain=ARMS, contexts=HOURS, num=40, context_domain=DAY):
    kernel = ActionContextKernel(rbf(0.9), rbf(4.0), domain.dim)
    problem = ContextualRKHSFunction.random(domain, DAY, kernel, norm=2.0, num_centers=9, seed=1)
    strategy = OptimisticStrategy(
        domain, bx.KernelGP(kernel, 0.02), 2.0, context_domain=context_domain
    )
    for step in range(num):
        trial = strategy.ask(context=contexts[step % len(contexts)])
        strategy.tell(trial.id, float(problem(trial.point)))
    return strategy, problem


def at(actions, contexts, function):
    """The values of a function of joint points: a row for each action."""
    return np.array([[float(function([*x, *z])) for z in contexts] for x in actions])


def posterior_mean(strategy):
    return lambda x: strategy.posterior.mean_and_std(torch.tensor([x], dtype=torch.float64))[0]


def test_cells_dots_and_frames_are_means_counts_and_the_best():
    strategy, problem = study()
    ax = plot_action_map(strategy, HOURS, truth=problem)
    arms, hours = ARMS.points.tolist(), HOURS.tolist()
    means, true = at(arms, hours, posterior_mean(strategy)), at(arms, hours, problem)
    near(heights(ax), means)
    counts = Counter(
        (hours.index(trial.context.tolist()), arms.index(trial.x.tolist()))
        for trial in strategy.history.trials
    )
    (chosen,) = dots(ax)
    places = [tuple(map(int, place)) for place in chosen.get_offsets()]
    sizes, most = dict(zip(places, chosen.get_sizes(), strict=True)), max(counts.values())
    assert most > 1
    largest = max(sizes.values())
    assert sizes == pytest.approx(
        {place: max(largest * count / most, 3.0) for place, count in counts.items()}
    )
    for label, values in (("highest posterior mean", means), ("truly best", true)):
        near(lines(ax)[label].get_xydata(), list(enumerate(values.argmax(axis=0))))
    assert legend(ax) == [f"chosen (largest: {most} times)", "highest posterior mean", "truly best"]
    assert words(ax.get_xticklabels()) == ["10", "12.5", "17", "23"]
    assert words(ax.get_yticklabels()) == list("01234")
    assert color_label(ax) == ["posterior mean"]
    names, times = list("abcde"), ["ten", "noon", "five", "eleven"]
    ax = plot_action_map(strategy, hours, relative=True, action_labels=names, context_labels=times)
    near(heights(ax), means - means.max(axis=0))
    assert (words(ax.get_xticklabels()), words(ax.get_yticklabels())) == (times, names)
    assert color_label(ax) == ["posterior mean, less the highest in its context"]
    # Choices in other contexts are not shown, and many labels are thinned out.
    ax = plot_action_map(strategy, DAY.sample(30, seed=1))
    assert not dots(ax) and legend(ax) == ["highest posterior mean"]
    assert ax.get_xticks().tolist() == [0, 4, 8, 12, 16, 20, 24, 28]


def test_of_many_models_the_likeliest_is_shown_also_with_tasks():
    of_contexts = ActionContextKernel(rbf(4.0), TaskKernel([[1.0, 0.3], [0.3, 1.0]]), 1)
    joint = ActionContextKernel(rbf(0.9), of_contexts, 2)
    models = bx.CandidateModels([joint, rbf(2.0)], noise_variance=0.02)
    space = ContextSpace(dim=2, tasks=((1, 2),))
    strategy = bx.HyperparameterElimination(ARMS, models, 2.0, noise_std=0.1, context_domain=space)
    contexts = [[10.0, 0.0], [12.0, 1.0], [12.0, 0.0]]
    for step in range(6):
        strategy.tell(strategy.ask(context=contexts[step % 3]).id, 0.1 * step)
    ax = plot_action_map(strategy, contexts)
    assert words(ax.get_xticklabels()) == ["0", "1", "2"]  # of two columns the positions
    position = np.argmax([row["log_marginal_likelihood"] for row in strategy.report()["models"]])
    for column, z in enumerate(contexts):
        near(heights(ax)[:, column], strategy.bands(ARMS.points, z)[0][position])


def test_the_map_of_a_line_of_actions_shows_means_choices_and_the_best():
    strategy, problem = study(LINE, DAY.sample(6, seed=2), num=6)
    ax = plot_action_map_1d(strategy, truth=problem, num_points=15)
    across, up = np.linspace(8.0, 24.0, 15), np.linspace(2.0, 5.0, 15)
    near(mesh(ax).get_coordinates(), np.stack(np.meshgrid(across, up), axis=-1))
    means, true = (
        at(up[:, None], across[:, None], function)
        for function in (posterior_mean(strategy), problem)
    )
    near(heights(ax), means)
    (chosen,) = dots(ax)
    asked = [[*t.context.tolist(), *t.x.tolist()] for t in strategy.history.trials]
    assert np.asarray(chosen.get_offsets()).tolist() == asked
    assert (np.diff(chosen.get_sizes()) > 0).all()
    for label, values in (("highest posterior mean", means), ("truly best", true)):
        near(lines(ax)[label].get_xydata(), np.column_stack([across, up[values.argmax(axis=0)]]))
    assert legend(ax)[:2] == ["first asked point", "last asked point"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("context", "action")


def test_the_range_of_contexts_is_given_or_known_or_seen():
    hours = torch.tensor([[11.0], [13.0], [20.0]], dtype=torch.float64)
    seen, _ = study(LINE, hours, num=6, context_domain=1)
    assert plot_action_map_1d(seen, num_points=5).get_xlim() == (11.0, 20.0)
    ax = plot_action_map_1d(seen, context_bounds=(12.0, 22.0), num_points=5)
    assert ax.get_xlim() == (12.0, 22.0)
    assert len(dots(ax)[0].get_offsets()) == 4  # those inside
    ax = plot_action_map_1d(study(LINE, num=0)[0], num_points=5)
    assert ax.get_xlim() == (8.0, 24.0)
    assert legend(ax) == ["highest posterior mean"]

"""Optuna's importances and plots of studies whose trials a strategy chose."""

import warnings

import pytest

optuna = pytest.importorskip("optuna")

from optuna.distributions import (  # noqa: E402
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from botorch_ext.integrations.optuna import StrategySampler  # noqa: E402
from tests.integrations.test_optuna_trees import CONDITIONS, SPACE, objective  # noqa: E402

# Optuna says which of its functions are experimental.
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")

MIXED = {
    "choice": CategoricalDistribution(["u", "v"]),
    "number": IntDistribution(1, 5),
    "share": FloatDistribution(0.0, 1.0),
}


def mostly_by_share(trial):
    share = trial.suggest_float("share", 0.0, 1.0)
    if trial.number == 4:
        raise optuna.TrialPruned
    value = 0.01 * trial.suggest_int("number", 1, 5)
    return value + share + 0.01 * (trial.suggest_categorical("choice", ["u", "v"]) == "u")


@pytest.fixture(scope="module")
def mixed():
    more = {"search_space": MIXED, "num_initial": 12}
    study = optuna.create_study(sampler=StrategySampler("gp_bucb", **more))
    study.optimize(mostly_by_share, n_trials=16)
    return study


@pytest.fixture(scope="module")
def tree():
    more = {"search_space": SPACE, "conditions": CONDITIONS, "num_initial": 12}
    study = optuna.create_study(sampler=StrategySampler("gp_bucb", **more))
    study.optimize(objective, n_trials=16)
    return study


def evaluators():
    yield optuna.importance.PedAnovaImportanceEvaluator()
    pytest.importorskip("sklearn")
    yield optuna.importance.FanovaImportanceEvaluator(seed=0)
    yield optuna.importance.MeanDecreaseImpurityImportanceEvaluator(seed=0)


def test_importances(mixed):
    for evaluator in evaluators():
        found = optuna.importance.get_param_importances(mixed, evaluator=evaluator)
        assert found.keys() == MIXED.keys()
        assert sum(found.values()) == pytest.approx(1)
        assert next(iter(found)) == "share"


def test_importances_in_a_tree(tree):
    for evaluator in evaluators():
        found = optuna.importance.get_param_importances(tree, evaluator=evaluator)
        # Some evaluators leave out what not all trials have.
        assert {"model", "share"} <= found.keys() <= SPACE.keys()
        assert sum(found.values()) == pytest.approx(1)


PLOTS = [
    "plot_contour",
    "plot_edf",
    "plot_intermediate_values",
    "plot_optimization_history",
    "plot_parallel_coordinate",
    "plot_param_importances",
    "plot_rank",
    "plot_slice",
    "plot_timeline",
]


@pytest.mark.parametrize("plot", PLOTS)
@pytest.mark.parametrize("kind", ["mixed", "tree"])
def test_plots(plot, kind, request):
    pytest.importorskip("plotly")
    pytest.importorskip("sklearn")
    study = request.getfixturevalue(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of plotly about itself
        figure = getattr(optuna.visualization, plot)(study)
    if plot != "plot_intermediate_values":  # nothing was reported
        assert len(figure.data) > 0

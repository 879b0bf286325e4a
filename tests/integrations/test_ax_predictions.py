"""Ax's predictions and analyses with strategies of the library: Ax's own model of the trials."""

import pytest

pytest.importorskip("ax")

from ax.adapter.registry import Generators
from ax.analysis.plotly.cross_validation import CrossValidationPlot
from ax.core.observation import ObservationFeatures
from ax.exceptions.core import UnsupportedError

from botorch_ext.integrations import ax_node
from tests.integrations.in_ax import MIXED, PLAIN, client, loaded
from tests.integrations.test_ax_trees import TREE

pytestmark = pytest.mark.filterwarnings("ignore", "error::botorch_ext.exceptions.BotorchExtWarning")


def value_of(arm):
    return sum(len(v) if isinstance(v, str) else float(v) for v in arm.values())


def after(number, space, method="gp_bucb", **arguments):
    """An experiment with so many results; the first trial failed, the last one runs."""
    ours = client(space, method, **arguments)
    (failed,) = ours.get_next_trials(1)
    ours.mark_trial_failed(failed)
    for _ in range(number):
        for index, arm in ours.get_next_trials(1).items():
            ours.complete_trial(index, {"cost": value_of(arm)})
    return ours, next(iter(ours.get_next_trials(1).values()))


def by_ax(ours, arm):
    """What Ax's own model predicts."""
    model = Generators.BOTORCH_MODULAR(experiment=ours._experiment, data=None)
    mean, covariance = model.predict([ObservationFeatures(arm)])
    return mean["cost"][0], covariance["cost"]["cost"][0] ** 0.5


@pytest.mark.parametrize("space", [PLAIN, MIXED, TREE], ids=["plain", "mixed", "tree"])
def test_predictions_are_those_of_the_model_of_ax(space):
    method = "integrated_ei" if space is TREE else "gp_bucb"
    ours, arm = after(4, space, method)
    (found,) = ours.predict([arm])
    assert found == {"cost": pytest.approx(by_ax(ours, arm), rel=1e-6)}


def test_predictions_follow_what_is_told_and_what_is_corrected():
    ours, arm = after(3, PLAIN)
    before = ours.predict([arm])[0]["cost"]
    assert ours.predict([arm])[0]["cost"] == before
    ours.complete_trial(4, {"cost": 700.0})
    after_it = ours.predict([arm])[0]["cost"]
    assert after_it == pytest.approx(by_ax(ours, arm), rel=1e-6) != before
    ours.attach_data(4, {"cost": -700.0})
    assert ours.predict([arm])[0]["cost"] == pytest.approx(by_ax(ours, arm), rel=1e-6)


def test_predictions_of_an_experiment_that_was_loaded(tmp_path):
    ours, arm = after(3, PLAIN)
    ours.save_to_json_file(str(tmp_path / "lab.json"))
    (found,) = loaded("JSON", tmp_path).predict([arm])
    assert found["cost"] == pytest.approx(ours.predict([arm])[0]["cost"], rel=1e-6)


@pytest.mark.parametrize("number", [0, 1])
def test_too_few_results(number):
    ours, arm = after(number, PLAIN)
    with pytest.raises(UnsupportedError, match="try running more trials"):
        ours.predict([arm])
    (card,) = ours.compute_analyses([CrossValidationPlot()], display=False)
    assert type(card).__name__ == "NotApplicableStateAnalysisCard"


def test_asking_does_not_fit_it(monkeypatch):
    ours, _ = after(3, PLAIN)

    monkeypatch.setattr(ax_node, "Generators", None)
    ours.get_next_trials(2)


@pytest.mark.slow
def test_all_analyses_work():
    ours, _ = after(6, PLAIN, "integrated_ei")
    kinds = {
        type(card).__name__
        for group in ours.compute_analyses(display=False)
        for card in group.flatten()
    }
    assert "PlotlyAnalysisCard" in kinds
    assert not kinds & {"ErrorAnalysisCard", "NotApplicableStateAnalysisCard"}

"""Predictions of a study are in the user's sign and units."""

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from tests.predictions.particles import BOX, height


def _studies(tmp_path):
    """One that maximises f, and one that minimises -f."""
    for minimize in (False, True):
        study = bx.Study(
            tmp_path / f"{minimize}.db", bx.algorithms.integrated_ei(BOX, seed=2), minimize=minimize
        )
        for _ in range(12):
            trial = study.ask()
            study.tell(trial, float(-height(trial.x) if minimize else height(trial.x)))
        yield study


def test_a_study_that_minimises_shows_costs(tmp_path):
    up, down = _studies(tmp_path)
    X, levels = BOX.sample(4, seed=6), (0.05, 0.5, 0.9)
    gains, costs = up.predict(X, levels=(0.1, 0.5, 0.95)), down.predict(X, levels=levels)
    assert costs.levels == levels
    assert_close(costs.mean, -gains.mean)
    assert_close(costs.std, gains.std)
    assert_close(costs.quantiles, -gains.quantiles.flip(-1), rtol=1e-9, atol=1e-9)
    noisy = -gains.observation_quantiles.flip(-1)
    assert_close(costs.observation_quantiles, noisy, rtol=1e-9, atol=1e-9)
    assert_close(up.predict(X).mean, up.strategy.predict(X).mean)
    high, low = up.recommended(), down.recommended()
    assert_close(low.x, high.x)
    assert_close(low.prediction.mean, -high.prediction.mean)
    assert low.prediction.levels == (0.05, 0.95)
    assert low.probability == high.probability and low.shortfall == high.shortfall >= 0
    assert down.expected_gain(2).gain == up.expected_gain(2).gain >= 0
    assert_close(down.importance().total, up.importance().total)
    x, mean = down.best()
    assert_close(float(down.predict(x).mean), mean)
    assert len(down.events) == 24  # nothing was asked


@pytest.mark.parametrize(
    "contexts",
    [bx.Space(site=bx.Choice(["A", "B"]), z=bx.Real(0, 1, unit="h")), bx.Box([(0, 1), (0, 1)])],
    ids=["named", "plain"],
)
def test_predictions_name_their_contexts(tmp_path, contexts):
    pytest.importorskip("pandas")
    strategy = bx.algorithms.integrated_ei(bx.Space(t=bx.Real(0, 1)), context_domain=contexts)
    study = bx.Study(tmp_path / "a.db", strategy)
    for i in range(8):
        study.attach([i / 8], float(i % 3), context=[i % 2, i / 9])
    found = study.predict(study.strategy.history.trials)
    names = [*study.heads.contexts]
    table, known = found.to_pandas(), study.to_pandas()
    assert table[names].equals(known[names])
    assert torch.equal(study.predict(table).mean, found.mean)
    shown = [study.heads.head(name) for name in names]
    context = study.strategy.history.trials[3].context
    for text in (found, study.recommended(context), study.expected_gain(context=context)):
        assert any(all(head in line for head in shown) for line in repr(text).split("\n"))


def test_a_result_outside_of_the_space_is_not_shown_as_the_best(tmp_path):
    study = bx.Study(tmp_path / "outside.db", bx.algorithms.integrated_ei(BOX, seed=2))
    study.attach(BOX.upper + 1, 99.0, outside=True)
    assert "best" not in repr(study)
    with pytest.raises(bx.exceptions.NoObservationsError, match="recommended needs"):
        study.recommended()
    study.tell(study.ask(), 1.0)
    assert "best value told: 1 at" in repr(study)

"""Predictions of a model: of f, of the best point, of the next batch and of each parameter."""

from botorch_ext.predictions.expected_gain import ExpectedGain
from botorch_ext.predictions.importance import Importance
from botorch_ext.predictions.mixture import GPMixture
from botorch_ext.predictions.predictions import Predictions
from botorch_ext.predictions.recommendation import Recommendation

__all__ = ["ExpectedGain", "GPMixture", "Importance", "Predictions", "Recommendation"]

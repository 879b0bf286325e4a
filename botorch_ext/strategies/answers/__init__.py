"""Answers of a strategy: what its model predicts of f, of the best point, of the next batch and of
each parameter."""

from botorch_ext.strategies.answers.expected_gain import ExpectedGain
from botorch_ext.strategies.answers.importance import Importance
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.answers.predictions import Predictions
from botorch_ext.strategies.answers.recommendation import Recommendation

__all__ = ["ExpectedGain", "GPMixture", "Importance", "Predictions", "Recommendation"]

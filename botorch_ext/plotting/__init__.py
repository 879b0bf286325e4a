"""Pictures: regret and best-value curves, slices and contours of the model of a study and which
parameters matter, posteriors with confidence bands and asked points, rounds of phased elimination,
certificates, how late feedback came, what became of candidate models, what an insurance cost, which
action was chosen in which context, and slopes of regret.

Matplotlib is imported by the functions, not with the package: ``pip install 'botorch-ext[plot]'``.
"""

from botorch_ext.plotting.certificates import plot_certificate
from botorch_ext.plotting.contexts import plot_action_map, plot_action_map_1d
from botorch_ext.plotting.curves import plot_best_value, plot_comparison, plot_regret
from botorch_ext.plotting.insurance import plot_insurance
from botorch_ext.plotting.models import plot_model_bands, plot_models
from botorch_ext.plotting.posteriors import plot_posterior_1d, plot_posterior_2d
from botorch_ext.plotting.predictions import plot_contours, plot_importance, plot_slices
from botorch_ext.plotting.regret_slopes import plot_regret_slopes
from botorch_ext.plotting.studies import plot_feedback, plot_rounds_2d
from botorch_ext.plotting.style import PALETTE
from botorch_ext.plotting.trees import plot_tree

__all__ = [
    "PALETTE",
    "plot_action_map",
    "plot_action_map_1d",
    "plot_best_value",
    "plot_certificate",
    "plot_comparison",
    "plot_contours",
    "plot_feedback",
    "plot_importance",
    "plot_insurance",
    "plot_model_bands",
    "plot_models",
    "plot_posterior_1d",
    "plot_posterior_2d",
    "plot_regret",
    "plot_regret_slopes",
    "plot_rounds_2d",
    "plot_slices",
    "plot_tree",
]

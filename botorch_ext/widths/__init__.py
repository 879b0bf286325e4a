"""Confidence widths: the multiplier w of the posterior standard deviation in ``mean +- w std``.

A width is called with the step t (one more than the observations the posterior has seen) and the
model, and returns a float or a tensor with one entry per batched model. ``offset(t, model)`` is
what is added to the upper and taken from the lower bound besides; it is 0 for most widths. Widths
compose: ``Scaled(Enlarged(SelfNormalized(2.0, 0.1, 0.05), 0.1), 0.5)``.

``rkhs_bound``, ``noise_std`` and ``misspecification`` are in the units of the observations the
model sees. The formulas assume k(x, x) <= 1, but for `Mixture`, `Ladder` and `Dual`.
"""

from botorch_ext.widths.adaptive import (
    ChowdhuryGopalan,
    InformationGainBound,
    SelfNormalized,
    SrinivasRKHS,
)
from botorch_ext.widths.base import (
    ConfidenceModel,
    Constant,
    Width,
    as_tensor_like,
    as_width,
    check_delta,
    check_misspecification,
    check_noise_std,
    check_rkhs_bound,
    require,
)
from botorch_ext.widths.bayesian import BayesContinuous, BayesFinite
from botorch_ext.widths.composed import (
    Enlarged,
    PointwiseEnlarged,
    Scaled,
    enlarged,
    enlargement,
    enlarging,
    with_delta,
)
from botorch_ext.widths.fixed_design import (
    AnytimeFixedDesign,
    AnytimeFixedDesignMixture,
    FixedDesign,
    FixedDesignContinuous,
    FixedDesignContinuousMixture,
    FixedDesignLadder,
    FixedDesignMixture,
    FixedDesignNet,
    FixedDesignNetMixture,
)
from botorch_ext.widths.tight import Dual, Ladder, Mixture

__all__ = [
    "AnytimeFixedDesign",
    "AnytimeFixedDesignMixture",
    "BayesContinuous",
    "BayesFinite",
    "ChowdhuryGopalan",
    "ConfidenceModel",
    "Constant",
    "Dual",
    "Enlarged",
    "FixedDesign",
    "FixedDesignContinuous",
    "FixedDesignContinuousMixture",
    "FixedDesignLadder",
    "FixedDesignMixture",
    "FixedDesignNet",
    "FixedDesignNetMixture",
    "InformationGainBound",
    "Ladder",
    "Mixture",
    "PointwiseEnlarged",
    "Scaled",
    "SelfNormalized",
    "SrinivasRKHS",
    "Width",
    "as_tensor_like",
    "as_width",
    "check_delta",
    "check_misspecification",
    "check_noise_std",
    "check_rkhs_bound",
    "enlarged",
    "enlargement",
    "enlarging",
    "require",
    "with_delta",
]

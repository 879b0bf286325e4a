"""Widths: objects, the enlargement for a misspecification, and the units of both."""

import math

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.models import ModelListGP
from botorch.models.deterministic import GenericDeterministicModel
from botorch.models.transforms import Normalize
from torch.testing import assert_close

from botorch_ext import KernelGP, widths
from botorch_ext.acquisition import (
    EnlargedUpperConfidenceBound,
    LowerConfidenceBound,
    OptimisticModelUCB,
    StableUCB,
)
from tests.acquisition import every_function as every
from tests.helpers import rbf, tolerance

EXACT = tolerance(torch.float64)
DATA_WIDTH = widths.SelfNormalized(1.0, 0.2, 0.1)
WITH_OFFSET = widths.FixedDesignContinuous(1.0, 0.2, 0.1, 3)


def bound(model, width, Z, sign=1.0):
    mean, std = model.mean_and_std(Z)
    return mean + sign * (width(9, model) * std + width.offset(9, model))


def test_a_width_object_is_evaluated_with_the_model_and_has_its_offset():
    model, Z = every.kernel_gp(), every.draw(10, 1)[0]
    for width in (widths.Enlarged(DATA_WIDTH, 0.1), WITH_OFFSET):
        upper = EnlargedUpperConfidenceBound(model, width)(Z[:, None])
        assert_close(upper, bound(model, width, Z), **EXACT)
        lower = LowerConfidenceBound(model, width)(Z[:, None])
        assert_close(lower, bound(model, width, Z, -1.0), **EXACT)


def test_width_objects_of_several_models_are_those_of_each():
    Z, models = every.draw(10, 1)[0], every.singles()
    for given in (every.batched(), models):
        for own in ([WITH_OFFSET] * 3, [DATA_WIDTH, WITH_OFFSET, widths.Constant(2.0)]):
            bounds = [bound(model, width, Z) for model, width in zip(models, own, strict=True)]
            acqf = OptimisticModelUCB(given, own)
            assert_close(acqf(Z[:, None]), torch.stack(bounds).amax(dim=0), **EXACT)
        # Pending points tell nothing to the width.
        pending = OptimisticModelUCB(given, DATA_WIDTH, X_pending=Z[:2])
        assert_close(pending.width, OptimisticModelUCB(given, DATA_WIDTH).width)


def test_width_objects_are_refused_without_a_kernel_gp_and_where_units_would_mix():
    standardized = KernelGP.from_botorch(every.single_task_gp())
    for cls in (EnlargedUpperConfidenceBound, LowerConfidenceBound, OptimisticModelUCB):
        for model in (every.single_task_gp(), standardized, every.ensemble()):
            with pytest.raises(ValueError, match="width"):
                cls(model, DATA_WIDTH)


@pytest.mark.parametrize(
    "cls", [EnlargedUpperConfidenceBound, LowerConfidenceBound, OptimisticModelUCB, StableUCB]
)
def test_a_beta_is_refused_with_the_width_to_write(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__}\(\) takes no beta: .*width=beta\*\*0.5"):
        cls(every.single_task_gp(), beta=4.0)


@pytest.mark.parametrize("cls", [EnlargedUpperConfidenceBound, LowerConfidenceBound])
def test_widths_must_fit_the_batch_shape(cls):
    for model, width in ((every.kernel_gp(), [1, 2]), (every.batched(), torch.ones(2))):
        with pytest.raises(ValueError, match="width"):
            cls(model, width)
    assert cls(every.batched(), [1, 2, 3]).width.shape == (3,)


def enlarged(model, **options):
    """What the width of 2 becomes for a misspecification of 0.1."""
    return EnlargedUpperConfidenceBound(model, 2.0, misspecification=0.1, **options).width.item()


def by_formula(num_observations, noise_variance):
    return pytest.approx(2.0 + 0.1 * math.sqrt((num_observations + 1) / noise_variance), rel=1e-6)


def test_the_noise_and_the_number_of_observations_are_those_of_the_model_unless_given():
    assert enlarged(every.kernel_gp()) == by_formula(8, every.NOISE)
    assert enlarged(every.kernel_gp(), noise_variance=0.01, num_observations=20) == by_formula(
        20, 0.01
    )
    assert enlarged(KernelGP(rbf(1.0), every.NOISE)) == by_formula(0, every.NOISE)
    transformed = KernelGP(rbf(1.0), every.NOISE, input_transform=Normalize(2, bounds=every.BOUNDS))
    assert enlarged(transformed, noise_variance=0.01) == by_formula(0, 0.01)
    deterministic = GenericDeterministicModel(lambda X: X[..., :1])
    for name, model, options in (
        ("noise_variance", transformed, {}),
        ("num_observations", deterministic, {}),
        ("noise_variance", deterministic, {"num_observations": 3}),
    ):
        with pytest.raises(ValueError, match=f"{name} must be given"):
            enlarged(model, **options)


def test_of_a_list_of_models_the_noise_is_that_of_the_weighted_sum():
    yvar = torch.linspace(0.05, 1.0, 8).double()[:, None]
    parts, weights = (
        (every.single_task_gp(), every.single_task_gp(yvar=yvar, sign=-1.0)),
        (0.7, -0.2),
    )
    transform = ScalarizedPosteriorTransform(torch.tensor(weights, dtype=torch.float64))
    noise = sum(
        weight**2 * gp.likelihood.noise.mean().item() * gp.outcome_transform.stdvs.item() ** 2
        for weight, gp in zip(weights, parts, strict=True)
    )
    assert enlarged(ModelListGP(*parts), posterior_transform=transform) == by_formula(8, noise)


def test_the_enlargement_covers_the_worst_case_in_raw_units():
    # Lemma 2: moving every observation by at most eps. Outcomes are standardised in the model.
    gp, (Z, _) = every.single_task_gp(20), every.draw(25, 2)
    scale = gp.outcome_transform.stdvs.item()
    acqf = EnlargedUpperConfidenceBound(gp, width=0.0, misspecification=0.3)
    assert acqf.width.item() == pytest.approx(0.3 * math.sqrt(21 / every.NOISE) / scale, rel=1e-6)
    moved = every.single_task_gp(20)
    signs = torch.sign(torch.randn(20, generator=torch.Generator().manual_seed(0)))
    moved.set_train_data(targets=gp.train_targets + 0.3 * signs / scale, strict=False)
    mean = gp.posterior(Z).mean.squeeze(-1)
    change = (moved.posterior(Z).mean.squeeze(-1) - mean).abs()
    assert bool((change <= acqf(Z[:, None]) - mean + 1e-6).all())
    assert change.max() > 0.05

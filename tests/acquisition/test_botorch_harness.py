"""What BoTorch's own tests ask of acquisition functions and models, asked of ours.

After ``test/acquisition/harness`` and the tests of analytic functions, input constructors and
models in BoTorch's repository, which are not installed with it; ``BotorchTestCase``, ``MockModel``
and ``MockPosterior`` are BoTorch's. What does not apply:

- ``X_observed`` and fixed noise as a requirement: no function of ours asks for them. All run on a
  model with known noise all the same.
- "analytic functions refuse ``X_pending``" and "q > 1 is an AssertionError": ours take both.
- ``MockModel`` gives one posterior whatever is asked. `StableUCB` looks at many points in one call,
  and no mock can be conditioned on pending points; both are told apart below.
- Training: a `KernelGP` is fixed. It has no ``forward`` in train mode, no marginal likelihood to
  fit and no ``construct_inputs``, and its training data change by `KernelGP.add`, not by
  ``set_train_data``.
- Multi-output, multi-fidelity and one-shot functions: there are none.
"""

import math
from copy import deepcopy

import pytest
import torch
from botorch.acquisition import AnalyticAcquisitionFunction
from botorch.acquisition.input_constructors import get_acqf_input_constructor
from botorch.acquisition.objective import IdentityMCObjective, ScalarizedPosteriorTransform
from botorch.exceptions import BotorchWarning, UnsupportedError
from botorch.models import SingleTaskGP
from botorch.utils.testing import BotorchTestCase, MockModel, MockPosterior

from tests.acquisition.every_function import BOUNDS, CASES, kernel_gp

DTYPES = (torch.float, torch.double)
UNIT = torch.stack([torch.zeros(2), torch.ones(2)]).double()


def trained_gp(n=5, outputs=1, dtype=torch.double, known_noise=False):
    g = torch.Generator().manual_seed(0)
    X, Y = torch.rand(n, 2, generator=g, dtype=dtype), torch.rand(n, outputs, generator=g).to(dtype)
    return SingleTaskGP(X, Y, torch.full_like(Y, 0.25) if known_noise else None)


def points(*shape, dtype=torch.double):
    g = torch.Generator().manual_seed(1)
    return torch.rand(*shape, 2, generator=g, dtype=dtype)


def made(case, model, **more):
    bounds = {"bounds": UNIT} if "bounds" in case.options else {}
    probabilities = {"probabilities": [1.0]} if case.cls.__name__ == "ExpectedUCB" else {}
    return case(model, **bounds | probabilities | more)


class TestAcquisitionFunctions(BotorchTestCase):
    def test_dtype_and_device(self):
        for case in CASES.values():
            for dtype in DTYPES:
                acqf = made(case, trained_gp(dtype=dtype))
                value = acqf(points(4, 1, dtype=dtype))
                assert (value.dtype, value.device.type) == (dtype, self.device.type)

    def test_output_shapes(self):
        for case in CASES.values():
            acqf = made(case, trained_gp(known_noise=True))
            assert isinstance(acqf, AnalyticAcquisitionFunction)
            for shape in ((1,), (5, 3, 1), (2, 1, 3, 1), (3,), (2, 3)):
                assert acqf(points(*shape)).shape == torch.Size(shape[:-1] or (1,))

    def test_several_outputs_need_a_transform(self):
        for case in CASES.values():
            model = trained_gp(outputs=2)
            with pytest.raises((UnsupportedError, ValueError), match=r"posterior.transform"):
                made(case, model)
            with pytest.raises(UnsupportedError, match="only support PosteriorTransforms"):
                made(case, trained_gp(), posterior_transform=IdentityMCObjective())

    def test_posterior_transform(self):
        turn = ScalarizedPosteriorTransform(torch.tensor([-1.0]).double())
        for case in CASES.values():
            if case.can_minimise:
                model = trained_gp()
                zero = {"best_f": 0.0} if "best_f" in case.options else {}
                turned = made(case, model, posterior_transform=turn, **zero)(points(4, 1))
                expected = made(case, model, maximize=False, **zero)(points(4, 1))
                self.assertAllClose(turned, expected)

    def test_pending_points(self):
        for case in CASES.values():
            acqf, X = made(case, trained_gp()), points(4, 1)
            assert acqf.X_pending is None
            before, P = acqf(X), points(2)
            acqf.set_X_pending(P)
            assert torch.equal(acqf.X_pending, P)
            assert acqf.X_pending is not P
            assert not torch.allclose(acqf(X), before)
            with self.assertWarnsRegex(BotorchWarning, "Pending points require a gradient"):
                acqf.set_X_pending(P.clone().requires_grad_())
            assert not acqf.X_pending.requires_grad
            acqf.set_X_pending(None)
            assert acqf.X_pending is None
            self.assertAllClose(acqf(X), before)

    def test_gradients(self):
        for case in CASES.values():
            acqf, X = made(case, trained_gp()), points(4, 1).requires_grad_()
            (gradient,) = torch.autograd.grad(acqf(X).sum(), X)
            assert gradient.shape == X.shape
            assert bool(gradient.isfinite().all()) and bool(gradient.any())

    def test_copies(self):
        for case in CASES.values():
            acqf, X = made(case, trained_gp(), X_pending=points(2)), points(4, 1)
            copy = deepcopy(acqf)
            self.assertAllClose(copy(X), acqf(X))
            copy.set_X_pending(None)
            assert not torch.allclose(copy(X), acqf(X))
            other = made(case, trained_gp(), X_pending=points(2))
            other.load_state_dict(acqf.state_dict())
            self.assertAllClose(other(X), acqf(X))

    def test_mock_posteriors(self):
        z = 0.75 / 1.5
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        improvement = density + z * 0.5 * (1 + math.erf(z / math.sqrt(2)))
        expected = {
            "EnlargedUpperConfidenceBound": 1.25 + 2 * 1.5,
            "LowerConfidenceBound": 1.25 - 2 * 1.5,
            "MaxVariance": 1.5,
            "OptimisticModelUCB": 1.25 + 2 * 1.5,
            "ExpectedUCB": 1.25 + 2 * 1.5,
            "IntegratedLogEI": math.log(1.5 * improvement),
        }
        for name, value in expected.items():
            for dtype in DTYPES:
                mean, variance = (torch.full((1, 1), v, dtype=dtype) for v in (1.25, 2.25))
                model = MockModel(MockPosterior(mean=mean, variance=variance))
                case = CASES[name]
                plain = {"misspecification": 0.0} if "misspecification" in case.options else {}
                acqf = made(case, model, **plain)
                got = acqf(points(1, dtype=dtype))
                expected_value = torch.full((1,), value, dtype=dtype)
                self.assertAllClose(got.reshape(1), expected_value, rtol=1e-5)
                with pytest.raises(ValueError, match="X_pending must be None for a model"):
                    acqf.set_X_pending(points(1, dtype=dtype))

    def test_input_constructors(self):
        for case in CASES.values():
            constructor = get_acqf_input_constructor(case.cls)
            turn = ScalarizedPosteriorTransform(torch.tensor([1.0]).double())
            options = {**case.options, "posterior_transform": turn, "X_pending": points(2)}
            if "bounds" in options:
                options["bounds"] = [(0.0, 1.0), (0.0, 1.0)]
            if case.cls.__name__ == "ExpectedUCB":
                options["probabilities"] = [1.0]
            inputs = constructor(model=trained_gp(), training_data=None, **options)
            acqf = case.cls(**inputs)
            assert acqf.posterior_transform is turn
            self.assertAllClose(acqf.X_pending, points(2))
            more = {"posterior_transform": turn, "X_pending": points(2)}
            self.assertAllClose(acqf(points(4, 1)), made(case, trained_gp(), **more)(points(4, 1)))


class TestKernelGPAsModel(BotorchTestCase):
    def test_observation_noise(self):
        model, X = kernel_gp(), BOUNDS[0] + points(2, 3)
        plain = model.posterior(X)
        noisy = model.posterior(X, observation_noise=True)
        self.assertAllClose(noisy.variance, plain.variance + model.noise_variance)
        given = model.posterior(X, observation_noise=torch.full((2, 3, 1), 0.5).double())
        self.assertAllClose(given.variance, plain.variance + 0.5)
        self.assertAllClose(noisy.mean, plain.mean)

    def test_posterior_transform(self):
        model, X = kernel_gp(), BOUNDS[0] + points(2, 3)
        turn = ScalarizedPosteriorTransform(torch.tensor([-2.0]).double(), offset=1.0)
        turned, plain = model.posterior(X, posterior_transform=turn), model.posterior(X)
        self.assertAllClose(turned.mean, 1 - 2 * plain.mean)
        self.assertAllClose(turned.variance, 4 * plain.variance)

    def test_outputs(self):
        model, X = kernel_gp(), BOUNDS[0] + points(3)
        self.assertAllClose(model.subset_output([0]).posterior(X).mean, model.posterior(X).mean)
        self.assertAllClose(model.posterior(X, output_indices=[0]).mean, model.posterior(X).mean)
        with pytest.raises(ValueError, match="idcs must be"):
            model.subset_output([1])
        with pytest.raises(ValueError, match="output_indices must be"):
            model.posterior(X, output_indices=[1])

"""What a reader of `help` sees of the algorithms, and what a misspelled argument gets."""

import inspect
import re

import pytest
from gpytorch.kernels import RBFKernel

from botorch_ext import Box, CandidateModels, KernelGP, algorithms

METHODS = algorithms.__all__
every_method = pytest.mark.parametrize("method", METHODS)
BOX = Box([[2.0, -3.0], [5.0, -1.5]])
IN_ROUNDS = ("phased_uncertainty_sampling", "bpe", "bpe_delay", "breadthwise_exploration")


def parameters(method):
    return inspect.signature(getattr(algorithms, method)).parameters


def call(method, **given):
    kernel = RBFKernel().double()
    seconds = {
        "kernel": kernel,
        "model": KernelGP(kernel, 0.1),
        "models": CandidateModels.lengthscales(kernel, [0.3, 0.8], 0.1),
        "particles": None,
    }
    return getattr(algorithms, method)(BOX, seconds[list(parameters(method))[1]], **given)


def documented(method):
    """The names and the texts under Args."""
    doc = inspect.getdoc(getattr(algorithms, method))
    lines = re.search(r"\nArgs:\n(.*?)\n\n", doc, re.DOTALL)[1].splitlines()
    entries = [line.strip().partition(": ") for line in lines if not line.startswith(" " * 5)]
    return {name: text for name, _, text in entries}


@every_method
def test_every_argument_is_shown_and_documented_in_its_place(method):
    shown, texts = parameters(method), documented(method)
    kinds = [parameter.kind for parameter in shown.values()]
    assert kinds[:2] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 2
    assert set(kinds[2:]) == {inspect.Parameter.KEYWORD_ONLY}
    assert inspect.Parameter.empty not in {parameter.annotation for parameter in shown.values()}
    assert list(texts) == list(shown) and all(texts.values())
    doc = inspect.getdoc(getattr(algorithms, method)).split()
    assert {"Source:", "Returns:", "Raises:"} <= set(doc)


def test_the_same_word_has_the_same_default():
    """Where it may be left out, but for numbers that leave out what others must have, and for
    methods that know nothing before their first points, or that draw."""
    defaults = {}
    for method in METHODS:
        for name, parameter in parameters(method).items():
            if parameter.default is not inspect.Parameter.empty:
                defaults.setdefault(name, set()).add(parameter.default)
    several = {name: values for name, values in defaults.items() if len(values) > 1}
    assert several == {
        "pending": {"hallucinate", "censor", "ignore"},
        "num_initial": {0, None},
        "width": {None, 1.0},  # 1.0: draws as they are
        "bounds": {"published", "mixture"},  # no paper has bounds of safe_exploration
    }


@every_method
def test_a_misspelled_argument_is_refused_with_the_right_name(method):
    for name in list(parameters(method))[2:]:
        if len(name) < 4:
            continue  # a letter or two are like nothing
        wrong = name[:2] + name[3:]
        message = rf"{method}\(\) got an unexpected keyword argument '{wrong}': did you mean "
        with pytest.raises(TypeError, match=rf"^{message}'{name}'\?$"):
            call(method, **{wrong: 0.1})


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("gp_bucb", "minimum"),
        ("gp_ucb_sdf", "inflate"),
        ("stable_opt", "context_domain"),
        ("he_gp_ucb", "noise_variance"),
        ("cgp_ucb", "horizon"),
        ("regret_balancing", "misspecification"),
        ("gp_ucb", "beta"),
        *((method, name) for method in IN_ROUNDS for name in ("initial", "num_initial", "pending")),
    ],
)
def test_an_argument_of_another_method_is_refused(method, name):
    with pytest.raises(TypeError, match=rf"^{method}\(\) got .* argument '{name}'"):
        call(method, **{name: 3})


@every_method
def test_what_is_missing_is_named(method):
    taken = parameters(method)
    needed = [name for name in list(taken)[2:] if taken[name].default is inspect.Parameter.empty]
    for name in needed:
        given = dict.fromkeys(set(needed) - {name}, 0.1)
        with pytest.raises(TypeError, match=rf"{method}\(\) missing 1 required .*: '{name}'"):
            call(method, **given)
    # Numbers of the published width may be left out where another one is given.
    numbers = [name for name in ("rkhs_bound", "noise_std") if name in taken]
    missing = " and ".join(name for name in numbers if not taken[name].default)
    if missing and method != "lb_gp_ucb":  # which does without a bound
        message = rf"^{method}\(\): {missing} must be given unless width is, got None$"
        with pytest.raises(ValueError, match=message):
            call(method, **dict.fromkeys(needed, 9))

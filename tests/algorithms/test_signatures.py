"""What a reader of `help` sees of the algorithms, and what a misspelled argument gets."""

import inspect
import re

import pytest
from gpytorch.kernels import RBFKernel

from botorch_ext import Box, CandidateModels, algorithms

METHODS = algorithms.__all__
BOX = Box([[2.0, -3.0], [5.0, -1.5]])
# Of one method and not of another, which says so.
FOREIGN = {
    "minimum": ("gp_bucb", r", which gp_ucb\(\) takes; gp_bucb\(\) takes domain, kernel, "),
    "inflate": ("gp_ucb_sdf", r", which gp_ucb\(\) takes; gp_ucb_sdf\(\) takes domain, "),
    "context_domain": ("stable_opt", r", which gp_ucb\(\) takes; stable_opt\(\) takes"),
    "noise_variance": (
        "he_gp_ucb",
        r", which gp_ucb\(\) takes; he_gp_ucb\(\) takes domain, models",
    ),
    "horizon": ("cgp_ucb", r", which regret_balancing\(\) takes; cgp_ucb\(\) takes domain, kernel"),
    "misspecification": ("regret_balancing", r": did you mean 'misspecifications'\?"),
    "beta": ("gp_ucb", r": its square root is the width, width=beta\*\*0.5$"),
    "budget": ("gp_ucb", r"; gp_ucb\(\) takes domain, kernel, noise_variance, "),
}


def parameters(method):
    return inspect.signature(getattr(algorithms, method)).parameters


def first_two(method):
    kernel = RBFKernel().double()
    seconds = {
        "kernel": kernel,
        "models": CandidateModels.lengthscales(kernel, [0.3, 0.8], 0.1),
        "particles": None,
    }
    return BOX, seconds[list(parameters(method))[1]]


def documented(method):
    """The names and the texts under Args."""
    doc = inspect.getdoc(getattr(algorithms, method))
    lines = re.search(r"\nArgs:\n(.*?)\n\n", doc, re.DOTALL)[1].splitlines()
    assert all(line.startswith("    ") for line in lines)
    texts = {}
    for line in lines:
        if not line.startswith(" " * 5):
            name, _, text = line.strip().partition(": ")
            texts[name] = text
    return texts


@pytest.mark.parametrize("method", METHODS)
def test_every_argument_is_shown(method):
    kinds = [parameter.kind for parameter in parameters(method).values()]
    assert kinds[:2] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 2
    assert set(kinds[2:]) == {inspect.Parameter.KEYWORD_ONLY}
    assert all(
        parameter.annotation is not inspect.Parameter.empty
        for parameter in parameters(method).values()
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_argument_is_documented_in_its_place(method):
    texts = documented(method)
    assert list(texts) == list(parameters(method))
    assert all(texts.values())
    doc = inspect.getdoc(getattr(algorithms, method))
    assert all(part in doc.split() for part in ("Source:", "Returns:", "Raises:"))


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
    }


@pytest.mark.parametrize("method", METHODS)
def test_a_misspelled_argument_is_refused_with_the_right_name(method):
    for name in list(parameters(method))[2:]:
        if len(name) < 4:
            continue  # a letter or two are like nothing
        wrong = name[:2] + name[3:]
        message = rf"{method}\(\) got an unexpected keyword argument '{wrong}': did you mean "
        with pytest.raises(TypeError, match=rf"^{message}'{name}'\?$"):
            getattr(algorithms, method)(*first_two(method), **{wrong: 0.1})


@pytest.mark.parametrize("name", FOREIGN)
def test_an_argument_of_another_method_is_refused_as_such(name):
    method, message = FOREIGN[name]
    said = rf"^{method}\(\) got an unexpected keyword argument '{name}'{message}"
    with pytest.raises(TypeError, match=said):
        getattr(algorithms, method)(*first_two(method), **{name: 0.1})


def needed(method):
    """The keywords that have no default."""
    keywords = list(parameters(method).values())[2:]
    return [each.name for each in keywords if each.default is inspect.Parameter.empty]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("initial", "its rounds start from the prior"),
        ("num_initial", "its rounds start from the prior"),
        ("pending", "it decides without what is pending"),
    ],
)
@pytest.mark.parametrize(
    "method", ["phased_uncertainty_sampling", "bpe", "bpe_delay", "breadthwise_exploration"]
)
def test_rounds_start_from_the_prior(method, name, why):
    message = rf"^{method}\(\) got an unexpected keyword argument '{name}': {why}$"
    with pytest.raises(TypeError, match=message):
        getattr(algorithms, method)(*first_two(method), **{name: 3})


@pytest.mark.parametrize("method", [method for method in METHODS if needed(method)])
def test_a_missing_argument_is_named(method):
    for name in needed(method):
        given = dict.fromkeys(set(needed(method)) - {name}, 0.1)
        with pytest.raises(TypeError, match=rf"{method}\(\) missing 1 required .*: '{name}'"):
            getattr(algorithms, method)(*first_two(method), **given)


def optional_numbers(method):
    """Those of the published width that may be left out where another width is given."""
    if method == "lb_gp_ucb":
        return []  # it does without a bound
    taken = parameters(method)
    return [
        name for name in ("rkhs_bound", "noise_std") if name in taken and not taken[name].default
    ]


@pytest.mark.parametrize("method", [method for method in METHODS if optional_numbers(method)])
def test_what_the_published_width_needs_is_named(method):
    given = dict.fromkeys(needed(method), 9)
    missing = " and ".join(optional_numbers(method))
    message = rf"^{method}\(\): {missing} must be given unless width is, got None$"
    with pytest.raises(ValueError, match=message):
        getattr(algorithms, method)(*first_two(method), **given)

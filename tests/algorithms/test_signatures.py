"""What a reader of `help` sees of the algorithms, and what a misspelled argument gets."""

import inspect
import re

import pytest
from gpytorch.kernels import RBFKernel

from botorch_ext import Box, CandidateModels, algorithms

METHODS = algorithms.__all__
BOX = Box([[2.0, -3.0], [5.0, -1.5]])
# Of one method and not of another.
FOREIGN = {
    "minimum": "gp_bucb",
    "inflate": "gp_ucb_sdf",
    "context_domain": "stable_opt",
    "noise_variance": "he_gp_ucb",
    "horizon": "cgp_ucb",
    "misspecification": "regret_balancing",
    "beta": "gp_ucb",
    "budget": "gp_ucb",
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
def test_an_argument_of_another_method_is_refused(name):
    method = FOREIGN[name]
    with pytest.raises(TypeError, match=rf"^{method}\(\) got .* argument '{name}'"):
        getattr(algorithms, method)(*first_two(method), **{name: 0.1})


def needed(method):
    """The keywords that have no default."""
    keywords = list(parameters(method).values())[2:]
    return [each.name for each in keywords if each.default is inspect.Parameter.empty]


@pytest.mark.parametrize("name", ["initial", "num_initial", "pending"])
@pytest.mark.parametrize(
    "method", ["phased_uncertainty_sampling", "bpe", "bpe_delay", "breadthwise_exploration"]
)
def test_rounds_start_from_the_prior(method, name):
    with pytest.raises(TypeError, match=rf"^{method}\(\) got .* argument '{name}'"):
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

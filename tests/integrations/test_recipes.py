"""Algorithms by name: what they are given, what they lack, and which spaces they search."""

import pickle

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

import botorch_ext as bx
from botorch_ext.domains.choices import Choice
from botorch_ext.domains.parameters import Integer, Real
from botorch_ext.domains.space import Space
from botorch_ext.integrations.recipes import Recipe

PLAIN = Space({"a": Real(2.0, 5.0), "b": Real(-1.0, 3.0)})
LOGARITHMIC = Space({"a": Real(0.5, 5.0, log=True), "b": Real(-1.0, 3.0)})
FEW = Space({"a": Integer(2, 9), "b": Choice(("x", "y", "z"))})
MIXED = Space({"a": Real(2.0, 5.0), "b": Choice(("x", "y", "z"))})
CONSTRAINED = Space(
    {"a": Real(2.0, 5.0), "b": Real(-1.0, 3.0)}, constraints=[({"a": 1.0, "b": 1.0}, 5.0)]
)
KERNEL = {"kernel": RBFKernel(), "noise_variance": 0.01}


def test_a_kernel_is_fitted_where_none_is_given() -> None:
    strategy = Recipe("gp_bucb").make(MIXED)
    given = strategy.arguments.given
    assert repr(strategy.domain) == repr(MIXED.without_names())
    assert isinstance(given["model"], bx.Fitted) and given["width"] == 2.0
    assert given["num_initial"] == 8
    strategy = Recipe("gp_bucb", {"width": 1.0, "num_initial": 2, "seed": 4}).make(MIXED)
    given = strategy.arguments.given
    assert (given["width"], given["num_initial"], given["seed"]) == (1.0, 2, 4)
    strategy = Recipe("gp_bucb", KERNEL | {"width": 1.0}).make(PLAIN)
    assert strategy.arguments.given["num_initial"] == 0


def test_a_width_that_is_declared_is_kept() -> None:
    assert Recipe("thompson_sampling").make(MIXED).arguments.given["width"] == 1.0

    def narrow(domain, kernel: bx.Fitted, width=0.5):
        return bx.algorithms.gp_ucb(domain, kernel, width=width)

    assert Recipe(narrow).make(PLAIN).arguments.given["width"] == 0.5


def test_particles_are_given_where_none_are() -> None:
    for name in ("credible_ucb", "integrated_ei"):
        strategy = Recipe(name).make(MIXED)
        assert isinstance(strategy.particles, bx.Particles)


def test_a_function_is_an_algorithm() -> None:
    def halves(domain, share=0.5):
        return bx.algorithms.gp_ucb(domain, RBFKernel(), noise_variance=share, width=1.0)

    recipe = Recipe(halves, {"share": 0.25})
    assert recipe.name == "halves" and isinstance(recipe.make(PLAIN), bx.Strategy)

    def fitting(domain, kernel: bx.Fitted):
        return bx.algorithms.gp_ucb(domain, kernel, width=1.0)

    assert isinstance(Recipe(fitting).make(PLAIN).arguments.given["model"], bx.Fitted)
    with pytest.raises(ValueError, match=r"halves takes no argument 'shares'; did you mean"):
        Recipe(halves, {"shares": 0.25})


def test_a_function_of_one_space_alone_is_not_tried_on_another() -> None:
    def of_three_columns(domain):
        return bx.algorithms.gp_ucb(
            domain, RBFKernel(ard_num_dims=3), noise_variance=0.1, width=1.0
        )

    recipe = Recipe(of_three_columns)
    space = Space({name: Real(0.5, 2.0) for name in "abc"})
    assert recipe.make(space).domain.dim == 3


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        ("gp_bcub", {}, r"one of a_gp_ucb, .*, got 'gp_bcub'; did you mean 'gp_bucb'\?"),
        (3, {}, "algorithm must be a function or one of .*, got 3"),
        ("gp_bucb", {"with": 2.0}, r"gp_bucb takes no argument 'with'; did you mean 'width'\?"),
        ("gp_bucb", {"domain": PLAIN}, "domain must not be given to Recipe: it is the space"),
        ("gp_bucb", {"initial": ()}, "initial must not be given to Recipe: add the trials"),
        ("gp_bucb", {"width": -2.0}, "must be non-negative and finite, got -2.0"),
        ("gp_bucb", {"num_initial": -1}, "num_initial must be at least 0, got -1"),
        ("certified_bucb", {}, "kernel must be given for certified_bucb"),
        ("bpe", {}, "kernel must be given for bpe"),
        ("bpe", KERNEL, "horizon must be given for bpe"),
        ("breadthwise_exploration", KERNEL | {"horizon": 9}, "rkhs_bound must be given for"),
        ("he_gp_ucb", {"noise_std": 0.1}, "models must be given for he_gp_ucb"),
        ("ec_gp_ucb", {}, "misspecification must be given for ec_gp_ucb"),
        ("cgp_ucb", {}, "cgp_ucb needs a context for every trial, but Recipe provides none"),
        (
            "cgp_ucb",
            {"kernel": RBFKernel(), "noise_variance": 0.1},
            "needs a context for every trial",
        ),
        ("gp_bucb", {"context_domain": 2}, "gp_bucb needs a context for every trial"),
    ],
)
def test_wrong_arguments_are_refused_before_there_is_a_space(algorithm, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(algorithm, arguments)


def test_a_wrong_number_of_points_is_refused() -> None:
    with pytest.raises(ValueError, match="num_points must be at least 1, got 0"):
        Recipe("gp_bucb", num_points=0)


PHASED = KERNEL | {"horizon": 40, "width": 1.0}


@pytest.mark.parametrize("algorithm", ["bpe", "certified_bucb"])
def test_a_method_for_plain_boxes_gets_all_points_where_they_are_few(algorithm: str) -> None:
    recipe = Recipe(algorithm, PHASED)
    assert repr(recipe.make(PLAIN).domain) == repr(PLAIN.without_names())
    domain = recipe.make(FEW).domain
    assert isinstance(domain, bx.FiniteSet) and domain.num_points == 24
    assert FEW.contains(domain.points).all()


@pytest.mark.parametrize(
    ("space", "what"),
    [
        (LOGARITHMIC, "logarithmic scales: a"),
        (MIXED, "steps, whole numbers or choices: b"),
        (CONSTRAINED, "constraints: of the space"),
    ],
)
def test_a_method_for_plain_boxes_refuses_others_by_name(space: Space, what: str) -> None:
    with pytest.raises(ValueError, match=rf"bpe searches .*{what}\. Give num_points=1000"):
        Recipe("bpe", PHASED).make(space)
    domain = Recipe("bpe", PHASED, num_points=50).make(space).domain
    assert isinstance(domain, bx.FiniteSet) and domain.num_points == 50
    assert space.contains(domain.points).all()


def test_no_more_points_than_there_are() -> None:
    assert Recipe("gp_bucb", num_points=1000).make(FEW).domain.num_points == 24


def test_an_error_of_the_method_itself_stays() -> None:
    arguments = {"kernel": MaternKernel(ard_num_dims=5), "noise_variance": 0.1}
    recipe = Recipe("gp_bucb", arguments | {"width": 2.0})  # of spaces of five parameters
    with pytest.raises(ValueError, match="kernel must take points of dimension"):
        recipe.make(MIXED)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "rkhs_bound and noise_std"),
        ({"width": -2.0}, "width"),
        ({"width": 1.0, "seed": 0.5}, "seed"),
    ],
)
def test_what_is_wrong_beside_a_kernel_is_said_at_once(more, message) -> None:
    for d in (1, 2, 5):
        arguments = {"kernel": MaternKernel(ard_num_dims=d), "noise_variance": 0.1}
        with pytest.raises(ValueError, match=message):
            Recipe("gp_bucb", arguments | more)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [("GP-BUCB", "did you mean 'gp_bucb'"), (dict, "must make a Strategy, got the class dict")],
)
def test_what_is_no_algorithm_is_refused(algorithm, message) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(algorithm)


def test_a_name_of_an_argument_is_found_in_any_case() -> None:
    with pytest.raises(ValueError, match="did you mean 'width'"):
        Recipe("gp_bucb", {"Width": 2.0})


def test_contexts_are_those_of_the_arguments_or_of_the_host() -> None:
    days = bx.Box([[0.0], [7.0]])
    recipe = Recipe("cgp_ucb", {"context_domain": days}, takes_contexts=True)
    assert recipe.make(PLAIN, context_domain=1).context_space.domain is days
    recipe = Recipe("cgp_ucb", takes_contexts=True)
    assert recipe.is_contextual and recipe.make(PLAIN, context_domain=1).context_space.dim == 1
    assert not Recipe("gp_bucb", takes_contexts=True).is_contextual


def test_a_recipe_can_be_sent_to_another_process() -> None:
    recipe = Recipe("gp_bucb", KERNEL | {"width": 1.0})
    again = pickle.loads(pickle.dumps(recipe))
    assert torch.equal(again.make(PLAIN).ask().x, recipe.make(PLAIN).ask().x)

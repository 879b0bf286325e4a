"""Algorithms by name: what they are given, what they lack, and which spaces they search."""

import pytest
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from botorch_ext.integrations.recipes import Recipe, UnsearchableSpace

A, B = bx.Real(2.0, 5.0), bx.Real(-1.0, 3.0)
PLAIN = bx.Space(a=A, b=B)
FEW = bx.Space(a=bx.Integer(2, 9), b=bx.Choice(("x", "y", "z")))
MIXED = bx.Space(a=A, b=bx.Choice(("x", "y", "z")))
KERNEL = {"kernel": RBFKernel(), "noise_variance": 0.01}
PHASED = KERNEL | {"horizon": 40, "width": 1.0}


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("gp_bucb", {}, {"model": bx.Fitted(), "width": 2.0, "num_initial": 8}),
        ("gp_bucb", {"width": 1.0, "num_initial": 2, "seed": 4}, {"width": 1.0, "seed": 4}),
        ("gp_bucb", {"width": 1.0, "num_initial": 2}, {"num_initial": 2}),
        ("gp_bucb", KERNEL | {"width": 1.0}, {"num_initial": 0}),
        ("gp_bucb", {"kernel": bx.Fitted(), "width": 1.0}, {"num_initial": 8}),
        ("thompson_sampling", {}, {"width": 1.0}),
    ],
)
def test_what_is_not_given_is_fitted_and_a_width_that_is_declared_is_kept(
    name, arguments, expected
):
    strategy = Recipe(name, arguments).make(MIXED)
    assert strategy.arguments.given.items() >= expected.items()
    assert repr(strategy.domain) == repr(MIXED.without_names())
    for other in ("credible_ucb", "integrated_ei"):
        assert isinstance(Recipe(other).make(MIXED).particles, bx.Particles)


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        ("GP-BUCB", {}, "did you mean 'gp_bucb'"),
        (3, {}, "algorithm must be a function or one of .*, got 3"),
        ("gp_bucb", {"Width": 2.0}, "'Width'; did you mean 'width'"),
        ("gp_bucb", {"domain": PLAIN}, "domain must not be given to Recipe"),
        ("gp_bucb", {"width": -2.0}, "non-negative and finite, got -2.0"),
        ("gp_bucb", KERNEL, "rkhs_bound and noise_std"),
        ("bpe", KERNEL, "horizon must be given for bpe"),
        ("cgp_ucb", {}, "cgp_ucb needs a context for every trial, but Recipe provides none"),
    ],
)
def test_wrong_arguments_are_refused_before_there_is_a_space(algorithm, arguments, message):
    with pytest.raises(ValueError, match=message):
        Recipe(algorithm, arguments)
    with pytest.raises(ValueError, match="num_points must be at least 1, got 0"):
        Recipe("gp_bucb", num_points=0)


@pytest.mark.parametrize("algorithm", ["bpe", "certified_bucb"])
def test_a_method_for_plain_boxes_gets_all_points_where_they_are_few(algorithm):
    recipe = Recipe(algorithm, PHASED)
    assert repr(recipe.make(PLAIN).domain) == repr(PLAIN.without_names())
    domain = recipe.make(FEW).domain
    assert isinstance(domain, bx.FiniteSet) and domain.num_points == 24
    assert FEW.contains(domain.points).all()
    assert Recipe("gp_bucb", num_points=1000).make(FEW).domain.num_points == 24


@pytest.mark.parametrize(
    ("space", "what"),
    [
        (bx.Space(a=bx.Real(0.5, 5.0, log=True), b=B), "logarithmic scales: a"),
        (MIXED, "steps, whole numbers or choices: b"),
        (bx.Space(a=A, b=B, constraints=["a + b <= 5"]), "constraints: of the space"),
    ],
)
def test_a_method_for_plain_boxes_refuses_others_by_name(space, what):
    with pytest.raises(UnsearchableSpace, match=rf"bpe searches .*{what}\. Give num_points=1000"):
        Recipe("bpe", PHASED).make(space)
    domain = Recipe("bpe", PHASED, num_points=50).make(space).domain
    assert isinstance(domain, bx.FiniteSet) and domain.num_points == 50
    assert space.contains(domain.points).all()


def test_contexts_are_those_of_the_arguments_or_of_the_host():
    days = bx.Box([[0.0], [7.0]])
    recipe = Recipe("cgp_ucb", {"context_domain": days}, takes_contexts=True)
    assert recipe.make(PLAIN, context_domain=1).context_space.domain is days
    recipe = Recipe("cgp_ucb", takes_contexts=True)
    assert recipe.is_contextual and recipe.make(PLAIN, context_domain=1).context_space.dim == 1
    assert not Recipe("gp_bucb", takes_contexts=True).is_contextual

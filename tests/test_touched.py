"""Which tests `make quick` runs."""

import pytest

from tests.touched import paths_of_tests


@pytest.mark.parametrize(
    ("changed", "run"),
    [
        (["botorch_ext/regions/region.py"], ["tests/regions/test_region.py"]),
        (["botorch_ext/strategies/adaptive/refits.py"], ["tests/strategies/adaptive"]),
        (["botorch_ext/strategies/base.py"], ["tests/strategies/test_base.py"]),
        (
            ["botorch_ext/regions/__init__.py"],
            ["tests/test_layering.py", "tests/test_names_in_words.py"],
        ),
        (["tests/wrong_calls/kinds.py"], ["tests/test_wrong_calls.py"]),
        (["botorch_ext/distances.py"], ["tests/test_distances.py"]),
        (["botorch_ext/state.py"], ["tests/laws"]),
        (["tests/models/test_gone.py"], []),
        (["tests/domains/test_bounds.py", "botorch_ext/domains/box.py"], ["tests/domains"]),
        (["README.md", "docs/speed.md"], ["tests/test_readme.py"]),
        (["benchmarks/demo.py"], ["tests/benchmarks"]),
        (["pyproject.toml", "botorch_ext/py.typed"], []),
    ],
)
def test_a_change_has_the_paths_of_tests_its_room(changed, run):
    assert paths_of_tests(changed) == run

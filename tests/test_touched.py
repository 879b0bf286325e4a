"""The tests of what was touched, in a repository that is made up."""

import pytest

from tests import touched

FILES = ("tests/regions/test_region.py", "tests/strategies/test_base.py", "tests/domains/x.py")
FILES += ("tests/hosts/x.py", "tests/benchmarks/x.py", "tests/test_distances.py")


@pytest.mark.parametrize(
    ("changed", "run"),
    [
        (["botorch_ext/regions/region.py"], ["tests/regions/test_region.py"]),
        (["botorch_ext/strategies/adaptive/refits.py"], ["tests/strategies"]),
        (["botorch_ext/strategies/base.py"], ["tests/strategies/test_base.py"]),
        (["botorch_ext/integrations/hosted.py"], ["tests/hosts"]),
        (["tests/wrong_calls/rows.py"], ["tests/wrong_calls"]),
        (["botorch_ext/distances.py"], ["tests/test_distances.py"]),
        (["tests/models/test_gone.py"], []),
        (["tests/domains/x.py", "botorch_ext/domains/box.py"], ["tests/domains"]),
        (["README.md", "docs/speed.md"], ["tests/test_readme.py"]),
        (["benchmarks/demo.py"], ["tests/benchmarks"]),
        (["pyproject.toml", "botorch_ext/py.typed"], []),
    ],
)
def test_a_change_has_the_paths_of_tests_its_room(changed, run, tmp_path, monkeypatch):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.setattr(touched, "ROOT", tmp_path)
    assert touched.paths_of_tests(changed) == run

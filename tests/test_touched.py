"""Which tests `make quick` runs, and which are slow."""

import pytest

from tests.touched import ELSEWHERE, ROOT, paths_of_tests


@pytest.mark.parametrize(
    ("changed", "run"),
    [
        (["botorch_ext/search/region.py"], ["tests/regions", "tests/robust", "tests/search"]),
        (["botorch_ext/strategies/events.py"], ["tests/predictions", "tests/strategies"]),
        (["botorch_ext/search/__init__.py"], ["tests/test_package.py"]),
        (["botorch_ext/domains/distances.py"], ["tests/domains"]),
        (["botorch_ext/state.py"], ["tests/laws"]),
        (["botorch_ext/widths/base.py"], ["tests/formulas"]),
        (["botorch_ext/integrations/ax.py"], ["tests/hosts"]),
        (["tests/models/test_gone.py"], []),
        (["tests/domains/test_bounds.py", "botorch_ext/domains/box.py"], ["tests/domains"]),
        (["README.md", "docs/speed.md"], ["tests/documentation"]),
        (["benchmarks/demo.py"], ["tests/benchmarks"]),
        (["pyproject.toml", "botorch_ext/py.typed"], []),
    ],
)
def test_a_change_has_the_tests_of_its_room(changed, run):
    assert paths_of_tests(changed) == run


def test_every_room_has_tests():
    package, tests = ROOT / "botorch_ext", ROOT / "tests"
    rooms = {path.name for path in package.iterdir() if path.is_dir()} - {"__pycache__"}
    without = [
        room
        for room in rooms
        if not all((tests / name).is_dir() for name in ELSEWHERE.get(room, [room]))
    ]
    assert not without


def test_every_test_that_is_listed_as_slow_exists():
    gone = []
    for line in (ROOT / "tests" / "slow_tests.txt").read_text().splitlines():
        file, *_, name = line.partition("[")[0].split("::")
        if not (ROOT / file).exists() or f"def {name}(" not in (ROOT / file).read_text():
            gone.append(line)
    assert not gone

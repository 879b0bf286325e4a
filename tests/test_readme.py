"""The README's examples run as they stand."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[1] / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
# SingleTaskGP remarks on unscaled data; the example leaves its model as a user would.
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
def test_example_runs(code):
    exec(compile(code, "README.md", "exec"), {})

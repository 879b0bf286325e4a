"""The README's examples run as they stand."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[1] / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("code", EXAMPLES, ids=range(len(EXAMPLES)))
# SingleTaskGP's remark on unscaled data: the drop-in example leaves its model as a user would have it.
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
def test_example_runs(code):
    exec(compile(code, "README.md", "exec"), {})

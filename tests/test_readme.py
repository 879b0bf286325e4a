"""The examples of the README and of the pages run as they stand."""

from pathlib import Path

import pytest
import torch

from tests.run_examples import examples

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = [
    pytest.param(code, id=f"{page.stem}-{i}")
    for page in PAGES
    for i, code in enumerate(examples(page))
]


def test_there_are_examples():
    assert len(examples(PAGES[0])) >= 2
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize("code", EXAMPLES)
# SingleTaskGP remarks on unscaled data; an example leaves its model as a user would.
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
def test_example_runs(code, capsys):
    torch.manual_seed(0)  # what an example draws itself
    exec(compile(code, "example", "exec"), {})


def test_the_readme_fits_in_two_minutes():
    assert 5000 < len(PAGES[0].read_text()) < 8000

"""The README and the pages: their examples run as they stand, their links lead somewhere."""

import doctest
import re
import socket
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch
import torch.distributed as dist

import botorch_ext as bx
from tests.documentation.run_examples import examples, examples_with_output

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MAP = ROOT / "docs" / "map_of_methods.md"
STORY = ROOT / "docs" / "a_study_that_lasts.md"
EXAMPLES = [
    pytest.param(*example, id=f"{page.stem}-{i}", marks=[pytest.mark.slow] * (page != PAGES[0]))
    for page in PAGES
    if page != STORY
    for i, example in enumerate(examples_with_output(page))
]


@pytest.fixture
def as_torchrun_starts_it(monkeypatch):
    """The environment of the only process of a group; afterwards there is no group."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR", "GLOO_SOCKET_IFNAME")
    for name, value in zip(names, (0, 0, 1, port, "127.0.0.1", "lo"), strict=True):
        monkeypatch.setenv(name, str(value))
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_there_are_examples():
    assert len(examples(PAGES[0])) >= 2
    assert len(EXAMPLES) >= 12


@pytest.mark.parametrize(("code", "output"), EXAMPLES)
# SingleTaskGP remarks on unscaled data; an example leaves its model as a user would.
@pytest.mark.filterwarnings("ignore::botorch.exceptions.warnings.InputDataWarning")
def test_example_runs(code, output, capsys, as_torchrun_starts_it, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for the files of studies
    torch.manual_seed(0)  # what an example draws itself
    exec(compile(code, "example", "exec"), {})
    plt.close("all")
    printed = capsys.readouterr().out
    same = doctest.OutputChecker().check_output(output, printed, doctest.ELLIPSIS)
    assert same or not output, printed


@pytest.mark.slow
def test_the_story_is_followed_in_one_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    lab, *others = examples(STORY)
    Path("lab.py").write_text(lab)  # as the page says
    for code in others:
        exec(compile(code, "example", "exec"), {})


@pytest.mark.parametrize(("page", "most"), [("README.md", 7000), ("docs/getting_started.md", 6000)])
def test_first_pages_are_short(page, most):
    assert 4000 < len((ROOT / page).read_text()) < most


def test_the_map_has_every_algorithm():
    linked = re.findall(r"\(#botorch_ext\.algorithms\.(\w+)\)", MAP.read_text())
    assert sorted(set(linked)) == sorted(bx.algorithms.__all__)


def test_links_lead_somewhere():
    links = [
        (page, link)
        for page in PAGES
        for link in re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", page.read_text())
        if "://" not in link
    ]
    assert len(links) > len(PAGES)
    missing = [(page.stem, link) for page, link in links if not (page.parent / link).exists()]
    assert not missing

"""Figures are closed before and after each test."""

import pytest

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed_figures():
    plt.close("all")  # those of tests of other folders
    yield
    plt.close("all")

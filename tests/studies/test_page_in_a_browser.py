"""The page of a study in a browser: nothing scrolls sideways, and no label is cut."""

import pytest

import botorch_ext as bx
from botorch_ext.reports.report_page import report_page
from tests.studies.browser import browser
from tests.studies.pages import HOSTILE, rbf, require_harmless
from tests.studies.seven_studies import STUDIES

WIDTHS = (400, 1300, 1366, 1920)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as session:
        yield session


@pytest.mark.slow
@pytest.mark.parametrize("made", STUDIES, ids=lambda made: made.__name__)
def test_pages_fit_every_screen(made, shown, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(report_page(made(tmp_path / "lab.db")), encoding="utf-8")
    require_harmless(page.read_text(encoding="utf-8"))
    for width in WIDTHS:
        shown.open(page, width)
        assert shown.wrong() == []
    shown.open(page, 1300, dark=True)
    assert shown.run("return getComputedStyle(document.body).color") == "rgb(230, 233, 236)"


@pytest.mark.slow
def test_hostile_names_stay_text(shown, tmp_path):
    space = bx.Space(
        {
            HOSTILE: bx.Real(0, 1, unit=HOSTILE),
            f"{HOSTILE}2": bx.Real(0, 1, unit="<b>"),
            "choice": bx.Choice([HOSTILE, "<svg onload=alert(1)>"]),
        }
    )
    strategy = bx.algorithms.gp_bucb(space, rbf(), noise_variance=0.01, width=2.0)
    path, page = tmp_path / "lab.db", tmp_path / "page.html"
    study = bx.Study(path, strategy, name=HOSTILE, objective=f"{HOSTILE}3", unit="<i>")
    for trial in study.ask(6):
        study.tell(trial, float(trial.x[0]))
    study.ask()
    page.write_text(report_page(study), encoding="utf-8")
    parsed = require_harmless(page.read_text(encoding="utf-8"))
    assert HOSTILE[:39] in parsed.text and "<svg onload=alert(1)>" in parsed.text
    for width in WIDTHS:
        shown.open(page, width)
        assert shown.run("return document.querySelectorAll('script, img, b b, i').length") == 0
        assert shown.wrong() == []


@pytest.mark.slow
def test_what_does_not_fit_is_found(shown, tmp_path):
    page, svg = tmp_path / "page.html", '<svg width="50" height="20"><text y="15">{}</text></svg>'
    words = ("<p style='white-space: nowrap'>", "word " * 100, svg.format("label " * 50))
    page.write_text(f"<body><section style='width: 90%'>{''.join(words)}</section>", "utf-8")
    shown.open(page, 400)
    found = shown.wrong()
    assert "the page scrolls sideways" in found
    assert any(each.startswith("cut: label") for each in found)

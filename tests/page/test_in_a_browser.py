"""The page of a study in a browser: nothing scrolls sideways, and no label is cut."""

import pytest

import botorch_ext as bx
from botorch_ext.page.report_page import report_page
from tests.helpers import rbf
from tests.page.studies import HOSTILE, SPACE, begun, require_harmless
from tests.studies.browser import browser

pytestmark = pytest.mark.slow
WIDTHS = (360, 768, 1280, 1920)


def mixed(path):
    """Parameters of all kinds in batches of four, the last of which pends."""
    kernel = rbf(20.0, 0.3, 2.0, 0.8).float()
    strategy = bx.algorithms.gp_bucb(SPACE, kernel, noise_variance=0.01, width=2.0)
    study = bx.Study(path, strategy, objective="yield", unit="%")
    for i, trial in enumerate(study.ask(12)):
        study.tell(trial, (i % 5) / 5)
    study.ask(4)
    return study


def failures(path):
    """Trials of every state, and a long name of the study."""
    return begun(path, name="values that come late, of a week in November" * 3)


def candidate_models(path):
    models = bx.CandidateModels.lengthscales(rbf(1.0), [0.1, 0.3, 0.6, 2.0], 0.01)
    box = bx.Box([(-1.0, 1.0), (2.0, 5.0)])
    strategy = bx.algorithms.he_gp_ucb(box, models, rkhs_bound=0.5, noise_std=0.03, delta=0.1)
    study = bx.Study(path, strategy)
    for _ in range(14):
        trial = study.ask()
        study.tell(trial, float(trial.x.sum().sin()))
    return study


STUDIES = (mixed, failures, candidate_models)


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as session:
        yield session


@pytest.mark.parametrize("made", STUDIES, ids=lambda made: made.__name__)
def test_pages_fit_every_screen(made, session, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(report_page(made(tmp_path / "lab.db")), encoding="utf-8")
    require_harmless(page.read_text(encoding="utf-8"))
    assert "stroke: #000000" not in page.read_text(encoding="utf-8")  # lost on a dark page
    for width in WIDTHS:
        session.open(page, width)
        assert session.wrong() == []
    session.open(page, 1280, dark=True)
    assert session.run("return getComputedStyle(document.body).color") == "rgb(230, 233, 236)"


def test_hostile_names_stay_text(tmp_path):
    space = bx.Space(
        {
            HOSTILE: bx.Real(0, 1, unit=HOSTILE),
            f"{HOSTILE}2": bx.Real(0, 1, unit="<b>"),
            "choice": bx.Choice([HOSTILE, "<svg onload=alert(1)>"]),
        }
    )
    strategy = bx.algorithms.gp_bucb(space, rbf(0.6), noise_variance=0.01, width=2.0)
    options = {"name": HOSTILE, "objective": f"{HOSTILE}3", "unit": "<i>"}
    study = bx.Study(tmp_path / "lab.db", strategy, **options)
    for trial in study.ask(6):
        study.tell(trial, float(trial.x[0]))
    study.ask()
    parsed = require_harmless(report_page(study))
    assert HOSTILE[:39] in parsed.text and "<svg onload=alert(1)>" in parsed.text
    assert not {"script", "img", "i"} & {tag for tag, _ in parsed.elements}

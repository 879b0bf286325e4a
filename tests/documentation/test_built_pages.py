"""The pages as `make docs` built them: words that search must find, titles, and layout."""

import json
import os
import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

import pytest

from tests.studies.browser import browser

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "build" / "docs"
WIDTHS = (400, 1300, 1366, 1407, 1920)
PAGES = (
    *("index", "getting_started", "which_method", "theory", "tables", "api/algorithms"),
    *("api/studies", "results/real/report", "notebooks/easy_instances", "search"),
)
# Where a word is used to help no reader: names, reports, notebooks and the history.
NOT_PAGES = ("api/names/", "results/", "notebooks/", "history/")
# These share the page of their package.
TOGETHER = {"PALETTE", "Event", "Asked", "Told", "Attached", "Failed", "Corrected", "Abandoned"}
TOGETHER |= {"Withdrawn", "Noted", "Widened"}
SIDEWAYS = """
const boxes = [document.documentElement, document.querySelector('.content')];
return Math.max(...boxes.map(box => box.scrollWidth - box.clientWidth));
"""
BROKEN_NAMES = """
return [...document.querySelectorAll('td code span.pre')]
  .filter(name => name.getClientRects().length > 1).map(name => name.textContent);
"""
FOUND = """
return [...document.querySelectorAll('#search-results li')]
  .map(each => [each.querySelector('a').textContent, each.querySelector('p')?.textContent ?? '']);
"""


pytestmark = pytest.mark.skipif(
    "PAGES_ARE_BUILT" not in os.environ, reason="looks at pages that were just built: make docs"
)


@pytest.fixture(scope="module")
def index():
    text = (BUILT / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(text[text.index("(") + 1 : text.rindex(")")])


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as session:
        yield session


@pytest.fixture(scope="module")
def served():
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format, *args):
            pass

    handler = partial(Quiet, directory=str(BUILT))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def pages_with(index, words):
    stem = pytest.importorskip("sphinx.search.en").SearchEnglish({}).stem
    found = []
    for word in words.lower().split():
        hits = [index[kind].get(stem(word), []) for kind in ("terms", "titleterms")]
        found.append({i for hit in hits for i in ([hit] if isinstance(hit, int) else hit)})
    names = {index["docnames"][i] for i in set.intersection(*found)}
    return sorted(name for name in names if not name.startswith(NOT_PAGES))


SEARCHED = ("parallel", "save resume", "checkpoint", "batch", "categorical", "constraint", "delay")
SEARCHED += ("noise", "stop", "minimise", "minimize", "GPU")


@pytest.mark.parametrize("words", SEARCHED)
def test_a_page_has_the_words_that_users_search_for(words, index):
    assert pages_with(index, words)


def test_no_two_pages_have_the_same_title(index):
    titles = index["titles"]
    assert len(titles) > 100
    assert sorted({title for title in titles if titles.count(title) > 1}) == []


@pytest.mark.parametrize(
    "package", ["algorithms", "analysis", "models", "plotting", "problems", "strategies"]
)
def test_every_public_name_has_a_page_of_its_own(package):
    names = pytest.importorskip(f"botorch_ext.{package}").__all__
    built = {path.stem for path in (BUILT / "api/names").glob(f"botorch_ext.{package}.*.html")}
    missing = {f"botorch_ext.{package}.{name}" for name in names if name not in TOGETHER} - built
    assert missing == set()


def test_names_of_methods_are_links_to_their_reference():
    page = (BUILT / "which_method.html").read_text(encoding="utf-8")
    linked = set(re.findall(r'href="api/names/botorch_ext\.algorithms\.(\w+)\.html#', page))
    assert {"integrated_ei", "gp_ucb", "insured_ucb", "certified_bucb", "bpe_delay"} <= linked


@pytest.mark.parametrize("page", PAGES)
def test_no_page_scrolls_sideways_and_no_name_in_a_table_is_broken(page, shown):
    for width in WIDTHS:
        shown.open(BUILT / f"{page}.html", width)
        assert (width, shown.run(SIDEWAYS)) == (width, 0)
        assert shown.run(BROKEN_NAMES) == []


def test_what_scrolls_sideways_is_seen(shown):
    shown.open(BUILT / "index.html", 400)
    shown.run("document.querySelector('h1').style.width = '500px'")
    assert shown.run(SIDEWAYS) > 0


@pytest.mark.parametrize("by", ["http", "file"])
def test_search_finds_with_and_without_a_server(by, shown, served):
    place = served if by == "http" else BUILT.as_uri()
    shown.open(f"{place}/search.html?q=parallel", 1300)
    found, end = [], monotonic() + 30
    while monotonic() < end and not (found and (by == "file" or all(text for _, text in found))):
        sleep(0.2)
        found = shown.run(FOUND)
    assert found
    if by == "http":
        assert all(text for _, text in found)
        assert any("parallel" in text.lower() for _, text in found)

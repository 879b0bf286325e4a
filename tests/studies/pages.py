"""What the tests of the page of a study share: studies, and the page read as a browser does."""

import random
import re
import time
from html.parser import HTMLParser
from xml.etree import ElementTree

from gpytorch.kernels import RBFKernel

from benchmarks.studies.objectives import value_at
from botorch_ext.command_line import main
from botorch_ext.reports.model_numbers import ModelNumbers
from botorch_ext.reports.overview import read_overview
from botorch_ext.reports.pictures import pictures

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
LOADS = {"src", "href", "xlink:href", "action", "data", "poster", "srcset", "background"}
HOSTILE = "</title></svg><script>alert('x')</script><img src=https://example.org onerror=alert(1)>"
VOID = {"meta", "br", "img", "path", "use"}


class Parsed(HTMLParser):
    """The elements, the words and the cells of tables of a page."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.words, self.tables, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def having(self, tag):
        return [attributes for one, attributes in self.elements if one == tag]

    def table(self, *head):
        """The rows below a head that begins so."""
        found = [rows for rows in self.tables if rows[0][: len(head)] == list(head)]
        assert len(found) == 1
        return found[0][1:]


def made(path, *options):
    """The page as a command writes it, from events alone."""
    output = path.with_suffix(".html")
    assert main(["report", str(path), "--without-model", *options, "-o", str(output)]) == 0
    return output.read_text(encoding="utf-8")


def require_harmless(text):
    parsed = Parsed(text)
    assert parsed.open == []
    assert parsed.having("meta")[1] == {"http-equiv": "Content-Security-Policy", "content": POLICY}
    tags = {tag for tag, _ in parsed.elements}
    assert not tags & {"script", "link", "iframe", "object", "embed", "base", "form", "img", "a"}
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in parsed.elements:
        assert not [name for name in attributes if name.startswith("on")]
        for name in LOADS & set(attributes):
            assert attributes[name].startswith(("#", "data:image/png;base64,"))
            if attributes[name].startswith("#"):
                assert attributes[name][1:] in ids
        for value in attributes.values():
            assert all(url.startswith("#") for url in re.findall(r"url\(([^)]*)", value or ""))
    style = text[text.index("<style>") : text.index("</style>")]
    assert "url(" not in style and "@import" not in style
    assert parsed.having("html") == [{"lang": "en"}] and len(parsed.having("title")) == 1
    figures = parsed.having("figure")
    assert len(figures) == len(parsed.having("svg"))
    for figure in figures:
        assert figure["role"] == "img" and len(figure["aria-label"]) > 20
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(svg)
    return parsed


def titles(parsed):
    shown = [figure for figure in parsed.having("figure") if figure["class"] == "wide"]
    return [figure["aria-label"].split(". ")[0].rstrip(".") for figure in shown]


def drawn_for(path, name=None):
    """The pictures that are made of events alone, by their titles up to a comma."""
    found = pictures(read_overview(path, name), [], time.time(), ModelNumbers())
    return {picture.title.partition(",")[0]: picture for picture in found}


def played(study, number, seed=0, failing=0.1):
    """Trials that are told late and in any order; some fail."""
    rng, waiting = random.Random(seed), []
    for _ in range(number):
        waiting.append(study.ask())
        while len(waiting) > 3 and rng.random() < 0.8:
            trial = waiting.pop(rng.randrange(len(waiting)))
            if rng.random() < failing:
                study.abandon(trial, failed=True)
            else:
                study.tell(trial, value_at(trial.x))
    return study


def rbf(lengthscale=0.6):
    kernel = RBFKernel()
    kernel.lengthscale = lengthscale
    return kernel


def six_digits(*cells):
    return [f"{cell:.6g}" for cell in cells]

"""Studies of known numbers, and their pages read as a browser does."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import botorch_ext as bx
from botorch_ext.page.overview import read_overview
from botorch_ext.strategies import RandomSearch
from tests.studies.kept import SPACE as SPACE

POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'"
)
LOADS = {"src", "href", "xlink:href", "action", "data", "poster", "srcset", "background"}
HOSTILE = "</title></svg><script>alert('x')</script><img src=https://example.org onerror=alert(1)>"
VOID = {"meta", "br", "img", "path", "use"}
HOUR = 3600.0


# Temperature, catalyst, equivalents, solvent, value; None where none came.
TRIALS = [
    (20.0, 1e-4, 1, "water", 3.0),
    (80.0, 1e-1, 5, "dmso", -1.0),
    (50.0, 1e-2, 2, "ethanol", 7.5),
    (35.0, 1.0, 4, "water", 5.0),
    (65.0, 1e-3, 3, "dmso", None),
    (42.5, 1e-2, 2, "ethanol", None),
    (27.5, 1e-3, 1, "water", None),
]


def begun(path, minimize=False, space=SPACE, trials=TRIALS, **options):
    """Trials 0 to 2 are told, 3 is attached, 4 failed, 5 was dropped, 6 pends."""
    study = bx.Study(
        path, RandomSearch(space), minimize=minimize, objective="yield", unit="%", **options
    )
    for *numbers, value in trials:
        params = dict(zip(space.parameters, numbers, strict=True))
        if value is not None and len(study.events) == 6:
            study.attach(params, value)
            continue
        trial = study.ask(actions=space.point(params)[None])
        if value is not None:
            study.tell(trial, value)
        elif trial.id < 6:
            study.abandon(trial, failed=trial.id == 4)
    return study


def seen(path, infos=None, at=None):
    """The overview of a study, with other infos and with other times of asking and ending."""
    overview = read_overview(path)
    for story in overview.stories:
        story.info |= (infos or {}).get(story.id, {})
        if at is not None:
            story.asked_at, story.ended_at = at[story.id]
    return replace(overview, stories=overview.stories)


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

    @property
    def titles(self):
        return [figure["aria-label"] for figure in self.having("figure")]


def require_harmless(text):
    """A page that loads nothing and runs nothing, parsed."""
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
    assert len(figures) <= len(parsed.having("svg"))
    for figure in figures:
        assert figure["role"] == "img" and figure["aria-label"].endswith(", described above")
    for svg in re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL):
        ElementTree.fromstring(svg)
    return parsed

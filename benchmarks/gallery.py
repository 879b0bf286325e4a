"""The pictures of the gallery and of many seeds, drawn by the code above them on the pages.

python -m benchmarks.gallery [--smoke] [--output FOLDER]
"""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import matplotlib.pyplot as plt
import torch
from PIL import Image

from benchmarks.common.command_line import parse_options

_DOCS = Path(__file__).parents[1] / "docs"
_PAGES = [_DOCS / "gallery.md", _DOCS / "many_seeds.md"]
_CODE_AND_PICTURE = re.compile(
    r"^```python\n(.*?)^```\n\n!\[[^\]]*\]\([./\w]*/(\w+\.png)\)", flags=re.DOTALL | re.MULTILINE
)


def main(argv: list[str] | None = None) -> None:
    """Draws all of them; a smoke run only the first."""
    options = parse_options("gallery", "Pictures of the gallery.", argv)
    found = [each for page in _PAGES for each in _CODE_AND_PICTURE.findall(page.read_text())]
    for code, name in found[:1] if options.smoke else found:
        torch.manual_seed(0)
        exec(compile(code, name, "exec"), {})
        drawn = BytesIO()
        plt.savefig(drawn, dpi=100, bbox_inches="tight")
        plt.close("all")
        # Few colours, as heat maps would take three times the space.
        Image.open(drawn).quantize(128).save(options.output / name, optimize=True)


if __name__ == "__main__":
    main()

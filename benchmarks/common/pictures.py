"""Pictures that are kept beside reports."""

from __future__ import annotations

import io
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image


def save(figure: Figure, path: Path, dpi: int) -> None:
    """Writes a figure with 256 colours, which takes a third of the room.

    Args:
        figure: The figure.
        path: The PNG file.
        dpi: The number of dots in an inch.
    """
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=dpi)
    write(drawn.getvalue(), path)


def write(png: bytes, path: Path) -> None:
    """Writes a picture with 256 colours."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(path, "PNG", optimize=True)

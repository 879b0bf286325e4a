"""Setting of a block: where it runs, how large, and where its files go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks.common.machine import describe_machine
from benchmarks.common.tables import Row, markdown_table, write_csv


@dataclass(frozen=True)
class Setting:
    """What every block is given.

    Args:
        smoke: Only show that everything runs.
        device: What is measured: the GPU, or the CPU in a smoke run and where there is none.
        output: The folder for the files; it exists.
    """

    smoke: bool
    device: torch.device
    output: Path

    @property
    def has_gpu(self) -> bool:
        return self.device.type == "cuda"

    def write(self, name: str, title: str, text: str, rows: Sequence[Row]) -> None:
        """Writes a table as ``name``.md and ``name``.csv.

        Args:
            name: Of the files.
            title: Of the table.
            text: What the reader must know, in whole sentences.
            rows: With the same keys.
        """
        machine = f"On {describe_machine(self.device)}"
        where = machine if self.has_gpu else f"{machine}; **there was no GPU**"
        page = f"# {title}\n\n{where}. {text}\n\n{markdown_table(rows)}"
        (self.output / f"{name}.md").write_text(page)
        write_csv(self.output / f"{name}.csv", rows)

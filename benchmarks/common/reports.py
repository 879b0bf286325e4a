"""Reports, as they are printed and written."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.common.command_line import Options
from benchmarks.common.machine import describe_machine


def write_report(
    options: Options, text: str, setting: object, pictures: Mapping[str, str] | None = None
) -> None:
    """Prints a report and writes it to report.md; its last line says how it came about.

    Args:
        options: The command line.
        text: Markdown.
        setting: How large the experiment is.
        pictures: From the names of files that may lie beside the report to their captions, whose
            first sentence stands for the picture where it cannot be seen.
    """
    size = " --smoke" if options.smoke else " --full" if options.full else ""
    command = f"python -m benchmarks.{options.name}{size}"
    drawn = {
        name: said for name, said in (pictures or {}).items() if (options.output / name).exists()
    }
    if drawn:
        text += "\n## Pictures\n"
    for name, said in drawn.items():
        text += f"\n![{said.partition('. ')[0].rstrip('.')}]({name})\n\n*{said}*\n"
    text += f"\n`{command}`, {setting}, on {describe_machine()}.\n"
    print(text)
    (options.output / "report.md").write_text(text)

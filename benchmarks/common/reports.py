"""Reports, as they are printed and written."""

from __future__ import annotations

from benchmarks.common.command_line import Options
from benchmarks.common.machine import describe_machine


def write_report(options: Options, text: str, setting: object) -> None:
    """Prints a report and writes it to report.md; its last line says how it came about.

    Args:
        options: The command line.
        text: Markdown.
        setting: How large the experiment is.
    """
    size = " --smoke" if options.smoke else " --full" if options.full else ""
    command = f"python -m benchmarks.{options.name}{size}"
    text += f"\n`{command}`, {setting}, on {describe_machine()}.\n"
    print(text)
    (options.output / "report.md").write_text(text)

"""The code blocks of a page, run by ``python tests/documentation/run_examples.py README.md``.

In an environment that has the wheel, from a folder where the checkout cannot be imported, this
shows that the wheel is whole.
"""

import re
import sys
from pathlib import Path

# A Python code block, and what it prints: the block of text below it, where there is one.
_BLOCK = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", flags=re.DOTALL | re.MULTILINE
)


def examples_with_output(page: Path) -> list[tuple[str, str]]:
    """The Python code blocks of a Markdown page, each with what the page says that it prints; an
    empty text where the page does not say it."""
    return _BLOCK.findall(page.read_text())


def examples(page: Path) -> list[str]:
    """The Python code blocks of a Markdown page."""
    return [code for code, _ in examples_with_output(page)]


def main(page: Path) -> None:
    """Runs all of them, with a package that lies in this environment."""
    import botorch_ext

    place = Path(botorch_ext.__file__)
    if not place.is_relative_to(sys.prefix):
        raise SystemExit(f"botorch_ext must come from {sys.prefix}, got {place}")
    blocks = examples(page)
    for code in blocks:
        exec(compile(code, page.name, "exec"), {})
    sys.stdout.write(f"{len(blocks)} examples of {page.name} ran with {place}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

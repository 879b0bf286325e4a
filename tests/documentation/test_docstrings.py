"""The reference is complete: arguments and returned values are said, and examples print what they
say."""

import doctest
import enum
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
API = DOCS / "api"
LEFT_OUT = run_path(str(DOCS / "_extensions" / "left_out.py"))["LEFT_OUT"]

PAGES = sorted(page.stem for page in API.glob("*.md"))

DIRECTIVE = re.compile(
    r"^\.\. auto(module|class|function|summary):: ?(\S*)((?:\n {3}.*|\n(?=\n {3}))*)", re.MULTILINE
)
# These decide which module later names of a page belong to.
CURRENT = re.compile(r"^\.\. (?:currentmodule|automodule):: (\S+)", re.MULTILINE)
# A first sentence that names what is returned, which a section would repeat.
NAMES_ITS_VALUE = ("A", "An", "How", "The", "Whether")
# A docstring that says where its arguments are explained.
REFERS = re.compile(r"[Aa]rguments (are those of|as for) ")


def _found(name: str, module: str) -> Any:
    """What a page means by a full name, or by one of the module it has named last."""
    owner, _, last = name.rpartition(".")
    return getattr(import_module(owner or module), last)


def _option(options: str, name: str) -> set[str] | None:
    """The names after an option of a directive; None where the option is missing."""
    found = re.search(rf":{name}:((?:(?!\n +:)[^:])*)", options)
    return None if found is None else set(found[1].replace(",", " ").split())


def _shown(page: str) -> Iterator[tuple[str, Any, set[str]]]:
    """What a page shows, each with the names of its members that are shown."""
    text = (API / f"{page}.md").read_text()
    current = [(match.start(), match[1]) for match in CURRENT.finditer(text)]
    for match in DIRECTIVE.finditer(text):
        kind, name, options = match.groups()
        before = [module for start, module in current if start < match.start()]
        if kind == "summary":
            for each in re.findall(r"^ {3}(\w+)$", options, re.MULTILINE):
                value = _found(each, before[-1])
                left_out = LEFT_OUT.get(f"{before[-1]}.{each}", ())
                yield each, value, _public(value) - set(left_out)
        elif kind == "module":
            if "members" in options:
                module = import_module(name)
                own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == name]
                named = getattr(module, "__all__", [n for n in own if not n.startswith("_")])
                for each in sorted({*named} - (_option(options, "exclude-members") or set())):
                    yield each, getattr(module, each), _public(getattr(module, each))
        else:
            value = _found(name, before[-1] if before else "")
            members = _option(options, "members")
            if members == set():
                members = _public(value) - (_option(options, "exclude-members") or set())
            yield name, value, members or set()


def _public(value: Any) -> set[str]:
    """The members of a class that a page shows unless it names them."""
    return {name for name in getattr(value, "__dict__", ()) if not name.startswith("_")}


def documented(page: str) -> Iterator[tuple[str, Any]]:
    """Full names and objects: functions, classes and methods."""
    for name, value, members in _shown(page):
        if inspect.isroutine(value):
            yield name, value
        elif inspect.isclass(value):
            yield name, value
            for member in sorted(members):
                raw = inspect.getattr_static(value, member)
                function = getattr(raw, "__func__", raw)
                if inspect.isfunction(function) and function.__doc__:  # others are not shown
                    yield f"{name}.{member}", function


def _section(docstring: str, name: str) -> str:
    """What is indented below the heading of a section, or nothing."""
    match = re.search(rf"^{name}:\n((?:[ ]+.*\n?|\n)*)", docstring, re.MULTILINE)
    return "" if match is None else match[1]


def _parameters(value: Any) -> list[str]:
    """The arguments that a caller passes."""
    if inspect.isclass(value):
        if issubclass(value, enum.Enum | BaseException) or getattr(value, "_is_protocol", False):
            return []
        value = value.__init__
        if value is object.__init__:
            return []
    parameters = inspect.signature(value).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        p.name
        for p in parameters
        if p.name not in ("self", "cls") and not p.name.startswith("_") and p.kind not in variadic
    ]


def _lacking(value: Any) -> list[str]:
    """What the docstring of a class or function does not say."""
    docstring = inspect.cleandoc(value.__doc__ or "")
    entries = re.findall(r"^ {4}([\w, ]+):", _section(docstring, "Args"), re.MULTILINE)
    described = {name for entry in entries for name in re.split(", *", entry)}
    lacking = []
    if not REFERS.search(docstring):
        lacking = [name for name in _parameters(value) if name not in described]
    if inspect.isclass(value):
        return lacking
    returned = str(inspect.signature(value).return_annotation)
    if returned not in ("None", "NoReturn") and not _section(docstring, "Returns"):
        is_named = docstring.split(maxsplit=1)[0] in NAMES_ITS_VALUE
        if not is_named or ("Tensor" in returned and "``" not in docstring):
            lacking.append("Returns")
    return lacking


def test_docstrings_say_what_goes_in_and_what_comes_out():
    lacking = {name: _lacking(value) for page in PAGES for name, value in documented(page)}
    assert len(lacking) > 10 * len(PAGES)
    assert {name: what for name, what in lacking.items() if what} == {}


def test_what_a_docstring_lacks_is_noticed():
    def function(x, y=1) -> int:
        """Adds.

        Args:
            x: A number.
        """

    assert _lacking(function) == ["y", "Returns"]


def _examples(page: str) -> list[doctest.DocTest]:
    find = doctest.DocTestFinder(recurse=False).find
    tests = [test for name, value in documented(page) for test in find(value, name, globs={})]
    return [test for test in tests if test.examples]


@pytest.mark.parametrize("page", ["acquisition", "algorithms"])
def test_functions_and_classes_that_users_call_have_an_example(page):
    with_example = {test.name for test in _examples(page)}
    assert {name for name, _ in documented(page) if "." not in name} <= with_example


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_examples_print_what_they_say(page):
    runner, printed = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS), []
    for test in _examples(page):
        runner.run(test, out=printed.append)
    assert "".join(printed) == ""

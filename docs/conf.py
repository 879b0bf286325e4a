"""Settings of the pages, built by ``make docs``.

Sphinx, because it reads the docstrings as they are (Google style, names in single backticks become
links), resolves every link between pages, docstrings and notebooks, and can make each warning an
error; MyST-NB, so that pages are Markdown and notebooks appear with the outputs they were stored
with. Nothing is fetched by a reader's browser: system fonts, formulas drawn at build time.
"""

import shutil
import sys
from importlib import metadata
from pathlib import Path

from botorch_ext import algorithms

_DOCS = Path(__file__).parent
sys.path.insert(0, str(_DOCS / "_extensions"))

from left_out import LEFT_OUT  # noqa: E402  (a module of that folder)

shutil.rmtree(_DOCS / "api" / "names", ignore_errors=True)  # autosummary writes them

# Pages link to notebooks and results, and Sphinx knows only what lies beside the pages.
for source, kinds in (("notebooks", ("*.ipynb",)), ("benchmarks/results", ("*.md", "*.png"))):
    copy = _DOCS / Path(source).name
    shutil.rmtree(copy, ignore_errors=True)
    for kind in kinds:
        for file in (_DOCS.parent / source).rglob(kind):
            place = copy / file.relative_to(_DOCS.parent / source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, place)  # with its time of change, by which Sphinx knows what is new

# Nothing is there for its link to lead to.
changes = (_DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
changes = changes.replace("[CONTRIBUTING](CONTRIBUTING.md#what-stays-compatible)", "CONTRIBUTING")
changes = changes.replace("](docs/", "](../")
(_DOCS / "history").mkdir(exist_ok=True)
(_DOCS / "history" / "changelog.md").write_text(changes, encoding="utf-8")

# Sphinx takes defaults from the source, where shared arguments of these functions are ``**given``.
for name in algorithms.__all__:
    del getattr(algorithms, name).__wrapped__

project = "botorch_ext"
author = "the botorch_ext developers"
copyright = author  # the name Sphinx reads
version = release = metadata.version("botorch-ext")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "build_time_katex",
    "docstrings",
    "links_to_reference",
]
templates_path = ["_templates"]
autosummary_context = {"left_out": LEFT_OUT}
exclude_patterns = ["_build", "_templates", "**/.ipynb_checkpoints", "**/__pycache__"]

# Pages and notebooks
nb_execution_mode = "off"
nb_merge_streams = True
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

# Docstrings
default_role = "py:obj"
smartquotes_action = "De"  # dashes and dots; what is quoted in a docstring is an argument
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_class_signature = "mixed"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
add_module_names = False
toc_object_entries_show_parents = "hide"

# The look
html_theme = "furo"
html_title = "botorch_ext"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_math_renderer = "katex"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "github-dark"


def _from_the_copies(app, docname, source):
    """Links of the pages lead to where things lie in the repository; here they lie beside them."""
    source[0] = source[0].replace("](../benchmarks/results/", "](results/")
    source[0] = source[0].replace("](../notebooks/", "](notebooks/")
    source[0] = source[0].replace("](../CHANGELOG.md)", "](history/changelog.md)")


def setup(app):
    """Reads pages with their links turned to the copies."""
    app.connect("source-read", _from_the_copies)

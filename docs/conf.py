"""Sphinx configuration."""

import os
import re
from typing import Any

import udfdask

project = "udfdask"
author = "the udfdask developers"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx names it
version = release = udfdask.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # numpydoc's Parameters sections say it with shapes and units
autodoc_member_order = "bysource"
autosummary_generate = True
autosummary_ignore_module_all = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# pictures are made by the code that is shown
plot_include_source = True
plot_formats = [("png", 120)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_rcparams = {"font.size": 8, "image.cmap": "viridis"}

# Fetching inventories needs the network, which a build in a clone should not.
if os.environ.get("UDFDASK_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "dask": ("https://docs.dask.org/en/stable", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "python": ("https://docs.python.org/3", None),
    }

html_theme = "furo"
html_title = "udfdask"
html_static_path = ["_static"]
html_css_files = ["pages.css"]


LITERAL_OR_STAR = re.compile(r"(`+.*?`+)|(?:(?<=\()|(?<=, ))\*(?=[a-z_]+[,) ])")


def escape_stars_in_shapes(
    _app: Any, _what: str, _name: str, _obj: Any, _opts: Any, lines: Any
) -> None:
    """Keep the stars of `array, shape (*nav, *sig)` from being read as emphasis."""
    lines[:] = [LITERAL_OR_STAR.sub(lambda m: m[1] or r"\*", line) for line in lines]


def setup(app: Any) -> None:
    """Run before numpydoc, which has the default priority of 500."""
    app.connect("autodoc-process-docstring", escape_stars_in_shapes, priority=400)

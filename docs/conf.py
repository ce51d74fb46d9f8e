"""Sphinx configuration."""

import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import udfdask

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "extensions"))

import gallery_figures  # noqa: E402 - these are in docs/extensions
import public_names  # noqa: E402

project = "udfdask"
author = "the udfdask developers"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx names it
version = release = udfdask.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_nb",  # notebooks, and the Markdown of all pages
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "reference_directives",  # in docs/extensions
]
templates_path = ["_templates"]
exclude_patterns = [
    "_build",
    "gallery",  # the scripts of the pages in examples/
    "examples/**.ipynb",
    "examples/**.py",
]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# The tutorials are in notebooks/, where people look for them; Sphinx reads only its own folder.
# Their links to ../docs/ are right in both places.
for copy in (DOCS / "tutorials").glob("*.ipynb"):
    copy.unlink()  # its notebook can have another name now
for notebook in (ROOT / "notebooks").glob("*.ipynb"):
    copied = notebook.read_text(encoding="utf-8").replace("](../docs/", "](../")
    (DOCS / "tutorials" / notebook.name).write_text(copied, encoding="utf-8")
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

autodoc_typehints = "none"  # numpydoc's Parameters sections say it with shapes and units
autodoc_member_order = "bysource"
autosummary_generate = True
default_role = "py:obj"  # `Result` in a docstring is a link, and `self.params` is code
autosummary_ignore_module_all = False
autosummary_context = public_names.template_context()
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# pictures are made by the code that is shown
plot_include_source = True
plot_formats = [("png", 120)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_rcparams = {"font.size": 8, "image.cmap": "viridis"}

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["examples"],
    "filename_pattern": r"\.py$",  # run each of them
    "abort_on_example_error": True,
    # the sections, in the order in which one learns
    "subsection_order": [
        "gallery/detectors",
        "gallery/patterns",
        "gallery/phases",
        "gallery/corrections",
        "gallery/neighbors",
        "gallery/own_functions",
        "gallery/running",
        "gallery/libraries",
    ],
    "image_scrapers": ("gallery_figures",),
    "image_srcset": ["2x"],
    "capture_repr": (),  # pictures alone, no text such as <Figure ...>
    "min_reported_time": 1e6,  # pages do not change with the speed of the machine
    "download_all_examples": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
}
# it tells that Agg shows no windows, which is what a build wants
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# Copied code is the lines after prompts; without a prompt, all lines. Output has no button.
copybutton_prompt_text = r">>> |\.\.\.(?: |$)|\$ "
copybutton_prompt_is_regexp = True
copybutton_copy_empty_lines = False
copybutton_line_continuation_character = "\\"
copybutton_exclude = ".linenos, .go"
copybutton_selector = "div:not(.output):not(.sphx-glr-script-out) > div.highlight > pre"

# Fetching inventories needs the network, which a build in a clone should not.
if os.environ.get("UDFDASK_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "dask": ("https://docs.dask.org/en/stable", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "python": ("https://docs.python.org/3", None),
    }

html_theme = "pydata_sphinx_theme"
html_title = "udfdask"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
# These pages have no pages next to them, so that their sidebar would be empty.
html_sidebars = {page: [] for page in ("changelog", "cite", "how-do-i")}
html_theme_options = {
    "logo": {"text": "udfdask"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


LITERAL_OR_STAR = re.compile(r"(`+.*?`+)|(?:(?<=\()|(?<=, ))\*(?=[a-z_]+[,) ])")


def escape_stars_in_shapes(
    _app: Any, _what: str, _name: str, _obj: Any, _opts: Any, lines: Any
) -> None:
    """Keep the stars of `array, shape (*nav, *sig)` from being read as emphasis."""
    lines[:] = [LITERAL_OR_STAR.sub(lambda m: m[1] or r"\*", line) for line in lines]


SITE_PATHS = (
    (re.compile(r"\]\(\.\./((?:\.\./)*)notebooks/"), r"](\1tutorials/"),
    (re.compile(r"\]\(((?:\.\./)*)gallery/([\w/]+)\.py\)"), r"](\1examples/\2)"),
    (re.compile(r"\]\(((?:\.\./)*)gallery/\)"), r"](\1examples/index)"),
)
"""Links to files of the repository whose pages are elsewhere: notebooks, and scripts."""


def lead_to_pages(_app: Any, _page: str, source: list[str]) -> None:
    """Replace links to notebooks and scripts of the gallery with links to their pages."""
    for pattern, page in SITE_PATHS:
        source[0] = pattern.sub(page, source[0])


def cut_thumbnails(_app: Any) -> None:
    """Cut the thumbnails of the gallery, after the gallery is made."""
    gallery_figures.cut_thumbnails(DOCS / "examples")


def setup(app: Any) -> None:
    """Run before numpydoc and after sphinx-gallery, which have the default priority of 500."""
    app.connect("autodoc-process-docstring", escape_stars_in_shapes, priority=400)
    app.connect("builder-inited", cut_thumbnails, priority=600)
    app.connect("source-read", lead_to_pages)

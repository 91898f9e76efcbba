"""The documentation site: `make docs` writes it to build/docs, without a network; a warning is an error."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "extensions")]

from pygments.lexers.python import PythonLexer  # noqa: E402
from sphinx.application import Sphinx  # noqa: E402
from sphinx.environment import BuildEnvironment  # noqa: E402
from sphinx.highlighting import lexers  # noqa: E402

from sweeplib import __version__  # noqa: E402
from sweeplib.engine.storage.records.provenance import version as version_and_commit  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REPOSITORY = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]

project, author, copyright = "sweeplib", "the sweeplib developers", "the sweeplib developers"  # noqa: A001
version = release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "claims", "docstrings", "mathematics", "notebook_runs", "source_pages"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 900
nb_execution_raise_on_error = True
nb_output_stderr = "remove"  # what is compiled and how far a run is differs from build to build
nb_merge_streams = True
suppress_warnings = ["myst.strikethrough"]
lexers["snakemake"] = PythonLexer()
default_role = "code"
language = "en"
smartquotes = False

autodoc_typehints = "none"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_title = f"sweeplib {__version__}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_favicon = "static/icon.svg"  # else each page asks for one that is not there
html_copy_source = False
html_show_sourcelink = False
html_last_updated_fmt = None
html_context = {"default_mode": "auto"}
WITHOUT_SECTIONS = (
    "tutorial*",
    "theory",
    "expectations",
    "numerics",
    "statistics",
    "gallery*",
    "performance",
    "comparison",
    "faq",
    "changes",
    "cite",
    "notebooks/claims",
    "source/**",
)
DEVELOPERS = ("architecture", "decisions", "style")
"""Pages that the search leaves out."""
html_sidebars: dict[str, list[str]] = {page: [] for page in WITHOUT_SECTIONS}
html_show_sphinx = False
html_theme_options = {
    "announcement": f"This site documents sweeplib {version_and_commit()}.",
    "header_links_before_dropdown": 8,
    "navigation_depth": 2,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "icon_links": [{"name": "Source", "url": REPOSITORY, "icon": "fa-solid fa-code-branch"}] if REPOSITORY else [],
}


def leave_out(_app: Sphinx, env: BuildEnvironment) -> None:
    """Leave the pages of developers out of the search."""
    for page in DEVELOPERS:
        env.metadata[page]["nosearch"] = ""


def setup(app: Sphinx) -> None:
    """Do so when all pages are read."""
    app.connect("env-updated", leave_out)

"""How Sphinx builds these pages: `sphinx-build -W docs docs/build`."""

import sys
from pathlib import Path

import walklearn

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "walklearn"
author = "The walklearn authors"
copyright = "the walklearn authors. Apache 2.0"
version = release = walklearn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "myst_parser",
    "sphinx.ext.napoleon",
    "as_written",
    "notebook_pages",
    "command_help",
]
exclude_patterns = ["build", "extensions"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

default_role = "py:obj"  # `simulate` in a docstring is a link where there is one to make
napoleon_google_docstring = False
napoleon_use_rtype = False
nitpicky = True  # names that begin with walklearn must lead somewhere
autosummary_generate = False
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 80
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "walklearn"
html_static_path = ["static"]
html_css_files = ["walklearn.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"

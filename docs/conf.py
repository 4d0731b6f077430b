"""The site of the documentation: `make docs` builds it from these pages into build/docs."""

from __future__ import annotations

import re

from pygments.lexers.data import JsonLexer
from pygments.lexers.special import TextLexer
from pygments.lexers.sql import SqlLexer
from sphinx.application import Sphinx

project = "Weir"
html_title = "Weir"
extensions = ["myst_parser"]
html_theme = "furo"
html_show_copyright = False
html_show_sphinx = False
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
root_doc = "index"
exclude_patterns = ["*.py"]
highlight_language = "none"

_LEADS_OUT = re.compile(
    r"\[([^\]]*)\]\((?:\.\./)+(?:README|CONTRIBUTING|SECURITY|CHANGELOG|examples|benchmarks)[^)]*\)"
)


class WeirLexer(SqlLexer):
    """Colours scripts as SQL."""

    name = "Weir"
    aliases = ("weir",)


def _only_inside(_app: Sphinx, _docname: str, source: list[str]) -> None:
    """Make plain text of links that lead out of docs/, to what the site does not have."""
    source[0] = _LEADS_OUT.sub(r"\1", source[0])


def setup(app: Sphinx) -> None:
    """Tell Sphinx of the language's colours, and of links that lead elsewhere."""
    app.add_lexer("weir", WeirLexer)
    app.add_lexer("jsonl", JsonLexer)
    app.add_lexer("csv", TextLexer)
    app.connect("source-read", _only_inside)

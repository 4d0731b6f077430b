"""The page as one HTML document with its styles and scripts, and with or without a view.

Rules
1. The document loads nothing, and its content security policy enforces this: only this style and
   these scripts are used, and only a served page sends requests, to its own server.
2. The view is data, in an element that browsers do not run, with every `<` escaped. The scripts
   turn it into text nodes and attributes, never into markup.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from html import escape

import msgspec

from weir.page.page_files import asset
from weir.page.view import PageView

_SCRIPTS = ("dom.js", "graph.js", "charts.js", "timeline.js", "tables.js", "page.js")


@cache
def _parts() -> tuple[str, str, str]:
    """Return the style, the script and the body."""
    style = asset("look.css") + asset("page.css")
    script = '(() => {\n"use strict";\n' + "".join(map(asset, _SCRIPTS)) + "})();\n"
    return style, script, asset("page.html")


def report_page(view: PageView) -> str:
    """Make the page of a view, as a static file."""
    data = msgspec.json.encode(view).decode().replace("<", "\\u003c")
    return _document(f"{view.title} · Weir", data, "'none'")


@cache
def live_page() -> str:
    """Make the page that requests views from its server."""
    return _document("Weir", "", "'self'")


def _document(title: str, data: str, connects: str) -> str:
    style, script, body = _parts()
    policy = (
        f"default-src 'none'; style-src 'sha256-{_hash(style)}'; "
        f"script-src 'sha256-{_hash(script)}'; connect-src {connects}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}"
        f'<script type="application/json" id="view">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

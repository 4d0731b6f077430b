"""A handler that changes only what a state gave it is warned about: the state stays as it is."""

from __future__ import annotations

import warnings

import pytest

from handler_apps import app_of
from weir import PlanWarning
from weir.handlers.reading.analysis import analyse_app

STATES = """
pages = app.state('pages', default=[], type='LIST(BIGINT)', key='BIGINT')
point = app.state('point', default={'n': 0}, type='STRUCT(n BIGINT)', key='BIGINT')

@app.on(n)
def h(e):
"""


def warned(body: str) -> list[str]:
    app = app_of(STATES + "".join(f"    {line}\n" for line in body.split("\n")))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        analyse_app(app)
        analyse_app(app)
    return [str(w.message) for w in caught if issubclass(w.category, PlanWarning)]


@pytest.mark.parametrize(
    "body",
    [
        "pages.get(e.a).append(1)",
        "pages.get(e.a)[0] = 1",
        "pages.get(e.a)[0] += 1",
        "del pages.get(e.a)[0]",
        "point.get(e.a).n = 5",
        "if e.a:\n    pages.get(e.a).sort()",
    ],
)
def test_a_change_of_a_copy_is_warned_about_once(body: str) -> None:
    (message,) = warned(body)
    assert "changes a copy of what" in message
    assert "to change it" in message
    line = body.split("\n")[-1].strip()
    assert f"`{line}`" in message


@pytest.mark.parametrize(
    "body",
    [
        "xs = pages.get(e.a)\nxs.append(1)\npages.set(e.a, xs)",
        "pages.append(e.a, 1)",
        "app.emit('x', v=sorted(pages.get(e.a)))",
        "xs = [1]\nxs.append(2)",
    ],
)
def test_what_is_meant_is_not(body: str) -> None:
    assert warned(body) == []

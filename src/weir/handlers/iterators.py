"""Iterators are no values: they are used up where they are first gone through.

A tree may be evaluated twice, or once for two places. So a call that takes an iterator is called
as a whole (`outlining.py`), and an iterator that a variable holds is refused.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re

from weir.handlers.bindings import mentions
from weir.handlers.frames import Frame
from weir.handlers.reach import attribute

_ITERATORS = (map, filter, zip, enumerate, reversed, iter, re.finditer)
_METHODS = frozenset(("finditer", "scanner"))


def is_iterator(function: object) -> bool:
    """Tell whether a function gives an iterator."""
    if any(function is known for known in _ITERATORS) or inspect.isgeneratorfunction(function):
        return True
    return isinstance(function, type) and function.__module__ == itertools.__name__


def gives_iterator(frame: Frame, node: ast.expr) -> bool:
    """Tell whether an expression is a call that gives an iterator."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        return True
    for mention in mentions([node.func]):
        thing = frame.thing(mention.name)
        for name in mention.attributes:
            thing = attribute(thing, name)
        return is_iterator(thing)
    return False

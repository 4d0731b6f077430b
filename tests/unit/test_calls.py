"""Calls of the package's classes and functions with more than four arguments use keywords."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "weir"
PACKAGES = ("job", "runtime", "spark", "simulator", "reliable", "ingress", "local", "page")
MOST = 4


def own_names() -> set[str]:
    """The classes and functions of the package, without compiled loops: these take no keywords."""
    names, loops = set(), set()
    for path in SRC.rglob("*.py"):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                (loops if path.stem.endswith("_loops") else names).add(node.name)
    return names - loops


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def long_calls(tree: ast.Module, names: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            callee, arguments = node.func, node.args
            if isinstance(callee, ast.Name) and callee.id == "partial":
                callee, arguments = arguments[0], arguments[1:]
            is_own = isinstance(callee, ast.Name) and callee.id in {*names, "cls"}
            is_own |= isinstance(callee, ast.Attribute) and callee.attr in names
            spreads = any(isinstance(argument, ast.Starred) for argument in arguments)
            if is_own and len(arguments) + spreads > MOST:
                yield node


def test_calls_with_many_arguments_use_keywords() -> None:
    names = own_names()
    assert len(names) > 3000
    wrong = [
        f"{path.relative_to(SRC)}:{call.lineno}"
        for package in PACKAGES
        for path in (SRC / package).rglob("*.py")
        for call in long_calls(parsed(path), names)
    ]
    assert wrong == []


def test_the_rule_itself() -> None:
    calls = "f(1, 2, 3, 4, 5)", "f(1, 2, 3, *a)", "x.f(1, 2, 3, 4, 5)", "partial(f, 1, 2, 3, 4, 5)"
    for call in calls:
        assert [*long_calls(ast.parse(call), {"f"})], call
    for call in ("f(1, 2, 3, 4)", "f(a=1, b=2, c=3, d=4, e=5)", "g(1, 2, 3, 4, 5)"):
        assert not [*long_calls(ast.parse(call), {"f"})], call

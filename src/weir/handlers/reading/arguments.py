"""The arguments of a call, and how they are bound to a function's parameters."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType

from weir.handlers.reading.execution import Execution, NotListed
from weir.handlers.reading.frames import Frame
from weir.handlers.reading.symbols import Symbol, WrittenOut, as_tree
from weir.handlers.reading.targets import spread_out
from weir.handlers.trees.values import Const, Op, Tree


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The arguments of a call: by position, then by name."""

    plain: tuple[Symbol, ...]
    keywords: Mapping[str, Symbol] = field(default_factory=dict)

    def after(self, *first: Symbol, keywords: Mapping[str, Symbol] | None = None) -> CallArguments:
        """Return these arguments with others in front."""
        return replace(
            self, plain=(*first, *self.plain), keywords={**(keywords or {}), **self.keywords}
        )

    def data(
        self, run: Execution, frame: Frame, node: ast.AST
    ) -> tuple[tuple[Tree, ...], tuple[tuple[str, Tree], ...]]:
        """Return the arguments as trees."""
        plain = tuple(run.data(frame, a, node) for a in self.plain)
        named = tuple((name, run.data(frame, a, node)) for name, a in self.keywords.items())
        return plain, named


def called_with(run: Execution, frame: Frame, node: ast.Call) -> CallArguments:
    """Evaluate the arguments of a call, from left to right."""
    plain: list[Symbol] = []
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            spread = spread_out(run, run.value(frame, arg.value, consumed=True), arg.lineno)
            if spread is None:
                why = "how many arguments `*` gives depends on the event"
                raise NotListed(why, arg)
            plain += spread
        else:
            plain.append(run.value(frame, arg))
    keywords: dict[str, Symbol] = {}
    for keyword in node.keywords:
        if keyword.arg is not None:
            named = {keyword.arg: run.value(frame, keyword.value)}
        else:
            named = _spread_names(run, frame, keyword.value)
        if keywords.keys() & named.keys():
            raise NotListed("an argument is passed twice", node)
        keywords |= named
    return CallArguments(tuple(plain), keywords)


def _spread_names(run: Execution, frame: Frame, node: ast.expr) -> dict[str, Symbol]:
    """Return the arguments that `**` passes."""
    match run.value(frame, node):
        case Op(name="dict", args=args):
            names = [a.value if isinstance(a, Const) else None for a in args[::2]]
            if all(isinstance(name, str) for name in names):
                return dict(zip(map(str, names), args[1::2], strict=True))
        case Const(value=dict() as mapping) if all(isinstance(name, str) for name in mapping):
            return {name: Const(value, line=node.lineno) for name, value in mapping.items()}
    raise NotListed("which arguments `**` gives depends on the event", node)


def bound_arguments(
    definition: ast.FunctionDef | ast.Lambda,
    call: CallArguments,
    defaults: Mapping[str, Symbol],
    name: str,
    frame: Frame,
    node: ast.AST,
) -> dict[str, Symbol]:
    """Bind a call's arguments to a function's parameters; raise an error if they do not fit."""
    arguments = definition.args
    plain = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    keyword_names = {*plain[len(arguments.posonlyargs) :], *(a.arg for a in arguments.kwonlyargs)}
    bound: dict[str, Symbol] = dict(zip(plain, call.plain, strict=False))
    extra = call.plain[len(plain) :]
    if arguments.vararg is not None:
        bound[arguments.vararg.arg] = WrittenOut("tuple", extra)
    elif extra:
        message = f"{name}() takes {len(plain)} arguments, not {len(call.plain)}"
        raise frame.file.error(message, node)
    others: list[Tree] = []
    for keyword, symbol in call.keywords.items():
        if keyword in keyword_names and keyword not in bound:
            bound[keyword] = symbol
        elif keyword in keyword_names or arguments.kwarg is None:
            what = "twice" if keyword in bound else "that it does not take"
            raise frame.file.error(f"{name}() gets `{keyword}` {what}", node)
        else:
            tree = as_tree(symbol)
            if tree is None:
                raise NotListed(f"`{keyword}` goes to `**{arguments.kwarg.arg}`", node)
            others += (Const(keyword), tree)
    if arguments.kwarg is not None:
        bound[arguments.kwarg.arg] = Op("dict", tuple(others))
    for missing in (n for n in (*plain, *keyword_names) if n not in bound):
        if missing not in defaults:
            raise frame.file.error(f"{name}() lacks the argument `{missing}`", node)
        bound[missing] = defaults[missing]
    return bound


def default_values(function: FunctionType) -> dict[str, object]:
    """Return the defaults of a function's parameters by name."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    plain = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    return plain | (function.__kwdefaults__ or {})

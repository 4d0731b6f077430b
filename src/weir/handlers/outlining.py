"""Code without accesses that has no form as a tree becomes a Python function of what it reads.

    total = 0                          total = f(e.prices)
    for p in e.prices:        →        def f(prices): total = 0 …; return total
        total += p * p

Contract
1. The function is compiled from the very syntax tree, in the globals of the function that it stands
   in: it does what the code did. There is one for each variable that the code sets, so what nobody
   uses is not computed.
2. Columns of the event and parameters come in as arguments. What it changes in place are values
   that nobody else has (`changes.py` refuses the others).
3. A jump out of the code (return, break, continue) is a value of its own: 0 if there is none.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import replace
from types import CodeType, FunctionType, MethodType
from typing import Any
from weakref import WeakValueDictionary

from weir.handlers.bindings import assigned_names, mentions
from weir.handlers.changes import IN_PLACE, MUTATORS, changed_arguments, changed_around, root_name
from weir.handlers.execution import Execution, NotAccesses
from weir.handlers.forbidden import full_name
from weir.handlers.frames import RETURNED, Exits, Frame, Path
from weir.handlers.insides import is_users
from weir.handlers.one_round import round_of
from weir.handlers.parameters import AppParam, param_name
from weir.handlers.reach import attribute
from weir.handlers.symbols import Known, LocalFunction, TheEvent, Unusable, op
from weir.handlers.values import Const, Field, Instant, Python, Tree
from weir.plan.imported_files import carried

_RETURNS, _CONTINUES, _BREAKS = 1, 2, 3
_EXIT = "exit"
_LOAD = ast.Load()
_functions: WeakValueDictionary[tuple[object, ...], FunctionType] = WeakValueDictionary()
"""Those that were made, by their code: the same code is the same function, so that plans of two
analyses are equal where they do the same."""


def expression(run: Execution, frame: Frame, node: ast.expr) -> Tree:
    """Return an expression as a call of a function that computes it."""
    if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node)):
        raise NotAccesses("`:=` in an expression that is called as a whole", node, frame)
    statement = ast.copy_location(ast.Return(node), node)
    made = _Outline(run, frame, [statement]).value(RETURNED, node)
    return replace(made, like=round_of(run, frame, node, made.args))


def statement(run: Execution, frame: Frame, node: ast.stmt, path: Path) -> Exits:
    """Run a statement as functions: one for each variable that it sets, one for its jumps."""
    outline = _Outline(run, frame, [node])
    changed = {
        name: before
        if isinstance(before := path.variables.get(name), Unusable)
        else outline.value(name, node)
        for name in sorted({*assigned_names([node]), *changed_in_place(run, frame, [node])})
    }
    after = Path(path.conditions, {**path.variables, **changed})
    jumps = _jumps(node)
    if not jumps:
        return Exits(falls=after)
    exit_code = outline.value(_EXIT, node)
    line = node.lineno

    def when(code: int) -> Path:
        return after.when(op("eq", exit_code, Const(code), line=line))

    exits = Exits(falls=when(0))
    if any(isinstance(j, ast.Return) for j in jumps):
        value = outline.value(RETURNED, node)
        exits.returns = (Path(when(_RETURNS).conditions, {RETURNED: value}),)
    if any(isinstance(j, ast.Continue) for j in jumps):
        exits.continues = (when(_CONTINUES),)
    if any(isinstance(j, ast.Break) for j in jumps):
        exits.breaks = (when(_BREAKS),)
    return exits


# --- jumps ----------------------------------------------------------------------------------


def exit_code(run: Execution, frame: Frame, node: ast.stmt) -> Tree:
    """Return how a statement is left, as a number: to compute it is to run the statement."""
    return _Outline(run, frame, [node]).value(_EXIT, node)


def _jumps(node: ast.AST, in_loop: bool = False) -> list[ast.AST]:
    """Return the jumps that leave a statement."""
    if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not in_loop):
        return [node]
    if isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
        return []
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        inner = in_loop or isinstance(node, ast.For | ast.While)
        if isinstance(node, ast.For | ast.While) and child in node.orelse:
            inner = in_loop
        found += _jumps(child, inner)
    return found


def changed_in_place(run: Execution, frame: Frame, nodes: Sequence[ast.AST]) -> dict[str, bool]:
    """Return the variables whose values some code may change: `xs.append(x)`, `d[k] = x`, `f(xs)`;
    with whether what lies in them may be changed too."""
    found: dict[str, bool] = {}

    def note(value: ast.expr, *, inside: bool = False) -> None:
        for name in root_name(value) & frame.local_names:
            found[name] = found.get(name, False) or inside or not isinstance(value, ast.Name)

    for node in (n for root in nodes for n in ast.walk(root)):
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in MUTATORS:
                note(value)
            case ast.Call(func=called, args=args) if changes_arguments(run, frame, called):
                for arg in (a for a in args if isinstance(a, ast.Name)):
                    note(arg, inside=True)
            case (
                ast.Subscript(value=value, ctx=ast.Store() | ast.Del())
                | ast.Attribute(value=value, ctx=ast.Store() | ast.Del())
            ):
                note(value)
    return found


def changes_arguments(run: Execution, frame: Frame, called: ast.expr) -> bool:
    """Tell whether a function that some code calls changes its arguments in place."""
    for mention in mentions([called]):
        home = frame.binds(mention.name)
        local = home.variables.get(mention.name) if home is not None else None
        if isinstance(local, LocalFunction):
            return bool(changed_arguments(local.node))
        thing = frame.thing(mention.name)
        for attribute_name in mention.attributes:
            thing = attribute(thing, attribute_name)
        return function_changes(run, thing)
    return False


def function_changes(run: Execution, thing: object) -> bool:
    """Tell whether a function changes its arguments in place."""
    function = thing.__func__ if isinstance(thing, MethodType) else thing
    if isinstance(function, FunctionType) and is_users(function):
        return bool(changed_arguments(run.reach.source(function).node))
    return full_name(thing) in IN_PLACE


class _Outline:
    """An `_Outline` is some code with what it takes: arguments (trees) and known things."""

    def __init__(self, run: Execution, frame: Frame, body: Sequence[ast.stmt]) -> None:
        self._run, self._frame = run, frame
        self._args: dict[str, Tree] = {}
        self._things: dict[str, object] = {}
        self._functions: list[ast.stmt] = []
        self._event = ""
        self._set_first = assigned_names(s.target for s in body if isinstance(s, ast.For))
        for mention in mentions(body):
            self._take(mention.name, mention.attributes, mention.node)
        self._changed = changed_in_place(run, frame, body)
        change = _Inputs(self._event, frame)
        self._body = [change.visit(copy.deepcopy(s)) for s in (*self._functions, *body)]

    def _take(self, name: str, attributes: tuple[str, ...], node: ast.AST) -> None:
        """Note where the value of a name comes from."""
        home = self._frame.binds(name)
        if home is None:
            thing = self._frame.resolve(name)
            if isinstance(thing, AppParam):
                self._args[name] = Const(self._run.params[param_name(thing)])
            return
        symbol = home.variables.get(name)
        match symbol:
            case None:
                return  # it is set by the code itself
            case Unusable() if name in self._set_first:
                return
            case TheEvent() if attributes:
                self._event = name
                column = attributes[0]
                found: Tree = Instant(column) if column in ("vs", "ve") else Field(column)
                self._args[_column_name(name, column)] = found
            case LocalFunction(node=inner, frame=where):
                self._define(name, inner, where, node)
            case Known(thing=thing):
                if self._run.touches_thing(thing):
                    raise NotAccesses(f"`{name}` touches states", node, self._frame)
                self._things[name] = thing
            case _:
                self._args[name] = self._run.data(self._frame, symbol, node)

    def _define(
        self, name: str, inner: ast.FunctionDef | ast.Lambda, where: Frame, node: ast.AST
    ) -> None:
        """Take a function that the code calls along with it."""
        if any(getattr(f, "name", None) == name for f in self._functions):
            return
        if changed_around(inner):
            name = min(changed_around(inner))
            raise NotAccesses(f"a function changes `{name}` around it", node, self._frame)
        if where is not self._frame:
            raise NotAccesses(f"`{name}` stands in another function", node, self._frame)
        if isinstance(inner, ast.FunctionDef):
            self._functions.insert(0, inner)
        else:
            target = ast.Name(name, ast.Store())
            self._functions.insert(0, _located(ast.Assign([target], inner), inner))
        for mention in mentions([inner]):
            if mention.name != name:
                self._take(mention.name, mention.attributes, mention.node)

    def value(self, wanted: str, node: ast.AST) -> Python:
        """Return what a variable is after the code, as a call."""
        jumps = _Jumps(wanted)
        body = [s for old in self._body for s in _as_list(jumps.visit(copy.deepcopy(old)))]
        ends = {_EXIT: ast.Constant(0), RETURNED: ast.Constant(None)}
        end = ends.get(wanted, ast.Name(wanted, _LOAD))
        body.append(_located(ast.Return(end), node))
        line = getattr(node, "lineno", 0)
        label = wanted if wanted.isidentifier() and wanted not in (RETURNED, _EXIT) else "value"
        name = f"{self._frame.name.strip('<>')}_{label}_{line}"
        function = self._compiled(name, body, node)
        return Python(
            carried(function, self._run.app.imported), tuple(self._args.values()), line=line
        )

    def _compiled(self, name: str, body: list[ast.stmt], node: ast.AST) -> FunctionType:
        for changed in (n for n in self._changed if n in self._args):
            # Others may use the value as it was.
            how = "deepcopy" if self._changed[changed] else "copy"
            self._things[f"weir.{how}"] = copy.deepcopy if how == "deepcopy" else copy.copy
            copied = ast.Call(ast.Name(f"weir.{how}", _LOAD), [ast.Name(changed, _LOAD)], [])
            body.insert(0, _located(ast.Assign([ast.Name(changed, ast.Store())], copied), node))
        inner = _definition(name, list(self._args), body)
        outer = _definition("make", list(self._things), [inner, ast.Return(ast.Name(name, _LOAD))])
        for made in (outer, inner):
            ast.copy_location(made, node)
        module = ast.fix_missing_locations(ast.Module([outer], []))
        things = tuple(map(id, self._things.values()))
        which = (ast.dump(module, include_attributes=True), id(self._frame.globals), things)
        if which in _functions:
            return _functions[which]
        try:
            code = compile(module, self._path(), "exec")
        except SyntaxError as error:
            raise NotAccesses(
                f"no function can be made of it: {error}", node, self._frame
            ) from error
        (make,) = (c for c in code.co_consts if isinstance(c, CodeType))
        # In the globals of the user's function, so that it sees what that sees.
        made_function: Any = FunctionType(make, self._frame.globals)(*self._things.values())
        assert isinstance(made_function, FunctionType)
        _functions[which] = made_function
        return made_function

    def _path(self) -> str:
        return str(self._frame.globals.get("__file__", self._frame.file.name))


def _column_name(event: str, column: str) -> str:
    return f"{event}.{column}"  # no variable has such a name


def _definition(name: str, args: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    arguments = ast.arguments([], [ast.arg(a) for a in args], None, [], [], None, [])
    return ast.FunctionDef(name, arguments, body, [])


def _located(made: ast.stmt, node: ast.AST) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(made, node))


class _Inputs(ast.NodeTransformer):
    """Puts arguments in the place of columns, `e.price` → `e_price`, and of `param.value`."""

    def __init__(self, event: str, frame: Frame) -> None:
        self._event, self._frame = event, frame

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name):
            name = node.value.id
            if name == self._event:
                made = ast.Name(_column_name(name, node.attr), node.ctx)
                return ast.copy_location(made, node)
            is_param = node.attr == "value" and self._frame.binds(name) is None
            if is_param and isinstance(self._frame.resolve(name), AppParam):
                return node.value
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == self._event:
            raise NotAccesses("the event is used as a whole", node, self._frame, "name its columns")
        return node


class _Jumps(ast.NodeTransformer):
    """Turns the jumps that leave the code into returns of what is wanted."""

    def __init__(self, wanted: str) -> None:
        self._wanted, self._loops = wanted, 0

    def _left(self, node: ast.stmt, code: int, value: ast.expr | None) -> list[ast.stmt]:
        if self._wanted == RETURNED:
            return [ast.copy_location(ast.Return(value), node)]
        first = [] if value is None else [ast.copy_location(ast.Expr(value), node)]
        wanted = ast.Constant(code) if self._wanted == _EXIT else ast.Name(self._wanted, _LOAD)
        return [*first, ast.copy_location(ast.Return(wanted), node)]

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        return self._left(node, _RETURNS, node.value)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt | list[ast.stmt]:
        return node if self._loops else self._left(node, _CONTINUES, None)

    def visit_Break(self, node: ast.Break) -> ast.stmt | list[ast.stmt]:
        return node if self._loops else self._left(node, _BREAKS, None)

    def _loop(self, node: ast.For | ast.While) -> ast.AST:
        self._loops += 1
        node.body = [s for old in node.body for s in _as_list(self.visit(old))]
        self._loops -= 1
        node.orelse = [s for old in node.orelse for s in _as_list(self.visit(old))]
        return node

    visit_For = _loop  # noqa: N815
    visit_While = _loop  # noqa: N815

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node


def _as_list(made: ast.stmt | list[ast.stmt]) -> list[ast.stmt]:
    return made if isinstance(made, list) else [made]

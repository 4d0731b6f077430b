"""A handler is run symbolically: one `Execution`, whose parts are in modules of their own.

    evaluating.py    expressions → symbols
    calling.py       calls: states, emits, helpers (inlined, or called as they are)
    executing.py     statements → paths
    outlining.py     code without accesses that has no other form → a Python function

`NotAccesses` says that a handler has no form as accesses; it can still run row by row.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from weir.errors import ScriptError
from weir.handlers.accesses import EmitAccess, GetAccess, MergeAccess
from weir.handlers.app import App
from weir.handlers.declarations import EventType, State
from weir.handlers.frames import Conditions, Exits, Frame, Path, all_of
from weir.handlers.reach import Reach, Touched
from weir.handlers.scope import has_old
from weir.handlers.symbols import BoundMethod, Known, LocalFunction, Symbol, TheEvent, as_tree
from weir.handlers.symbols import Unusable as _Unusable
from weir.handlers.values import Const, Python, ReadValue, Tree
from weir.plan.imported_files import carried, carried_global
from weir.plan.states import MergeKind


class NotAccesses(Exception):
    """Says why a handler cannot be compiled to accesses; `app.serial()` runs it row by row."""

    def __init__(self, why: str, node: ast.AST, frame: Frame, hint: str = "") -> None:
        super().__init__(why)
        self.why, self.node, self.frame, self.hint = why, node, frame, hint

    def error(self, handler: str) -> ScriptError:
        way = f"app.serial({handler}) runs it row by row, in one partition"
        hint = f"{self.hint}; or {way}" if self.hint else way
        return self.frame.file.error(self.why, self.node, hint)


class Steps(Protocol):
    """`Steps` are the modules that run the parts of a handler."""

    def evaluate(self, run: Execution, frame: Frame, node: ast.expr) -> Symbol: ...

    def call(self, run: Execution, frame: Frame, node: ast.Call) -> Symbol: ...

    def apply(
        self, run: Execution, frame: Frame, callee: Symbol, args: Sequence[Symbol], node: ast.AST
    ) -> Symbol: ...

    def execute(
        self, run: Execution, frame: Frame, body: Sequence[ast.stmt], path: Path
    ) -> Exits: ...


@dataclass(frozen=True, slots=True)
class EventLoop:
    """An `EventLoop` is `for x in e.list` that accesses stand in."""

    block: int
    over: Tree


@dataclass(frozen=True, slots=True)
class FailingCheck:
    """A `FailingCheck` is `raise` or `assert`: a tree that raises where the conditions hold."""

    at: int
    """The number of accesses before it."""
    tree: Tree
    node: ast.AST
    frame: Frame


@dataclass(slots=True, eq=False)
class Execution:
    """An `Execution` runs one handler for one event type."""

    app: App
    event: EventType
    handler: str
    params: Mapping[str, object]
    reach: Reach
    steps: Steps
    accesses: list[GetAccess | MergeAccess | EmitAccess] = field(default_factory=list)
    conditions: Conditions = ()
    """Those of the path that is being run."""
    loop: EventLoop | None = None
    blocks: int = 0
    merging: State | None = None
    """The state whose merge function is being run."""
    checks: list[FailingCheck] = field(default_factory=list)
    stack: list[ast.AST] = field(default_factory=list)
    """The functions that are being run, the innermost last."""

    def value(self, frame: Frame, node: ast.expr) -> Symbol:
        found = self.steps.evaluate(self, frame, node)
        if isinstance(found, _Unusable):
            raise NotAccesses(f"`{ast.unparse(node)[:40]}`: {found.why}", node, frame)
        return found

    def tree(self, frame: Frame, node: ast.expr) -> Tree:
        """Evaluate what must be data."""
        return self.data(frame, self.value(frame, node), node)

    def data(self, frame: Frame, symbol: Symbol, node: ast.AST) -> Tree:
        """Return a symbol as data; refuse what is none."""
        line = getattr(node, "lineno", 0)
        found = as_tree(symbol, line)
        if isinstance(found, Const):
            named = carried_global(found.value, self.app.imported)
            return found if named is None else Python(named, (), line=line)
        if found is not None:
            return found
        match symbol:
            case TheEvent():
                why, hint = "the event is used as a whole", "name the columns that are needed"
            case Known(thing=State(name=name)) | BoundMethod(of=Known(thing=State(name=name))):
                why, hint = f"the state `{name}` is used as a value", f"{name}.get(key) reads it"
            case Known(thing=App()) | BoundMethod(of=Known(thing=App())):
                why, hint = "the app is used as a value", ""
            case Known(thing=thing):
                if callable(thing) and not self.touches_thing(thing):
                    return Const(carried(thing, self.app.imported), line=line)
                why, hint = "a function that touches states is used as a value", "call it here"
            case LocalFunction():
                why, hint = f"the function `{symbol.name}` is used as a value", "call it here"
            case _:
                why, hint = "what it stands for depends on the event", ""
        raise NotAccesses(why, node, frame, hint)

    @contextmanager
    def attempt(self, frame: Frame) -> Iterator[None]:
        """Take back what was done if it has no form as accesses after all."""
        done, checks = len(self.accesses), len(self.checks)
        before = (self.conditions, self.loop, self.blocks, self.merging, list(self.stack))
        variables = dict(frame.variables)
        try:
            yield
        except NotAccesses:
            del self.accesses[done:], self.checks[checks:]
            self.conditions, self.loop, self.blocks, self.merging, self.stack = before
            frame.variables = variables
            raise

    # --- accesses -------------------------------------------------------------------------

    def read(self, state: State, key: tuple[Tree, ...], node: ast.AST) -> Tree:
        """Note a read; return what it gives."""
        order, line = len(self.accesses), getattr(node, "lineno", 0)
        conditions = tuple(c for c in self.conditions if not has_old(c))
        self.accesses.append(
            GetAccess(
                order=order, handler=self.handler, line=line, guard=all_of(conditions),
                block=self._block, over=self._over, state=state.name, key=key,
            )
        )  # fmt: skip
        return ReadValue(order, line=line)

    def merge(
        self, state: State, key: tuple[Tree, ...], kind: MergeKind, args: tuple[Tree, ...],
        new: Tree | None, node: ast.AST,
    ) -> None:  # fmt: skip
        self.accesses.append(
            MergeAccess(
                order=len(self.accesses), handler=self.handler, line=getattr(node, "lineno", 0),
                guard=all_of(self.conditions), block=self._block, over=self._over,
                state=state.name, key=key, kind=kind, args=args, new=new,
            )
        )  # fmt: skip

    def emit(self, name: str, fields: Sequence[tuple[str, Tree]], node: ast.AST) -> None:
        self.accesses.append(
            EmitAccess(
                order=len(self.accesses), handler=self.handler, line=getattr(node, "lineno", 0),
                guard=all_of(self.conditions), block=self._block, over=self._over,
                name=name, fields=tuple(fields),
            )
        )  # fmt: skip

    @property
    def _block(self) -> int | None:
        return None if self.loop is None else self.loop.block

    @property
    def _over(self) -> Tree | None:
        return None if self.loop is None else self.loop.over

    # --- what code touches ----------------------------------------------------------------

    def touches(self, frame: Frame, nodes: Sequence[ast.AST]) -> Touched:
        """Return what a part of a function may touch, the functions that stand in it included."""
        found = self.reach.of_nodes(nodes, frame.thing, frame.file)
        for name in {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}:
            home = frame.binds(name)
            local = home.variables.get(name) if home is not None else None
            if isinstance(local, LocalFunction) and local.node not in self.stack:
                self.stack.append(local.node)
                found.include(self.touches(local.frame, [local.node]))
                self.stack.pop()
        return found

    def touches_thing(self, thing: object) -> bool:
        return bool(self.reach.of_thing(thing))

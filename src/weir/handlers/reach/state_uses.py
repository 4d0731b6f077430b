"""Finds the states that a handler reads and writes, by its text; this orders the handlers.

Rules
1. Every branch counts, whatever the parameters are. So does every function that the handler
   mentions, with all that it mentions.
2. A state is followed when it is given a name, passed to a user's function, or taken out of a
   tuple, a list, a dict or an object. A variable stands for everything that is ever assigned to it.
3. A call that cannot be followed (an object's `__call__`, a result of a library) counts as reading
   and writing the states that it gets.
4. Any code may call the methods of a class inside of the function. The states that such a class or
   its objects get count as read and written.

A text is walked again as long as a walk adds something to a variable or to a function's result that
had been looked up before. These only grow.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable
from dataclasses import replace
from types import FunctionType, MethodType

from weir.handlers.api.declarations import MERGES, State
from weir.handlers.reach.code_reach import Reach, resolver
from weir.handlers.reach.held_values import (
    NOTHING,
    GivenValues,
    Held,
    Holdable,
    InnerFunction,
    NamePlace,
    ProgramObject,
    StateMethod,
    StateUses,
    attribute_of,
    either,
    has_field,
    held_of,
    is_foreign,
    made_of,
    parts_of,
    property_of,
)
from weir.handlers.reach.object_contents import inside, is_users
from weir.handlers.reading.arguments import default_values
from weir.handlers.reading.bindings import (
    Scoped,
    assigned_names,
    bound_names,
    written_defaults,
)

_RESULT = "return"
"""The name for a function's result: one that no variable can have."""
_BOUND = (functools.partial, MethodType)


def state_uses(function: FunctionType, reach: Reach) -> StateUses:
    """Return which states a function reads and writes, on all branches."""
    walk = _UseWalk(reach)
    while walk.again:
        walk.again = False
        walk.mention(function)
        walk.new_round()
    return StateUses(frozenset(walk.reads), frozenset(walk.writes))


class _UseWalk:
    """Walks a function's text and the text of all that it calls."""

    def __init__(self, reach: Reach) -> None:
        self.again = True
        """Whether something was added that had been looked up before."""
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self._has_class = False
        """Whether there is a class definition; its objects are not followed."""
        self._classes = 0
        """How many classes are being walked."""
        self._reach = reach
        self._places: dict[object, NamePlace] = {}
        self._walked: set[NamePlace] = set()
        self._handed: set[Holdable] = set()
        """Functions that were passed to libraries, and whose calls are being walked."""
        self._active: dict[Scoped, NamePlace] = {}

    def new_round(self) -> None:
        self._walked.clear()
        for place in self._places.values():
            place.looked_at.clear()

    def _look(self, place: NamePlace, name: str) -> Held:
        place.looked_at.add(name)
        return place.held.get(name, NOTHING)

    def _hold(self, place: NamePlace, name: str, held: Held) -> None:
        before = place.held.get(name, NOTHING)
        after = either(before, held)
        if after != before:
            place.held[name] = after
            self.again = self.again or name in place.looked_at

    def _set(self, place: NamePlace, name: str, held: Held) -> None:
        home = place.home(name)
        assert home is not None
        self._hold(home, name, held)

    def _name(self, place: NamePlace, name: str) -> Held:
        home = place.home(name)
        if home is not None:
            return self._look(home, name)
        return self._mentioned(held_of(place.resolve(name)))

    # --- functions ------------------------------------------------------------------------

    def mention(self, function: FunctionType) -> None:
        self._enter(function, GivenValues(), None)

    def _enter(self, called: FunctionType | InnerFunction, given: GivenValues, at: object) -> Held:
        """Walk a function for one call of it; return its result."""
        node = called.node if isinstance(called, InnerFunction) else self._reach.source(called).node
        arguments = given.to(node)
        if all(held == NOTHING for held in arguments.values()):
            at = None
        place = self._active.get(node) or self._place((called, at), node, called)
        for name, held in arguments.items():
            self._hold(place, name, held)
        if node not in self._active and place not in self._walked:
            self._walked.add(place)
            self._active[node] = place
            for name, held in self._defaults(called).items():
                self._hold(place, name, held)
            if isinstance(node, ast.Lambda):
                self._hold(place, _RESULT, self._value(place, node.body))
            else:
                self._statements(place, node.body)
            del self._active[node]
        return self._look(place, _RESULT)

    def _place(self, key: object, node: Scoped, called: FunctionType | InnerFunction) -> NamePlace:
        if key not in self._places:
            if isinstance(called, InnerFunction):
                made = NamePlace(bound_names(node), called.place.resolve, called.place)
            else:
                made = NamePlace(bound_names(node), resolver(called), None)
            self._places[key] = made
        return self._places[key]

    def _defaults(self, called: FunctionType | InnerFunction) -> dict[str, Held]:
        if isinstance(called, FunctionType):
            return {name: held_of(value) for name, value in default_values(called).items()}
        written = written_defaults(called.node.args)
        return {name: self._value(called.place, node) for name, node in written.items()}

    def _inner(self, place: NamePlace, node: Scoped) -> Held:
        """Return a function inside of another, and walk it, because any code may call it."""
        inner = InnerFunction(node, place)
        self._enter(inner, GivenValues(), None)
        return Held(frozenset((inner,)))

    def _statements(self, place: NamePlace, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self._statement(place, node)

    def _statement(self, place: NamePlace, node: ast.AST) -> None:
        match node:
            case ast.expr():
                self._value(place, node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                held = self._inner(place, node)
                for decorator in node.decorator_list:
                    given = GivenValues((held,))
                    called = self._value(place, decorator)
                    held = either(held, *self._results(place, called, given, decorator))
                self._set(place, node.name, held)
            case ast.ClassDef():
                self._class(place, node)
            case ast.Return(value=ast.expr() as value):
                self._hold(place, _RESULT, self._value(place, value))
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._bind(place, target, value)
            case (
                ast.AugAssign(target=target, value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                self._bind(place, target, value)
            case ast.For(target=target, iter=over):
                self._assign(place, target, self._taken_out(self._value(place, over)))
                self._statements(place, (*node.body, *node.orelse))
            case ast.withitem(context_expr=value, optional_vars=target):
                held = self._value(place, value)
                if target is not None:
                    self._assign(place, target, held)
            case ast.Match(subject=subject, cases=cases):
                held = self._value(place, subject)
                for name in assigned_names([case.pattern for case in cases]):
                    self._set(place, name, either(held, held.taken_out()))
                self._statements(place, cases)
            case _:
                self._statements(place, ast.iter_child_nodes(node))

    def _class(self, place: NamePlace, node: ast.ClassDef) -> None:
        self._has_class = True
        self._classes += 1
        new = NamePlace(assigned_names(node.body), place.resolve, place)
        inside_class = self._places.setdefault((place, node), new)
        for part in (*node.decorator_list, *node.bases, *(k.value for k in node.keywords)):
            self._use_all(self._value(place, part))
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                for decorator in statement.decorator_list:
                    self._value(inside_class, decorator)
                self._inner(place, statement)  # it cannot see the names of its class
            else:
                self._statement(inside_class, statement)
        self._use_all(either(*inside_class.held.values()))
        self._classes -= 1

    def _bind(self, place: NamePlace, target: ast.expr, value: ast.expr) -> None:
        """Assign a value; a value that is written out is assigned part by part."""
        match target, value:
            case ((ast.Tuple() | ast.List()), (ast.Tuple() | ast.List())):
                if len(target.elts) == len(value.elts) and not any(
                    isinstance(e, ast.Starred) for e in (*target.elts, *value.elts)
                ):
                    for one, part in zip(target.elts, value.elts, strict=True):
                        self._bind(place, one, part)
                    return
        self._assign(place, target, self._value(place, value))

    def _assign(self, place: NamePlace, target: ast.expr, held: Held) -> None:
        match target:
            case ast.Name(id=name):
                self._set(place, name, held)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                for one in targets:
                    self._assign(place, one, held.taken_out())
            case ast.Starred(value=one):
                self._assign(place, one, made_of(held))
            case ast.Subscript(value=of) | ast.Attribute(value=of):
                self._put_into(place, of, held)
                if self._classes:
                    self._use_all(held)

    def _put_into(self, place: NamePlace, node: ast.expr, held: Held) -> None:
        """Note that a value now contains something, if the value has a name."""
        while isinstance(node, ast.Subscript | ast.Attribute):
            node = node.value
        if isinstance(node, ast.Name) and place.home(node.id) is not None:
            self._set(place, node.id, made_of(held))

    # --- expressions ----------------------------------------------------------------------

    def _value(self, place: NamePlace, node: ast.expr) -> Held:
        match node:
            case ast.Name(id=name):
                return self._name(place, name)
            case ast.Attribute(value=of, attr=name):
                held = self._value(place, of)
                inner = NOTHING if has_field(held, name) else held.taken_out()
                return either(inner, self._attribute(held, name))
            case ast.Call():
                return self._called(place, node)
            case ast.Lambda():
                return self._inner(place, node)
            case ast.Subscript(value=of, slice=at):
                self._value(place, at)
                return self._taken_out(self._value(place, of))
            case ast.NamedExpr(target=target, value=value):
                held = self._value(place, value)
                self._assign(place, target, held)
                return held
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(place, node)
            case ast.Yield() | ast.YieldFrom():
                if node.value is not None:
                    self._hold(place, _RESULT, made_of(self._value(place, node.value)))
                return NOTHING
        nodes = (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
        parts = [self._value(place, n) for n in nodes]
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            return made_of(*parts)
        return either(*parts)

    def _attribute(self, held: Held, name: str) -> Held:
        """Return what `.name` may be, except for the contents of a container."""
        values: list[Held] = []
        for thing in held.things:
            match thing:
                case State() if name == "get" or name in MERGES:
                    values.append(Held(frozenset((StateMethod(thing, name),))))
                case ProgramObject(thing=of):
                    values.append(attribute_of(of, name))
                    if (function := property_of(of, name)) is not None:
                        given = GivenValues((Held(frozenset((thing,))),))
                        values.append(self._enter(function, given, (thing, name)))
        return self._mentioned(either(*values))

    def _taken_out(self, held: Held) -> Held:
        """Return what an element may be; for an object, any of its contents."""
        inner = (parts_of(t.thing) for t in held.things if isinstance(t, ProgramObject))
        return self._mentioned(either(held.taken_out(), *inner))

    def _mentioned(self, held: Held) -> Held:
        for thing in held.things | held.parts:
            if isinstance(thing, FunctionType):
                self.mention(thing)
        return held

    def _comprehension(
        self, around: NamePlace, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    ) -> Held:
        names = assigned_names([generator.target for generator in node.generators])
        new = NamePlace(names, around.resolve, around)
        place = self._places.setdefault((around, node), new)
        for generator in node.generators:
            over = self._value(place, generator.iter)
            self._assign(place, generator.target, self._taken_out(over))
            for condition in generator.ifs:
                self._value(place, condition)
        results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        return made_of(*[self._value(place, result) for result in results])

    # --- calls ----------------------------------------------------------------------------

    def _called(self, place: NamePlace, node: ast.Call) -> Held:
        if isinstance(node.func, ast.Attribute):
            of = self._value(place, node.func.value)
            callee = self._attribute(of, node.func.attr)
            given = self._given(place, node)
            results = self._results(place, callee, given, node)
            is_field = has_field(of, node.func.attr)
            if (of.parts and not is_field) or not callee.things:  # a method of data, as list.append
                self._put_into(place, node.func.value, given.all())
                if self._has_class:
                    self._use_all(given.all())
                results += [of.taken_out(), self._handed_over(place, given, node)]
            return either(*results)
        callee = self._value(place, node.func)
        given = self._given(place, node)
        if not callee.things:
            self._use_all(given.all())
        return either(*self._results(place, callee, given, node))

    def _given(self, place: NamePlace, node: ast.Call) -> GivenValues:
        plain: list[Held] = []
        named: dict[str, Held] = {}
        spread = NOTHING
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                spread = either(spread, self._taken_out(self._value(place, arg.value)))
            elif spread == NOTHING:
                plain.append(self._value(place, arg))
            else:
                spread = either(spread, self._value(place, arg))
        for keyword in node.keywords:
            held = self._value(place, keyword.value)
            if keyword.arg is None:
                spread = either(spread, self._taken_out(held))
            else:
                named[keyword.arg] = held
        return GivenValues(tuple(plain), named, spread)

    def _results(
        self, place: NamePlace, callee: Held, given: GivenValues, node: ast.expr
    ) -> list[Held]:
        return [self._call_thing(place, thing, given, node) for thing in callee.things]

    def _call_thing(
        self, place: NamePlace, thing: Holdable, given: GivenValues, node: ast.expr
    ) -> Held:
        match thing:
            case StateMethod(state=state, name=name):
                (self.reads if name == "get" else self.writes).add(state.name)
                self._handed_over(place, given, node)  # the function of a merge
            case FunctionType() | InnerFunction():
                return self._enter(thing, given, (place, node))
            case ProgramObject(thing=MethodType(__func__=FunctionType() as function) as method) if (
                is_users(function)
            ):
                with_self = replace(given, plain=(held_of(method.__self__), *given.plain))
                return self._enter(function, with_self, (place, node))
            case ProgramObject(thing=functools.partial() as partial):
                before = tuple(map(held_of, partial.args))
                named = {name: held_of(value) for name, value in partial.keywords.items()}
                inner = replace(
                    given, plain=(*before, *given.plain), named={**named, **given.named}
                )
                return either(*self._results(place, held_of(partial.func), inner, node))
            case ProgramObject(thing=of):
                touched = self._reach.of_thing(of)
                self.reads |= touched.reads
                self.writes |= touched.writes
                own = (i for i in inside(of) if type(i) is FunctionType)
                if of is getattr or not all(map(is_foreign, own)):
                    self._use_all(given.all())
                return self._handed_over(place, given, node)
        return NOTHING

    def _handed_over(self, place: NamePlace, given: GivenValues, node: ast.expr) -> Held:
        """Return the result of a library's function, which may call the functions that it gets."""
        held = made_of(given.all()).taken_out()
        results: list[Held] = []
        for thing in held.things - self._handed:
            if not isinstance(thing, State) and (
                not isinstance(thing, ProgramObject) or issubclass(type(thing.thing), _BOUND)
            ):
                self._handed.add(thing)
                results.append(self._call_thing(place, thing, GivenValues(spread=held), node))
                self._handed.remove(thing)
        return either(held, *results, made_of(*results))

    def _use_all(self, held: Held) -> None:
        for thing in held.things | held.parts:
            if isinstance(thing, State | StateMethod):
                name = (thing if isinstance(thing, State) else thing.state).name
                self.reads.add(name)
                self.writes.add(name)

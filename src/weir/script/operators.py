"""Translates PROCESS, REDUCE, COMBINE and APP … EMIT: the user's operators and apps."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from weir.errors import ScriptError
from weir.plan.binding.builder import apply
from weir.plan.fluent.stream import Stream
from weir.plan.operators import Node, schema
from weir.plan.usercode.functions import OperatorCall
from weir.script.constants import StatementScope, literal
from weir.script.cursor import offset_of
from weir.script.source import did_you_mean


def find_stream(node: exp.Expr, streams: Mapping[str, Node], scope: StatementScope) -> Node:
    """Return the stream of this name; raise ScriptError, with the nearest name, if there is
    none."""
    if node.name not in streams:
        hint = did_you_mean(node.name, streams)
        raise scope.error(f"unknown stream `{node.name}`", node, hint)
    return streams[node.name]


def apply_node(node: exp.Expr, streams: Mapping[str, Node], scope: StatementScope) -> Node:
    """Make the node of a parsed PROCESS, REDUCE or COMBINE."""
    names = list(node.args["inputs"])
    inputs = tuple(find_stream(name, streams, scope) for name in names)
    call = _operator_call(node.args["call"], scope)
    pairs = [_pair(key, names, scope) for part in node.args["keys"] for key in _conjuncts(part)]
    for pair in pairs:
        _check_columns(pair, inputs, scope)
    keys = [[pair[i].name for pair in pairs] for i in range(len(inputs))]
    return apply(inputs, keys, call, scope.source.position(offset_of(node)))


def _operator_call(node: exp.Expr, scope: StatementScope) -> OperatorCall:
    operators = scope.functions.operators
    if not isinstance(node, exp.Anonymous) or node.name not in operators:
        hint = did_you_mean(node.name, operators) or "IMPORT the file that defines it"
        raise scope.error(f"unknown operator `{node.name}`", node, hint)
    arguments = []
    for argument in node.expressions:
        value = literal(argument, scope)
        if value is None:
            raise scope.error("an operator takes constants", argument)
        arguments.append(value.value)
    return OperatorCall(operators[node.name], tuple(arguments))


def _conjuncts(node: exp.Expr) -> list[exp.Expr]:
    parts: list[exp.Expr] = []
    while isinstance(node, exp.And):
        parts.append(node.args["expression"])
        node = node.this
    return [node, *reversed(parts)]


def _pair(key: exp.Expr, names: list[exp.Expr], scope: StatementScope) -> tuple[exp.Expr, ...]:
    """Read one key: `k`, the same in every input, or `A.k == B.j` for two inputs."""
    if isinstance(key, exp.Column) and isinstance(key.this, exp.Identifier):
        return tuple(key for _ in names)
    if isinstance(key, exp.EQ) and len(names) == 2:
        sides = [key.this, key.args["expression"]]
        owners = [_owner(s) for s in sides]
        inputs = [n.name for n in names]
        if owners == inputs[::-1] and inputs[0] != inputs[1]:
            sides.reverse()
        if sorted(owners) == sorted(inputs):
            return tuple(s.args["expression"] for s in sides)
    hint = "write k, or A.k == B.j" if len(names) == 2 else "write the names of columns"
    raise scope.error("invalid key", key, hint)


def _owner(node: exp.Expr) -> str:
    qualified = isinstance(node, exp.Dot) and isinstance(node.this, exp.Column)
    return node.this.name if qualified else ""


def _check_columns(
    pair: tuple[exp.Expr, ...], inputs: tuple[Node, ...], scope: StatementScope
) -> None:
    for key, stream in zip(pair, inputs, strict=True):
        columns = schema(stream).names
        if key.name not in columns:
            hint = did_you_mean(key.name, columns)
            raise scope.error(f"unknown column `{key.name}`", key, hint)


# --- apps ----------------------------------------------------------------------------------


def emitted_node(node: exp.Expr, streams: Mapping[str, Node], scope: StatementScope) -> Node:
    """Make the node of a parsed APP … EMIT."""
    apps = scope.functions.apps
    if node.name not in apps:
        hint = did_you_mean(node.name, apps) or "IMPORT the file that makes it"
        raise scope.error(f"unknown app `{node.name}`", node.this, hint)
    app = apps[node.name]
    inputs: dict[str, Stream] = {}
    for option in node.args["inputs"]:
        name = _once(option, inputs, app.event_names, "event type", scope)
        source = option.args["expression"]
        inputs[name] = Stream(find_stream(source, streams, scope), source.name)
    for name in app.event_names:
        if name not in inputs:
            hint = f"APP {app.name}({name} = a stream, …)"
            raise scope.error(f"the app `{app.name}` needs the events of `{name}`", node, hint)
    emitted = app.emitted_over(inputs, _params(node, app.param_names, scope))
    emit = node.args["emit"]
    if emit.name not in emitted:
        hint = did_you_mean(emit.name, emitted) or f"it emits {', '.join(emitted) or 'nothing'}"
        raise scope.error(f"the app `{app.name}` does not emit `{emit.name}`", emit, hint)
    return emitted[emit.name].node


def _params(node: exp.Expr, names: Collection[str], scope: StatementScope) -> dict[str, object]:
    params: dict[str, object] = {}
    for option in node.args.get("options") or ():
        name = _once(option, params, names, "parameter", scope)
        value = literal(option.args["expression"], scope)
        if value is None:
            raise scope.error("an app takes constants", option.args["expression"])
        params[name] = value.value
    return params


def _once(
    option: exp.Expr,
    earlier: Collection[str],
    names: Collection[str],
    what: str,
    scope: StatementScope,
) -> str:
    """Return the name of an option; raise ScriptError if the app has no such option, or if it is
    repeated."""
    name = option.name
    if name not in names:
        hint = did_you_mean(name, names)
        raise scope.error(f"unknown {what} `{name}`", option, hint)
    if name in earlier:
        raise _twice(name, what, option, scope)
    return name


def _twice(name: str, what: str, option: exp.Expr, scope: StatementScope) -> ScriptError:
    return scope.error(f"the {what} `{name}` is given twice", option)

"""APP … EMIT uses an app's handlers over named streams; what they emit is an ordinary stream."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlglot import exp

from weir.errors import ScriptError
from weir.plan.operators import Node
from weir.plan.stream import Stream
from weir.script.constants import StatementScope, literal
from weir.script.operators import find_stream
from weir.script.source import did_you_mean


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
    """Return the name of an option; ScriptError if the app has no such name, or if the name is
    among the earlier ones."""
    name = option.name
    if name not in names:
        hint = did_you_mean(name, names)
        raise scope.error(f"unknown {what} `{name}`", option, hint)
    if name in earlier:
        raise _twice(name, what, option, scope)
    return name


def _twice(name: str, what: str, option: exp.Expr, scope: StatementScope) -> ScriptError:
    return scope.error(f"the {what} `{name}` is given twice", option)

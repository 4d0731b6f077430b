"""Turns a program's text into a checked `Program`.

Contract
1. For any text, `parse_program` returns a Program or raises ScriptError. It runs nothing of the
   program except the Python files that it IMPORTs.
2. Statements take effect in order: a stream, a parameter or an import can be used by the statements
   after it.
3. Paths of STREAM and OUTPUT stay as written; IMPORT is relative to the program's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sqlglot import exp

from weir.errors import PlanError, ScriptError
from weir.events.types import type_name
from weir.plan.advice.plan_warnings import warn
from weir.plan.binding.builder import build_query
from weir.plan.binding.query import Query
from weir.plan.operators import Node, Source, schema
from weir.plan.program import Output, Program, ProgramText, StreamKind, turned_away
from weir.plan.settings import SETTINGS
from weir.plan.urls import refuse_secrets
from weir.plan.usercode.functions import NO_FUNCTIONS, UserFunctions
from weir.plan.usercode.imported_files import ImportedFiles
from weir.script.constants import Parameter, StatementScope, declared, literal, overridden, string
from weir.script.cursor import offset_of
from weir.script.dialect import parse_statements
from weir.script.imports import imported, undecorated
from weir.script.operators import apply_node, emitted_node, find_stream
from weir.script.query_translation import partition_clauses, translate_query
from weir.script.script_warnings import Doubt, query_doubts, stream_doubts
from weir.script.source import ProgramSource, did_you_mean
from weir.script.streams import source_node
from weir.script.tree import (
    AppUse,
    DeclareStatement,
    Definition,
    ImportStatement,
    OperatorUse,
    OutputStatement,
    SetStatement,
    StreamStatement,
)
from weir.script.type_names import arrow_type

_UNKNOWN = re.compile(r"unknown (column|function|aggregate) `(.*)`", re.DOTALL)


def parse_program(
    text: str,
    *,
    params: Mapping[str, str] | None = None,
    directory: Path | None = None,
    name: str = "",
    sources: Sequence[Source] = (),
) -> Program:
    """Parse and check a program.

    `params` override DECLAREs (`--param`). IMPORT looks in `directory` (by default the working
    directory). Error messages begin with `name`. `sources` are inputs declared before the first
    statement, numbered in order.

    >>> program = parse_program("STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';")
    >>> program.sources[0].name
    'A'
    """
    text = text.removeprefix("\ufeff")  # the mark with which some editors begin UTF-8
    source = ProgramSource(text, name)
    for what in (text, *(params or {}).values()):
        _check_characters(source, what)
    try:
        trees = parse_statements(source)
        checker = _Checker(source, dict(params or {}), directory or Path(), sources, name)
        program = checker.check(trees)
    except RecursionError:
        hint = "name the inner parts as streams of their own, or use IN for long lists"
        raise source.error("an expression is too long or too deep", 0, hint) from None
    except ScriptError as error:
        if not name:
            raise
        raise _named(error, name, source) from error.__cause__
    if sources:
        return program  # it is made of more than its text
    param_items = tuple((params or {}).items())
    return replace(program, text=ProgramText(text, param_items, str(directory or Path()), name))


def _check_characters(source: ProgramSource, text: str) -> None:
    """Reject halves of characters (surrogates), which can be neither written nor hashed."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"U+{ord(text[error.start]):04X} is half of a character"
        where = error.start if text is source.text else 0
        raise source.error(message, where, "is the text UTF-8?") from None


def _named(error: ScriptError, name: str, source: ProgramSource) -> ScriptError:
    if not error.line:
        return ScriptError(f"{name}: {error.message}", line=0, hint=error.hint)
    return ScriptError(
        error.message,
        line=error.line,
        column=error.column,
        source=source.text,
        hint=error.hint,
        file=name,
    )


class _Checker:
    """The program so far: what earlier statements have declared and defined."""

    def __init__(
        self,
        source: ProgramSource,
        params: Mapping[str, str],
        directory: Path,
        sources: Sequence[Source],
        file: str,
    ) -> None:
        self._source, self._params, self._directory = source, params, directory
        self._file = file
        self._functions: UserFunctions = NO_FUNCTIONS
        self._parameters: dict[str, Parameter] = {}
        self._streams: dict[str, Node] = {s.name: s for s in sources}
        self._sources: list[Source] = list(sources)
        self._outputs: list[Output] = []
        self._settings: dict[str, object] = {}
        self._code: dict[str, str] = {}
        self._needed: dict[str, str] = {}
        self._files = ImportedFiles()
        self._stages: set[str] = set()

    @property
    def _scope(self) -> StatementScope:
        return StatementScope(self._source, self._parameters, self._functions)

    def check(self, trees: list[exp.Expr]) -> Program:
        if not trees:
            raise self._source.error("the program has no statements", 0)
        self._check_params([t.this.name for t in trees if isinstance(t, DeclareStatement)])
        for tree in trees:
            self._statement(tree)
        inputs = {source.name for source in self._sources}
        return Program(
            tuple(self._sources),
            tuple((n, node) for n, node in self._streams.items() if n not in inputs),
            tuple(self._outputs),
            tuple(self._settings.items()),
            tuple(self._code.items()),
            tuple(self._needed.items()),
        )

    def _check_params(self, names: list[str]) -> None:
        for name in self._params:
            if name not in names:
                there = f"it declares {', '.join(f'@{n}' for n in names)}" if names else ""
                hint = did_you_mean(name, names) or there
                hint = hint or f"declare it: DECLARE @{name} BIGINT = 1;"
                raise ScriptError(f"unknown parameter `{name}`", line=0, hint=hint)

    def _statement(self, tree: exp.Expr) -> None:
        match tree:
            case StreamStatement():
                node = source_node(tree, len(self._sources), self._scope)
                self._name(tree.this, node)
                self._sources.append(node)
                self._warn(stream_doubts(tree, schema(node).time, self._scope))
            case Definition():
                self._define(tree)
            case ImportStatement():
                functions, code, needed = imported(tree, self._directory, self._scope, self._files)
                self._functions, self._code = self._functions | functions, self._code | code
                self._needed = needed | self._needed
            case OutputStatement():
                self._output(tree)
            case DeclareStatement():
                self._declare(tree)
            case SetStatement():
                self._set(tree.this)
            case _:
                raise AssertionError(f"no such statement: {type(tree).__name__}")

    def _name(self, name: exp.Expr, node: Node) -> None:
        if name.name in self._streams:
            raise self._scope.error(f"stream `{name.name}` is defined twice", name)
        self._streams[name.name] = node

    def _define(self, tree: exp.Expr) -> None:
        body = tree.args["expression"]
        try:
            if isinstance(body, OperatorUse):
                node = apply_node(body, self._streams, self._scope)
            elif isinstance(body, AppUse):
                node = emitted_node(body, self._streams, self._scope)
            else:
                query = translate_query(body, self._scope)
                self._check_stages(query)
                node = build_query(query, self._streams, self._functions)
        except PlanError as error:
            position = error.position or self._source.position(offset_of(tree))
            hint = self._name_hint(error) or error.hint
            raise self._source.error_at(error.message, position, hint) from error
        self._name(tree.this, node)
        self._warn(query_doubts(body, schema(node).time, self._scope))

    def _warn(self, doubts: Iterable[Doubt]) -> None:
        for doubt in doubts:
            line, column = self._source.position(doubt.offset)
            text = ScriptError(
                doubt.message,
                line=line,
                column=column,
                source=self._source.text,
                hint=doubt.hint,
                file=self._file,
            )
            warn(str(text))

    def _name_hint(self, error: PlanError) -> str:
        """Guess what an unknown name means: a text in double quotes, or a function of the user's
        without its decorator."""
        match = _UNKNOWN.fullmatch(error.message)
        if match is None or error.position is None:
            return ""
        what, name = match.groups()
        line, column = error.position
        written = self._source.text.split("\n")[line - 1][column - 1 :]
        if what == "column" and written.startswith('"'):
            return error.hint or f"a text stands in single quotes: '{name}'"
        if what == "column" and name in self._parameters:
            return f"a parameter is written with its `@`: @{name}"
        if what in ("function", "aggregate"):
            for file in self._code:
                path = self._directory / file
                if path.suffix == ".py" and path.is_file():
                    at = undecorated(path.read_bytes()).get(name)
                    if at is not None:
                        return f"'{file}', line {at}, has `{name}` without @weir.udf above it"
        return ""

    def _check_stages(self, query: Query) -> None:
        for clause in partition_clauses(query):
            if clause.uid in self._stages:
                message = f"two stages are called '{clause.uid}'"
                raise self._source.error_at(message, clause.position or (1, 1))
            self._stages.add(clause.uid)

    def _output(self, tree: exp.Expr) -> None:
        kind, path_node = tree.args["kind"], tree.args["path"]
        node = find_stream(tree.this, self._streams, self._scope)
        path = string(path_node, self._scope, "the path of OUTPUT")
        refuse_secrets(path)
        if any(o.path == path for o in self._outputs):
            raise self._scope.error(f"'{path}' is written twice", path_node)
        rows = Output(tree.name, node, path)
        self._outputs.append(rows if kind == "rows" else self._turned_away(tree, kind, path))

    def _turned_away(self, tree: exp.Expr, kind: StreamKind, path: str) -> Output:
        # By name: `B = SELECT * FROM A` may be the very node of A.
        source = next((s for s in self._sources if s.name == tree.name), None)
        if source is None:
            message = f"`{tree.name}` is not an input: only a STREAM has {kind} rows"
            raise self._scope.error(message, tree.this)
        try:
            return turned_away(source, kind, path)
        except PlanError as error:
            raise self._scope.error(error.message, tree.this, error.hint) from error

    def _declare(self, tree: exp.Expr) -> None:
        name = tree.this.name
        if name in self._parameters:
            raise self._scope.error(f"parameter `@{name}` is declared twice", tree.this)
        dtype = arrow_type(tree.args["kind"], self._source)
        value: Parameter | None = declared(tree.args["expression"], dtype, self._scope)
        if name in self._params:
            value = overridden(self._params[name], dtype)
        if value is None:
            message = f"--param {name}={self._params[name]} is no {type_name(dtype)}"
            raise self._scope.error(message, tree.this)
        self._parameters[name] = value

    def _set(self, option: exp.Expr) -> None:
        key = option.name.lower()
        if key not in SETTINGS:
            hint = did_you_mean(key, SETTINGS) or f"the settings are {', '.join(SETTINGS)}"
            raise self._scope.error(f"unknown setting `{option.name}`", option, hint)
        if key in self._settings:
            raise self._scope.error(f"setting `{key}` is set twice", option)
        value = literal(option.args["expression"], self._scope)
        if value is None or value.type != SETTINGS[key].type:
            expected = type_name(SETTINGS[key].type)
            raise self._scope.error(f"`{key}` must be a {expected}", option.args["expression"])
        try:
            SETTINGS[key].read(str(value.value))
        except PlanError as error:
            node = option.args["expression"]
            raise self._scope.error(error.message, node, error.hint) from error
        self._settings[key] = value.value

"""Nodes of the syntax tree for the statements and clauses that sqlglot lacks.

Every node that the grammar makes has the offset at which it began (`meta["start"]`). Names are
`exp.Identifier`, so a quoted name is never mistaken for a keyword.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp


class StreamStatement(exp.Expression):
    """STREAM this (expressions) FROM path WITH (options)."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "expressions": True,
        "path": True,
        "options": False,
    }


class Option(exp.Expression):
    """`this = expression` in WITH (…) of a STREAM, or after SET."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class Definition(exp.Expression):
    """this = expression, a query or a call of the user's operator."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class OperatorUse(exp.Expression):
    """PROCESS, REDUCE or COMBINE (`this`) of the named inputs by keys, with the call `call`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "inputs": True,
        "keys": False,
        "call": True,
    }


class AppUse(exp.Expression):
    """APP this(inputs) EMIT emit WITH (options); the inputs are `event type = stream`."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "inputs": True,
        "emit": True,
        "options": False,
    }


class ImportStatement(exp.Expression):
    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class OutputStatement(exp.Expression):
    """OUTPUT [LATE OF | BAD OF] this TO path; `kind` is rows, late or bad."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "path": True, "kind": True}


class DeclareStatement(exp.Expression):
    """DECLARE @this kind = expression."""

    arg_types: ClassVar[dict[str, bool]] = {
        "this": True,
        "kind": True,
        "expression": True,
    }


class SetStatement(exp.Expression):
    """SET with its one `Option`."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class DurationLiteral(exp.Expression):
    """`5s`: digits and unit as written. (`exp.Interval` would change the unit's case.)"""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "unit": True}


class TypedLiteral(exp.Expression):
    """TIMESTAMP '…' or DATE '…': `this` is the upper-case word, `expression` the string."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expression": True}


class WithSyntax(exp.Expression):
    """WITH this(expressions), a window or a lifetime change."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": False}


class PartitionSyntax(exp.Expression):
    """PARTITION BY expressions INTO count AS uid."""

    arg_types: ClassVar[dict[str, bool]] = {
        "expressions": True,
        "count": True,
        "uid": True,
    }


class SelectClause(exp.Expression):
    """A SELECT, up to its WITH; `kind` of a join is the query's word for it."""

    arg_types: ClassVar[dict[str, bool]] = {
        "expressions": True,
        "distinct": False,
        "relation": True,
        "partition": False,
        "joins": False,
        "where": False,
        "group": False,
        "having": False,
        "lifetime": False,
    }


class QueryExpression(exp.Expression):
    """SELECTs joined by UNION ALL (`expressions`), and the order and limit of the whole; `named`
    are the queries that WITH name AS (…) puts before them."""

    arg_types: ClassVar[dict[str, bool]] = {
        "named": False,
        "expressions": True,
        "order": False,
        "limit": False,
        "ties": False,
    }

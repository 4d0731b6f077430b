"""The table of built-in operators and functions: their names in `Call.function`, and type rules.

`typed(call)` takes a call whose arguments are bound and gives it back with its type, its
arguments cast to what the evaluator gets. After binding (D = DECIMAL, n = any number, T = one
type shared by all arguments; `'x'` = always a `Literal`; all are NULL when an argument is,
where nothing else is said):

    add sub              BIGINT, BIGINT | DOUBLE, DOUBLE | D(p,s), D(p,s) -> D(p+1,s)
                         TIMESTAMP, BIGINT (always this way round) -> TIMESTAMP
                         sub: TIMESTAMP, TIMESTAMP -> BIGINT
    mul                  BIGINT, BIGINT | DOUBLE, DOUBLE | D(p,s), D(q,t) -> D(p+q+1,s+t)
    div                  DOUBLE, DOUBLE -> DOUBLE, by IEEE rules
    floordiv mod         BIGINT, BIGINT (zero is an error) | DOUBLE, DOUBLE;
                         rounds down, mod has the divisor's sign: a = b * (a // b) + a % b
    truncated_mod        as mod, with the dividend's sign; this is MOD of a script
    neg abs              n -> the same type
    sign                 DOUBLE -> DOUBLE | other n -> BIGINT
    round                n[, 'digits' BIGINT] -> the same type, D(p,s) -> D(p+1,s); half away from 0
    floor ceil           INT, BIGINT, DOUBLE -> the same | D(p,s) -> D(p-s+1,0)
    sqrt exp ln log10    DOUBLE -> DOUBLE
    power                DOUBLE, DOUBLE -> DOUBLE
    greatest least       T… -> T; skips NULLs, NULL when all are
    eq ne lt le gt ge    T, T -> BOOLEAN; a NULL inside a LIST or STRUCT is a value, the least
    in                   T, T… -> BOOLEAN (value, then the options; three-valued)
    and or not           BOOLEAN… -> BOOLEAN (and, or: two or more arguments; three-valued)
    is_null is_not_null  any -> BOOLEAN, never NULL
    coalesce nullif      T… -> T (nullif: two)
    like rlike           STRING, 'pattern' STRING -> BOOLEAN (rlike: found anywhere)
    length               STRING (characters) | BINARY (bytes) -> BIGINT
    lower upper trim ltrim rtrim reverse        STRING -> STRING
    concat               STRING, STRING… -> STRING; this is || too, so NULL makes NULL
    substring            STRING, start BIGINT[, length BIGINT]; from 1, negative from the end
    replace              STRING, STRING, STRING -> STRING
    split                STRING, separator STRING -> LIST(STRING)
    split_part           STRING, separator STRING, BIGINT -> STRING; from 1, '' beyond the last
    starts_with ends_with contains              STRING, STRING -> BOOLEAN
    regexp_extract       STRING, 'pattern', 'group' BIGINT (0 is added) -> STRING, '' if none
    regexp_replace       STRING, 'pattern', STRING -> STRING; every match
    lpad rpad            STRING, BIGINT, STRING (' ' is added) -> STRING; cut when longer
    date_trunc           'unit', TIMESTAMP -> TIMESTAMP | DATE -> DATE; weeks start on Monday
    extract              'unit', TIMESTAMP | DATE -> BIGINT (second: whole; week: ISO; dow: 0 =
                         Sunday; epoch: whole seconds)
    date_add             TIMESTAMP | DATE, BIGINT, 'unit' ('day' is added) -> the same; months
                         and years keep the day or take the month's last
    to_timestamp         STRING (ISO 8601) | BIGINT (ticks) | DATE | TIMESTAMP -> TIMESTAMP
                         STRING, 'strptime format' -> TIMESTAMP
    formatted_time       TIMESTAMP | DATE, 'format', 'letters' | 'codes' -> STRING; this is
                         DATE_FORMAT and STRFTIME of a script
    array_length         LIST -> BIGINT
    array_contains       LIST(T), T -> BOOLEAN
    element_at           LIST(T), BIGINT -> T; from 1, negative from the end, NULL outside
    md5 sha256           STRING | BINARY -> STRING (lower-case hex; of the UTF-8 bytes)
    xxhash64             STRING | BINARY -> BIGINT (seed 0)
    field                STRUCT, 'name' -> the field's type
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from weir.events.types import BIGINT, BINARY, BOOLEAN, DOUBLE, STRING
from weir.plan.binding.type_rules import (
    Rule,
    alike,
    arithmetic,
    array_contains,
    array_length,
    date_add,
    element_at,
    extract,
    field,
    fixed,
    formatted_time,
    logic,
    null_test,
    one_of,
    rounding,
    same_number,
    to_timestamp,
    truncate,
    variadic,
    with_pattern,
)
from weir.plan.expressions import Call


def typed(call: Call) -> Call:
    """Return a call of a built-in with bound arguments, with its type and its arguments cast."""
    return FUNCTIONS[call.function](call)


_text = fixed(STRING, result=STRING)
_text_test = fixed(STRING, STRING, result=BOOLEAN)
_real = fixed(DOUBLE, result=DOUBLE)

FUNCTIONS: Mapping[str, Rule] = {
    **dict.fromkeys(("add", "sub", "mul", "floordiv", "mod", "truncated_mod"), arithmetic),
    "div": fixed(DOUBLE, DOUBLE, result=DOUBLE),
    **dict.fromkeys(("neg", "abs", "sign", "floor", "ceil"), same_number),
    "round": rounding,
    **dict.fromkeys(("sqrt", "exp", "ln", "log10"), _real),
    "power": fixed(DOUBLE, DOUBLE, result=DOUBLE),
    **dict.fromkeys(("greatest", "least"), alike(least=1, most=None)),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), alike(least=2, most=2, result=BOOLEAN)),
    "in": alike(least=2, most=None, result=BOOLEAN),
    **dict.fromkeys(("and", "or", "not"), logic),
    **dict.fromkeys(("is_null", "is_not_null"), null_test),
    "coalesce": alike(least=1, most=None),
    "nullif": alike(least=2, most=2),
    "like": fixed(STRING, STRING, result=BOOLEAN, constant=(1,)),
    "rlike": with_pattern(fixed(STRING, STRING, result=BOOLEAN, constant=(1,))),
    "length": one_of(STRING, BINARY, result=BIGINT),
    **dict.fromkeys(("lower", "upper", "trim", "ltrim", "rtrim", "reverse"), _text),
    "concat": variadic(STRING, 1),
    "substring": fixed(STRING, BIGINT, BIGINT, result=STRING, least=2),
    "replace": fixed(STRING, STRING, STRING, result=STRING),
    "split": fixed(STRING, STRING, result=pa.list_(STRING)),
    "split_part": fixed(STRING, STRING, BIGINT, result=STRING),
    **dict.fromkeys(("starts_with", "ends_with", "contains"), _text_test),
    "regexp_extract": with_pattern(
        fixed(STRING, STRING, BIGINT, result=STRING, least=2, constant=(1, 2), default=0)
    ),
    "regexp_replace": with_pattern(fixed(STRING, STRING, STRING, result=STRING, constant=(1,))),
    **dict.fromkeys(
        ("lpad", "rpad"), fixed(STRING, BIGINT, STRING, result=STRING, least=2, default=" ")
    ),
    "date_trunc": truncate,
    "extract": extract,
    "date_add": date_add,
    "to_timestamp": to_timestamp,
    "formatted_time": formatted_time,
    "array_length": array_length,
    "array_contains": array_contains,
    "element_at": element_at,
    **dict.fromkeys(("md5", "sha256"), one_of(STRING, BINARY, result=STRING)),
    "xxhash64": one_of(STRING, BINARY, result=BIGINT),
    "field": field,
}
"""Canonical name to type rule; the module's docstring says what each rule leaves."""

_OPERATORS = """add sub mul div floordiv mod neg eq ne lt le gt ge in and or not is_null is_not_null
like rlike field truncated_mod formatted_time"""
OPERATORS = frozenset(_OPERATORS.split())
"""Those that a script writes as operators, or by another name: nobody calls them by these."""

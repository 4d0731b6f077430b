"""Texts and patterns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from weir.events.types import BIGINT, BINARY, BOOLEAN, STRING
from weir.plan.expressions import Call, Literal
from weir.plan.functions.built_in import BuiltIn, Rule, always, never
from weir.plan.functions.rules import constant_at, fixed, one_of, rule_error, variadic


def _with_pattern(rule: Rule) -> Rule:
    """Extend a rule: the second argument must be a valid regular expression."""

    def checked(call: Call) -> Call:
        typed_call = rule(call)
        pattern = constant_at(typed_call, 1).value
        try:
            pc.match_substring_regex(pa.array([""]), str(pattern))
        except pa.ArrowInvalid as error:
            raise rule_error(call, f"invalid regular expression {pattern!r}: {error}") from error
        return typed_call

    return checked


def _with_like_pattern(rule: Rule) -> Rule:
    """Extend a rule: the second argument is a LIKE pattern without a backslash at its end."""

    def checked(call: Call) -> Call:
        typed_call = rule(call)
        pattern = str(constant_at(typed_call, 1).value)
        backslashes = len(pattern) - len(pattern.rstrip("\\"))
        if backslashes % 2:
            hint = r"write `\\` for a backslash"
            raise rule_error(call, f"pattern '{pattern}' ends within an escape", hint)
        return typed_call

    return checked


def _position_may_be_zero(call: Call) -> bool:
    position = call.args[2]
    return not isinstance(position, Literal) or position.value == 0


_TEXT = fixed(STRING, result=STRING)
_TEST = fixed(STRING, STRING, result=BOOLEAN)
_PADDING = fixed(STRING, BIGINT, STRING, result=STRING, least=2, default=" ")

FUNCTIONS = (
    BuiltIn(
        "like",
        "s LIKE 'pattern'",
        "BOOLEAN; `%` is any text, `_` any one character",
        _with_like_pattern(fixed(STRING, STRING, result=BOOLEAN, constant=(1,))),
        fails=never,
    ),
    BuiltIn(
        "rlike",
        "s RLIKE 'pattern'",
        "BOOLEAN: whether a regular expression (RE2's) is found anywhere",
        _with_pattern(fixed(STRING, STRING, result=BOOLEAN, constant=(1,))),
        fails=never,
    ),
    BuiltIn(
        "concat",
        "CONCAT(s STRING, …)",
        "STRING; `a || b` is the same: NULL makes NULL",
        variadic(STRING, 1),
        fails=never,
    ),
    BuiltIn(
        "length",
        "LENGTH(s STRING or BINARY)",
        "BIGINT: the characters of a text, the bytes of a BINARY",
        one_of(STRING, BINARY, result=BIGINT),
        fails=never,
        other_names=("len", "char_length", "character_length"),
    ),
    BuiltIn("lower", "LOWER(s STRING)", "STRING", _TEXT, fails=never, other_names=("lcase",)),
    BuiltIn("upper", "UPPER(s STRING)", "STRING", _TEXT, fails=never, other_names=("ucase",)),
    BuiltIn("trim", "TRIM(s STRING)", "STRING, without blanks at its ends", _TEXT, fails=never),
    BuiltIn("ltrim", "LTRIM(s STRING)", "STRING, without blanks before it", _TEXT, fails=never),
    BuiltIn("rtrim", "RTRIM(s STRING)", "STRING, without blanks after it", _TEXT, fails=never),
    BuiltIn("reverse", "REVERSE(s STRING)", "STRING", _TEXT, fails=never),
    BuiltIn(
        "substring",
        "SUBSTRING(s STRING, start BIGINT [, length BIGINT])",
        "STRING; from 1, a negative start counts from the end; places before the text count in the "
        "length",
        fixed(STRING, BIGINT, BIGINT, result=STRING, least=2),
        fails=never,
        other_names=("substr",),
    ),
    BuiltIn(
        "replace",
        "REPLACE(s STRING, what STRING, by STRING)",
        "STRING",
        fixed(STRING, STRING, STRING, result=STRING),
        fails=never,
    ),
    BuiltIn(
        "split",
        "SPLIT(s STRING, separator STRING)",
        "LIST(STRING)",
        fixed(STRING, STRING, result=pa.list_(STRING)),
        fails=never,
    ),
    BuiltIn(
        "split_part",
        "SPLIT_PART(s STRING, separator STRING, n BIGINT)",
        "STRING; from 1, `''` beyond the last",
        fixed(STRING, STRING, BIGINT, result=STRING),
        fails=_position_may_be_zero,
    ),
    BuiltIn(
        "starts_with",
        "STARTS_WITH(s STRING, start STRING)",
        "BOOLEAN",
        _TEST,
        fails=never,
        other_names=("startswith",),
    ),
    BuiltIn(
        "ends_with",
        "ENDS_WITH(s STRING, end STRING)",
        "BOOLEAN",
        _TEST,
        fails=never,
        other_names=("endswith",),
    ),
    BuiltIn("contains", "CONTAINS(s STRING, part STRING)", "BOOLEAN", _TEST, fails=never),
    BuiltIn(
        "regexp_extract",
        "REGEXP_EXTRACT(s STRING, 'pattern' STRING [, 'group' BIGINT])",
        "STRING, of the first match; `''` where nothing matches",
        _with_pattern(
            fixed(STRING, STRING, BIGINT, result=STRING, least=2, constant=(1, 2), default=0)
        ),
        fails=never,
    ),
    BuiltIn(
        "regexp_replace",
        "REGEXP_REPLACE(s STRING, 'pattern' STRING, by STRING)",
        "STRING; every match is replaced",
        _with_pattern(fixed(STRING, STRING, STRING, result=STRING, constant=(1,))),
        fails=always,
    ),
    BuiltIn(
        "lpad",
        "LPAD(s STRING, n BIGINT [, fill STRING])",
        "STRING of `n` characters, filled from the left (by blanks) or cut; filling up to more "
        "than 16 MiB (2²⁴ bytes) is an error",
        _PADDING,
        fails=always,
    ),
    BuiltIn(
        "rpad",
        "RPAD(s STRING, n BIGINT [, fill STRING])",
        "as LPAD, filled from the right",
        _PADDING,
        fails=always,
    ),
)

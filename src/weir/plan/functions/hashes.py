"""Hashes of texts and bytes."""

from __future__ import annotations

from weir.events.types import BIGINT, BINARY, STRING
from weir.plan.functions.built_in import BuiltIn, never
from weir.plan.functions.rules import one_of

_HEXADECIMAL = one_of(STRING, BINARY, result=STRING)

FUNCTIONS = (
    BuiltIn(
        "md5",
        "MD5(x STRING or BINARY)",
        "STRING, in lower-case hexadecimal; of a text its UTF-8 bytes",
        _HEXADECIMAL,
        fails=never,
    ),
    BuiltIn("sha256", "SHA256(x STRING or BINARY)", "STRING, as MD5", _HEXADECIMAL, fails=never),
    BuiltIn(
        "xxhash64",
        "XXHASH64(x STRING or BINARY)",
        "BIGINT (seed 0)",
        one_of(STRING, BINARY, result=BIGINT),
        fails=never,
    ),
)

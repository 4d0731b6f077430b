"""Random expressions over a relation's columns, as text with their type.

None of them can fail on small numbers, so that pushing one past another operator cannot change
whether a run fails.
"""

from __future__ import annotations

from hypothesis import strategies as st

from property.relations import Relation, chance

_TIMES = ("vs", "vs - 2", "ve", "ve - vs")

_BY_TYPE = {
    "BIGINT": ("{0}", "{0} + 1", "{0} % 3", "{0} // 2", "-{0}", "COALESCE({0}, 5)", "ABS({0})"),
    "DOUBLE": ("{0}", "{0} + 0.5", "{0} / 2", "COALESCE({0}, 1.5)", "ABS({0})", "-{0}"),
    "STRING": ("{0}", "{0} || 'b'", "COALESCE({0}, 'a')", "UPPER({0})", "NULLIF({0}, 'a')"),
    "BOOLEAN": ("{0}", "NOT {0}", "COALESCE({0}, TRUE)"),
}
_OTHER = {"BIGINT": ("{0} / 2", "DOUBLE"), "STRING": ("LENGTH({0})", "BIGINT")}
_TESTS = {
    "BIGINT": ("{0} > 2", "{0} IN (1, 4)", "{0} BETWEEN 1 AND 4", "{0} <> 4", "NOT {0} = 1"),
    "DOUBLE": ("{0} > 0.5", "{0} <= 1.0", "{0} = 0.0", "{0} <> {0}"),
    "STRING": ("{0} = 'a'", "{0} < 'b'", "{0} LIKE 'a%'", "{0} LIKE '\\a%'", "{0} IN ('a', 'é')"),
    "BOOLEAN": ("{0}", "NOT {0}", "{0} = TRUE"),
    "LIST(BIGINT)": (
        "{0} = [1]",
        "{0} <> [2, 1]",
        "{0} > [1, NULL]",
        "{0} IN ([1], [], [1, NULL, 1])",
        "ARRAY_CONTAINS({0}, 1)",
        "NULLIF({0}, [1]) IS NULL",
        "GREATEST({0}, [2]) = [2]",
    ),
}
_NESTED_TESTS = ("{0} = {0}", "{0} < {0}", "{0} IN ({0}, NULL)")
_NULL_TESTS = ("{0} IS NULL", "{0} IS NOT NULL")
_TIME_TESTS = ("vs > 4", "vs % 2 = 0", "ve IS NULL", "ve - vs < 4", "ve - vs >= 2")
_LITERALS = {
    "BIGINT": "1",
    "DOUBLE": "0.5",
    "STRING": "'a'",
    "BOOLEAN": "TRUE",
    "LIST(BIGINT)": "CAST(NULL AS LIST(BIGINT))",
}


def literal(dtype: str) -> str:
    return _LITERALS.get(dtype, f"CAST(NULL AS {dtype})")


def expression(draw: st.DrawFn, rel: Relation) -> tuple[str, str]:
    """Some expression over the relation, with its type."""
    name = draw(st.sampled_from((None, *(n for n, _ in rel.columns))))
    if name is None:
        return draw(st.sampled_from(_TIMES)), "BIGINT"
    dtype = rel.type_of(name)
    if dtype not in _BY_TYPE:
        return name, dtype
    if chance(draw, 10):
        text = f"CASE WHEN {predicate(draw, rel)} THEN {name} ELSE {literal(dtype)} END"
        return text, dtype
    if dtype in _OTHER and chance(draw, 10):
        form, other = _OTHER[dtype]
        return form.format(name), other
    return draw(st.sampled_from(_BY_TYPE[dtype])).format(name), dtype


def predicate(draw: st.DrawFn, rel: Relation) -> str:
    """Some condition on the relation's columns and lifetime."""
    simple = _test(draw, rel)
    join = draw(st.sampled_from((None, None, "AND", "OR")))
    return simple if join is None else f"({simple} {join} {_test(draw, rel)})"


def _test(draw: st.DrawFn, rel: Relation) -> str:
    name = draw(st.sampled_from((None, *rel.names)))
    if name is None:
        return draw(st.sampled_from(_TIME_TESTS))
    forms = (*_TESTS.get(rel.type_of(name), _NESTED_TESTS), *_NULL_TESTS)
    return draw(st.sampled_from(forms)).format(name)

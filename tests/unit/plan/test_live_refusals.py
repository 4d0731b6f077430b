"""What could hold rows back forever is refused where rows come forever."""

from __future__ import annotations

import pytest

from weir.errors import PlanError
from weir.plan.live_refusals import refuse_unbounded
from weir.plan.operators import Source
from weir.script.program import parse_program

INPUTS = """
STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT) FROM 'tail://a.jsonl';
STREAM F (vs BIGINT, k STRING, v BIGINT) FROM 'f.jsonl';
"""


def check(text: str, *endless: str) -> None:
    program = parse_program(f"{INPUTS} {text} OUTPUT Out TO 'out.jsonl';")

    def has_no_end(source: Source) -> bool:
        return source.name in endless

    refuse_unbounded(program, has_no_end)


REFUSED = [
    ("Out = SELECT DISTINCT k FROM A;", "DISTINCT: a row goes on", "GROUP BY all columns"),
    ("Out = SELECT k FROM A WITH STITCH;", "STITCH: a row goes on", "without STITCH"),
    ("Out = SELECT COUNT(*) AS n FROM A WITH SESSION(5s);", "SESSION: a session", "TUMBLING"),
    (
        "E = SELECT k FROM A WITH LIFETIME(vs, NULL); Out = SELECT COUNT(*) AS n FROM E;",
        "SNAPSHOT over events whose lifetime the program does not bound",
        "CLIP_DURATION or CHOP before it",
    ),
    (
        "Out = SELECT DISTINCT F.k AS k FROM F INNER JOIN A ON A.k = F.k;",
        "DISTINCT: a row goes on",
        "GROUP BY all columns",
    ),
]


@pytest.mark.parametrize(("text", "why", "instead"), REFUSED)
def test_it_says_what_holds_rows_and_what_to_write_instead(
    text: str, why: str, instead: str
) -> None:
    with pytest.raises(PlanError, match="Out could hold rows back forever, since A has") as caught:
        check(text, "A")
    assert why in str(caught.value)
    assert instead in caught.value.hint and "SET allow_unbounded = TRUE" in caught.value.hint


@pytest.mark.parametrize("text", [text for text, _, _ in REFUSED])
def test_finite_inputs_and_programs_that_allow_it_are_exempt(text: str) -> None:
    check(text)
    check(f"SET allow_unbounded = TRUE; {text}", "A")
    with pytest.raises(PlanError):
        check(f"SET allow_unbounded = FALSE; {text}", "A")


ALLOWED = [
    "Out = SELECT k FROM A WHERE v > 1;",
    "Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5s);",
    "Out = SELECT k FROM A ORDER BY v LIMIT 3;",  # as long as rows live, which the data says
    "Out = SELECT A.k AS k FROM A FULL OUTER JOIN F ON A.k = F.k;",
    "Out = SELECT A.k AS k FROM A ASOF JOIN F ON A.k = F.k;",
    "D = SELECT DISTINCT k FROM F; Out = SELECT A.k AS k FROM A INNER JOIN D ON A.k = D.k;",
]


@pytest.mark.parametrize("text", ALLOWED)
def test_what_comes_out_in_the_end_is_allowed(text: str) -> None:
    check(text, "A")


def test_it_names_the_stream_in_which_rows_are_held() -> None:
    text = "D = SELECT DISTINCT k FROM A; Out = SELECT k FROM D WHERE k <> 'x';"
    with pytest.raises(PlanError, match="D could hold rows back forever"):
        check(text, "A")

"""How far back the state of a stage reaches."""

from __future__ import annotations

import pytest

from weir.plan.horizon import Horizon, horizons
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.stages import cut_stages
from weir.script.program import parse_program

pytestmark = pytest.mark.filterwarnings("ignore:.*a join without an equality")

INPUTS = """
STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT) FROM 'a.jsonl' WITH (vs = vs, ve = ve);
STREAM P (vs BIGINT, k STRING, v BIGINT) FROM 'p.jsonl' WITH (vs = vs);
STREAM L (vs BIGINT, k STRING, v BIGINT) FROM 'l.jsonl' WITH (vs = vs, lifetime = 30);
STREAM M (vs BIGINT, k STRING, v BIGINT) FROM 'l.jsonl' WITH (vs = vs, lifetime = 7);
"""


def last(query: str) -> Horizon:
    program = rewrite(parse_program(f"{INPUTS} Out = {query}; OUTPUT Out TO 'out.jsonl';"))
    return horizons(cut_stages(program, 2))[-1]


BY_KEY = "FROM {} GROUP BY k WITH {}"
HORIZONS = [
    ("SELECT k FROM A WHERE v > 1", -1),
    ("SELECT k, COUNT(*) AS n FROM P GROUP BY k WITH TUMBLING(10)", 10),
    ("SELECT k, COUNT(*) AS n FROM L GROUP BY k WITH HOPPING(10, 2)", 39),
    ("SELECT k, COUNT(*) AS n FROM L GROUP BY k WITH SNAPSHOT", 60),
    ("SELECT k, v FROM M ORDER BY v LIMIT 2", 14),
    ("SELECT k, COUNT(*) AS n FROM M GROUP BY k WITH TUMBLING(5) ORDER BY n LIMIT 1", 0),
    ("SELECT l.k AS k FROM L AS l INNER JOIN M AS m ON l.k = m.k", 29),
    ("SELECT m.k AS k FROM M AS m LEFT OUTER JOIN L AS l ON l.k = m.k", 37),
    ("SELECT l.k AS k FROM M AS m RIGHT OUTER JOIN L AS l ON l.k = m.k", 60),
    ("SELECT l.k AS k FROM M AS m FULL OUTER JOIN L AS l ON l.k = m.k", 60),
    ("SELECT m.k AS k FROM M AS m LEFT SEMI JOIN L AS l ON l.k = m.k", 37),
    ("SELECT m.k AS k FROM M AS m LEFT ANTI JOIN L AS l ON l.k = m.k", 37),
    ("SELECT m.k AS k FROM M AS m CLIP JOIN A AS a ON a.k = m.k", 7),
    # One on the other, in one stage.
    (
        "SELECT k, MAX(n) AS n FROM (SELECT k, COUNT(*) AS n FROM P GROUP BY k WITH TUMBLING(10))"
        " AS c GROUP BY k WITH TUMBLING(40)",
        10 + 9 + 40,
    ),
    (
        "SELECT k, COUNT(*) AS n FROM (SELECT k, COUNT(*) AS n FROM P GROUP BY k WITH TUMBLING(10))"
        " AS c GROUP BY k WITH SNAPSHOT",
        10 + 10 + 10,
    ),
    (
        "SELECT k, MAX(n) AS n FROM (SELECT * FROM (SELECT k, COUNT(*) AS n FROM P GROUP BY k"
        " WITH TUMBLING(10)) AS c WITH SHIFT(5)) AS d GROUP BY k WITH TUMBLING(40)",
        10 + 9 + 40,
    ),
    (
        "SELECT k, MAX(n) AS n FROM (SELECT * FROM (SELECT k, COUNT(*) AS n FROM P GROUP BY k"
        " WITH TUMBLING(10)) AS c WITH POINT_AT_END) AS d GROUP BY k WITH TUMBLING(40)",
        10 + 10 + 40,
    ),
    (
        "SELECT k, MAX(n) AS n FROM (SELECT * FROM (SELECT k, COUNT(*) AS n FROM P GROUP BY k"
        " WITH TUMBLING(10)) AS c WITH HOP_LIFETIME(1, 3)) AS d GROUP BY k WITH TUMBLING(40)",
        10 + 3 + 40,
    ),
    (
        "SELECT k, MAX(n) AS n FROM (SELECT * FROM (SELECT k, COUNT(*) AS n FROM P GROUP BY k"
        " WITH TUMBLING(10)) AS c WITH QUANTIZE(1, 3)) AS d GROUP BY k WITH TUMBLING(40)",
        10 + 3 + 13 + 40,
    ),
]


@pytest.mark.parametrize(("query", "ticks"), HORIZONS)
def test_a_horizon(query: str, ticks: int) -> None:
    assert last(query).ticks == ticks


REFUSED = [
    ("SELECT DISTINCT k FROM P", "DISTINCT: a row goes on"),
    ("SELECT k FROM L WITH STITCH", "STITCH: a row goes on"),
    ("SELECT k, COUNT(*) AS n FROM P GROUP BY k WITH SESSION(5)", "SESSION: a session goes on"),
    ("SELECT k, COUNT(*) AS n FROM P GROUP BY k WITH COUNT(3)", "COUNT: a window is found"),
    ("SELECT p.k AS k FROM P AS p ASOF JOIN L AS l ON l.k = p.k", "ASOF JOIN: the newest"),
    ("SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(10)", "HOPPING over events whose"),
    ("SELECT k, COUNT(*) AS n FROM A GROUP BY k", "SNAPSHOT over events whose"),
    ("SELECT k, v FROM A ORDER BY v LIMIT 2", "LIMIT over events whose"),
    ("SELECT a.k AS k FROM A AS a INNER JOIN L AS l ON l.k = a.k", "INNER JOIN over events"),
    ("SELECT l.k AS k FROM L AS l LEFT ANTI JOIN A AS a ON l.k = a.k", "ANTI JOIN over events"),
    ("SELECT a.k AS k FROM A AS a CLIP JOIN P AS p ON p.k = a.k", "CLIP JOIN over events"),
    (
        "SELECT k, COUNT(*) AS n FROM (SELECT * FROM (SELECT a.k AS k FROM A AS a CLIP JOIN P AS p"
        " ON p.k = a.k) AS c WITH POINT_AT_END) AS d GROUP BY k WITH TUMBLING(3)",
        "CLIP JOIN over",
    ),
]


@pytest.mark.parametrize(("query", "why"), REFUSED)
def test_all_of_history(query: str, why: str) -> None:
    found = last(query)
    assert not found.known and str(found) == "all of history"
    assert why in found.why


def test_a_lifetime_that_the_program_bounds_is_enough() -> None:
    query = "SELECT k, COUNT(*) AS n FROM {} GROUP BY k WITH TUMBLING(10)"
    clipped = "(SELECT * FROM A WITH CLIP_DURATION(4)) AS c"
    assert not last(query.format("A")).known
    assert last(query.format(clipped)).ticks == 13

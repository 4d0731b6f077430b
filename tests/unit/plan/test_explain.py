"""What `explain` prints: text for people, dot for Graphviz, JSON for machines."""

import json
import re
from decimal import Decimal

import pytest

from weir.plan.explain.explanation import explain, guarantee
from weir.plan.expressions import Call, Literal
from weir.plan.operators import Filter, Project
from weir.plan.program import Output, Program
from weir.plan.render import render, render_value
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.stages import cut_stages
from weir.script.program import parse_program

FIGURE = """
STREAM Process (ProcessID BIGINT, UserID BIGINT, Path STRING, At TIMESTAMP, Ended TIMESTAMP)
  FROM 'process.jsonl' WITH (vs = At, ve = Ended);
STREAM Alert (ProcessID BIGINT, Name STRING, At TIMESTAMP)
  FROM 'data/alert/*.jsonl' WITH (vs = At, delay = 10s, late = 'drop');
AlertWithUserID =
  SELECT Alert.Name AS Name, Process.UserID AS UserID
  FROM Process INNER JOIN Alert ON Process.ProcessID == Alert.ProcessID;
CountAlerts =
  SELECT UserID, COUNT(*) AS AlertCount FROM AlertWithUserID GROUP BY UserID WITH HOPPING(5s, 5s);
OUTPUT CountAlerts TO 'out/counts.parquet';
OUTPUT LATE OF Alert TO 'out/late.jsonl';
"""

FIGURE_TEXT = """\
Plan

  Process =
    Source Process FROM 'process.jsonl' (vs = At, ve = Ended)

  Alert =
    Source Alert FROM 'data/alert/*.jsonl' (vs = At, delay = 10s, late = 'drop')

  AlertWithUserID =
    Project Process.UserID AS UserID
      Join INNER ON Process.ProcessID = Alert.ProcessID
        Project ProcessID AS Process.ProcessID, UserID AS Process.UserID
          Process
        Project ProcessID AS Alert.ProcessID
          Alert

  CountAlerts =
    Project UserID, $a0 AS AlertCount
      Aggregate COUNT(*) AS $a0 BY UserID WITH TUMBLING(5s)  [holds rows: 5s]
        AlertWithUserID

Stages

  stage 0: a vertex for each partition of Process
    runs    Source Process FROM 'process.jsonl' (vs = At, ve = Ended)
            Project ProcessID AS Process.ProcessID, UserID AS Process.UserID
    writes  0.*/0: 4 parts, by hash of Process.ProcessID
    keeps   nothing
    holds   no row back
    recover checkpoint(10s): a source keeps its position

  stage 1: a vertex for each partition of Alert
    runs    Source Alert FROM 'data/alert/*.jsonl' (vs = At, delay = 10s, late = 'drop')
            Project ProcessID AS Alert.ProcessID
    writes  1.*/0: 4 parts, by hash of Alert.ProcessID
            1.*/late: late rows
    keeps   nothing
    holds   no row back
    recover checkpoint(10s): a source keeps its position

  stage 2: 4 vertices
    port 0  stage 0, by hash of Process.ProcessID
    port 1  stage 1, by hash of Alert.ProcessID
    runs    Join INNER ON Process.ProcessID = Alert.ProcessID
            Project Process.UserID AS UserID
    writes  2.*/0: 4 parts, by hash of UserID
    keeps   Join: left and right rows until they end
    holds   no row back
    recover checkpoint(10s): it depends on all of history: INNER JOIN over events whose lifetime
                the program does not bound (CLIP_DURATION or CHOP before it would)

  stage 3: 4 vertices, split by UserID
    port 0  stage 2, by hash of UserID
    runs    Aggregate COUNT(*) AS $a0 BY UserID WITH TUMBLING(5s)
            Project UserID, $a0 AS AlertCount
    writes  3.*/0: all rows
    keeps   Aggregate: panes of open windows: one row of sums for each key and pane
    holds   Aggregate: 5s
    recover replay: what comes depends on 5s of input

Outputs

  CountAlerts to 'out/counts.parquet', from stage 3; exactly once
  late rows of Alert to 'out/late.jsonl', from its ingress; exactly once
"""

MANY = """
STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT, note STRING) FROM 'a "b".jsonl'
  WITH (vs = vs, ve = ve);
Both = SELECT k, v FROM A WHERE note LIKE 'a\\_%' UNION ALL SELECT note AS k, v FROM A;
Ranked = SELECT k, v FROM Both ORDER BY v DESC LIMIT 3 WITH TIES;
Seen = SELECT DISTINCT k FROM Both PARTITION BY k INTO 3 AS 'seen';
OUTPUT Ranked TO 'out/ranked.jsonl';
OUTPUT Seen TO 'console:';
"""


def explained(text: str, format: str, parallelism: int = 4) -> str:
    program: Program = rewrite(parse_program(text))
    return explain(program, cut_stages(program, parallelism), format)  # type: ignore[arg-type]


# --- text ----------------------------------------------------------------------------------


def test_text() -> None:
    assert explained(FIGURE, "text") == FIGURE_TEXT


def test_what_several_read_is_shown_once() -> None:
    text = explained(MANY, "text")
    assert len(re.findall("Source A FROM", text.partition("Stages")[0])) == 1
    assert text.count("Top ORDER BY v DESC LIMIT 3 WITH TIES of each instant") == 2
    assert "Branch 1 of a union" in text


def test_text_says_why_a_stage_is_single_and_what_partitions_are_called() -> None:
    text = explained(MANY, "text")
    assert "1 vertex (Top without keys sees all rows together)" in text
    assert "3 vertices, split by k, called 'seen'" in text
    assert "[holds rows: unbounded]" in text
    assert "[holds rows: longest lifetime]" in text
    assert "Seen to 'console:'" in text
    assert "at least once" in text


def test_only_what_has_no_file_is_written_at_least_once() -> None:
    (source,) = parse_program("STREAM A (vs BIGINT) FROM 'a.csv'; OUTPUT A TO 'o.csv';").sources
    paths = ("console:", "callback:", "console:x.jsonl", "callback:/", "o.csv")
    assert [guarantee(Output("A", source, path)) for path in paths] == [
        "at least once",
        "at least once",
        "exactly once",
        "exactly once",
        "exactly once",
    ]


def test_lines_stay_short() -> None:
    names = ", ".join(f"v + {i} AS a_rather_long_name_{i}" for i in range(40))
    text = explained(
        f"""STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
            Out = SELECT {names} FROM A; OUTPUT Out TO 'out.jsonl';""",
        "text",
    )
    assert max(map(len, text.splitlines())) <= 100


def test_deep_trees_keep_room_to_read() -> None:
    query = "A"
    for i in range(60):
        query = f"(SELECT v // 2 AS v FROM {query} WITH DURATION({i + 1}))"
    text = explained(
        f"""STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
            Out = SELECT v FROM {query}; OUTPUT Out TO 'out.jsonl';""",
        "text",
    )
    assert "AlterLifetime DURATION(60us)" in text


# --- dot -----------------------------------------------------------------------------------

_STATEMENT = re.compile(
    r"""\s*(
        digraph\ \w+\ \{ | \} | subgraph\ cluster_\d+\ \{
      | (rankdir|label)=("(?:[^"\\]|\\.)*"|\w+);
      | \w+(\ ->\ \w+)?(\ \[(\w+=("(?:[^"\\]|\\.)*"|\w+)(,\ )?)+\])?;
    )""",
    re.VERBOSE,
)


@pytest.mark.parametrize("program", [FIGURE, MANY])
def test_dot_is_a_graph(program: str) -> None:
    lines = explained(program, "dot").splitlines()
    assert all(_STATEMENT.fullmatch(line) for line in lines)
    assert sum(line.endswith("{") for line in lines) == sum(line.strip() == "}" for line in lines)
    declared = {m[1] for line in lines if (m := re.match(r"\s*(\w+) \[.*label=", line))}
    used = {n for line in lines if " -> " in line for n in re.findall(r"\b(?:s\d+_|out)\d+", line)}
    assert used <= declared


def test_dot_shows_channels_and_outputs() -> None:
    dot = explained(FIGURE, "dot")
    assert 's2_1 -> s3_0 [label="hash of UserID"];' in dot
    assert 'out0 [shape=note, label="CountAlerts\\nout/counts.parquet"];' in dot
    assert 's1_0 -> out1 [label="late"];' in dot
    assert 'label="stage 3 (x 4, split by UserID)";' in dot


# --- JSON ----------------------------------------------------------------------------------


def test_json() -> None:
    document = json.loads(explained(FIGURE, "json"))
    assert set(document) == {"plan", "streams", "stages", "outputs"}
    plan = document["plan"]
    assert [node["id"] for node in plan] == list(range(len(plan)))
    assert all(set(node["inputs"]) <= set(range(node["id"])) for node in plan)
    (window,) = (n for n in plan if n["op"] == "Aggregate")
    assert window["columns"] == [
        {"name": "UserID", "type": "BIGINT"},
        {"name": "$a0", "type": "BIGINT"},
    ]
    assert window["detail"] == "COUNT(*) AS $a0 BY UserID WITH TUMBLING(5s)"
    assert window["hold"] == "5s"
    last = document["stages"][-1]
    assert last["vertices"] == 4
    assert last["split_by"] == ["UserID"]
    assert last["ports"] == [[{"stage": 2, "channel": "hash", "keys": ["UserID"]}]]
    assert last["operators"][0] == {"node": window["id"]}
    assert last["hold"] == "5s"
    assert last["keeps"] == ["panes of open windows: one row of sums for each key and pane"]
    assert plan[document["streams"]["CountAlerts"]]["op"] == "Project"
    assert document["outputs"][0]["stages"] == [3]
    assert document["outputs"][1]["kind"] == "late"


def test_the_program_as_it_was_written() -> None:
    program = parse_program(FIGURE)
    staged = cut_stages(rewrite(program), 2)
    assert "Path AS Process.Path" in explain(program, staged, "text")
    written = json.loads(explain(program, staged, "json"))
    ran = {o["node"] for s in written["stages"] for o in s["operators"]}
    assert ran <= {node["id"] for node in written["plan"]}


# --- expressions ---------------------------------------------------------------------------

EXPRESSIONS = [
    "v + 1 > 3 AND (k = 'it''s' OR NOT b)",
    "(v + 1) * 2 - (v - (v - 1)) = 7",
    "-v // 3 % 2 = 1",
    "k IS NULL OR v IS NOT NULL",
    "v IN (1, 2) AND k LIKE 'a%' AND k RLIKE '^b'",
    "CASE WHEN b THEN k ELSE 'x' END = k || 'y'",
    "CAST(v AS DOUBLE) / CAST(2 AS DOUBLE) < f",
    "TRY_CAST(k AS BIGINT) = v",
    "UPPER(SUBSTRING(k, 1, 2)) = 'AB'",
    "EXTRACT(year FROM at) = 2024",
    "r.a = 1",
    "NOT (v = 1) AND (v = 1) = b",
    "COALESCE(b, FALSE)",
]


def condition(text: str) -> object:
    program = parse_program(
        f"""STREAM A (vs BIGINT, k STRING, v BIGINT, f DOUBLE, b BOOLEAN, at TIMESTAMP,
                      r STRUCT(a BIGINT)) FROM 'a.jsonl';
            Out = SELECT * FROM A WHERE {text};"""
    )
    node = dict(program.streams)["Out"]
    assert isinstance(node, Filter)
    return node.predicate


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_read_back_as_they_were(text: str) -> None:
    bound = condition(text)
    assert condition(render(bound)) == bound  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        ("a'b", "'a''b'"),
        (b"\x01\xff", "X'01ff'"),
        (Decimal("1E+2"), "100"),
        ([1, None], "[1, NULL]"),
        (1.5, "1.5"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert render_value(value) == text


def test_parentheses_only_where_they_are_needed() -> None:
    a, b = Literal(1), Literal(2)
    chain = Call("and", (Call("and", (a, b)), Call("or", (a, b))))
    assert render(chain) == "1 AND 2 AND (1 OR 2)"
    assert render(Call("sub", (a, Call("sub", (a, b))))) == "1 - (1 - 2)"
    assert render(Call("neg", (Call("neg", (a,)),))) == "-(-1)"


def test_a_projection_of_nothing_says_so() -> None:
    program = rewrite(
        parse_program(
            """STREAM A (vs BIGINT, v BIGINT) FROM 'a.jsonl';
               Out = SELECT COUNT(*) AS n FROM A; OUTPUT Out TO 'out.jsonl';"""
        )
    )
    below = program.outputs[0].node.inputs[0].inputs[0]
    assert isinstance(below, Project)
    assert "Project no columns" in explain(program, cut_stages(program), "text")

"""Whole programs: statements, options, parameters, imports, outputs."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from weir.errors import ScriptError
from weir.events.types import BIGINT, DOUBLE, STRING, TIMESTAMP
from weir.plan.lifetime_changes import Shift
from weir.plan.operators import AlterLifetime, Apply, Filter, Source
from weir.plan.operators import SourceOptions as Options
from weir.plan.program import Output
from weir.plan.windows import Hopping
from weir.script import parse_program

A = "STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT) FROM 'a.jsonl';\n"
B = "STREAM B (vs BIGINT, j STRING) FROM 'b.jsonl';\n"

FIGURE_1 = """
STREAM Process (ProcessID BIGINT, UserID BIGINT, At TIMESTAMP) FROM 'p/*.jsonl'
  WITH (vs = At, lifetime = 1h);
STREAM Alert (ProcessID BIGINT, Name STRING, At TIMESTAMP) FROM 'data/alert/*.jsonl'
  WITH (vs = At, delay = 10s, late = 'drop');
AlertWithUserID =
  SELECT Alert.Name AS Name, Process.UserID AS UserID
  FROM Process INNER JOIN Alert ON Process.ProcessID == Alert.ProcessID;
CountAlerts =
  SELECT UserID, COUNT(*) AS AlertCount
  FROM AlertWithUserID
  GROUP BY UserID
  WITH HOPPING(5s, 5s);
OUTPUT CountAlerts TO 'out/counts.parquet';
OUTPUT LATE OF Alert TO 'out/late.jsonl';
OUTPUT BAD OF Alert TO 'out/bad.jsonl';
SET strategy = 'checkpoint(10s)';
SET allow_unbounded = true;
"""


def test_figure_1() -> None:
    program = parse_program(FIGURE_1)
    process, alert = program.sources
    assert alert == Source(
        "Alert",
        (("ProcessID", BIGINT), ("Name", STRING), ("At", TIMESTAMP)),
        "data/alert/*.jsonl",
        Options("At", delay=10_000_000, late="drop"),
        1,
    )
    assert process.options == Options("At", lifetime=3_600_000_000)
    streams = dict(program.streams)
    assert list(streams) == ["AlertWithUserID", "CountAlerts"]
    assert program.outputs == (
        Output("CountAlerts", streams["CountAlerts"], "out/counts.parquet"),
        Output("Alert", alert, "out/late.jsonl", "late"),
        Output("Alert", alert, "out/bad.jsonl", "bad"),
    )
    assert program.settings == (("strategy", "checkpoint(10s)"), ("allow_unbounded", True))


def test_columns_of_every_type() -> None:
    text = """STREAM A (t TIMESTAMP, a INT, b DOUBLE, c BOOLEAN, d BINARY, e DATE, f DECIMAL(9, 2),
        g LIST(BIGINT), h ARRAY<STRING>, i STRUCT(x INT, y LIST(DATE)), "j k" string, l DECIMAL(5))
        FROM 'x' WITH (vs = t);"""
    (source,) = parse_program(text).sources
    assert source.declared == (
        ("t", TIMESTAMP),
        ("a", pa.int32()),
        ("b", DOUBLE),
        ("c", pa.bool_()),
        ("d", pa.binary()),
        ("e", pa.date32()),
        ("f", pa.decimal128(9, 2)),
        ("g", pa.list_(BIGINT)),
        ("h", pa.list_(STRING)),
        ("i", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.date32()))])),
        ("j k", STRING),
        ("l", pa.decimal128(5, 0)),
    )


@pytest.mark.parametrize(
    ("columns", "options", "expected"),
    [
        ("vs BIGINT", "", Options("vs")),
        ("vs BIGINT, ve BIGINT", "", Options("vs", "ve")),
        ("vs BIGINT, e BIGINT", "WITH (ve = e)", Options("vs", "e")),
        ("a TIMESTAMP", "WITH (VS = a, idle = 5s)", Options("a", idle=5_000_000)),
        ("a BIGINT", "WITH (vs = 'a', lifetime = 3)", Options("a", lifetime=3)),
        ("a BIGINT", "WITH (vs = a, late = adjust)", Options("a", late="adjust")),
        ("a BIGINT", "WITH (vs = a, delay = 0, bad = 'skip')", Options("a", bad="skip")),
    ],
)
def test_stream_options(columns: str, options: str, expected: Options) -> None:
    (source,) = parse_program(f"STREAM A ({columns}) FROM 'x' {options};").sources
    assert source.options == expected


# --- parameters ------------------------------------------------------------------------------

DECLARED = (
    A
    + """DECLARE @least DOUBLE = 0.9;
DECLARE @size BIGINT = 5s;
DECLARE @where STRING = 'out.jsonl';
X = SELECT v FROM A WHERE v > @least WITH SHIFT(@size);
OUTPUT X TO @where;
"""
)


@pytest.mark.parametrize(
    ("params", "least", "size", "path"),
    [
        ({}, 0.9, 5_000_000, "out.jsonl"),
        ({"least": "1", "size": "2m", "where": "o.csv"}, 1.0, 120_000_000, "o.csv"),
        ({"least": "-1e3", "size": "-7"}, -1000.0, -7, "out.jsonl"),
    ],
)
def test_parameters(params: dict[str, str], least: float, size: int, path: str) -> None:
    program = parse_program(DECLARED, params=params)
    (output,) = program.outputs
    assert output.path == path
    node = output.node
    assert isinstance(node, AlterLifetime) and node.change == Shift(size)
    nodes = [node.input]
    while not isinstance(nodes[-1], Filter):
        nodes.append(nodes[-1].input)  # type: ignore[union-attr]
    assert f"value={least})" in repr(nodes[-1].predicate)


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("INT = 1", "2147483647"),
        ("BOOLEAN = true", "FALSE"),
        ("TIMESTAMP = TIMESTAMP '2024-01-01'", "2024-01-02T00:00:00Z"),
        ("DATE = DATE '2024-01-01'", "2024-01-02"),
        ("DECIMAL(5, 2) = 0.90", "-12.5"),
        ("DECIMAL(5, 2) = NULL", "1"),
        ("LIST(BIGINT) = [1, 2]", None),
    ],
)
def test_parameters_of_every_type(declared: str, text: str | None) -> None:
    program = f"{A}DECLARE @p {declared};\nX = SELECT @p AS p FROM A;"
    parse_program(program, params={} if text is None else {"p": text})


def test_a_decimal_parameter_keeps_its_digits() -> None:
    program = parse_program(f"{A}DECLARE @p DECIMAL(5, 2) = 0.10;\nX = SELECT @p AS p FROM A;")
    assert repr(Decimal("0.10")) in repr(program.streams[0])


# --- the user's own code ---------------------------------------------------------------------

RULES = """
from weir.events.types import BIGINT, STRING
from weir.plan.usercode.functions import AggregateFunction, OperatorFunction, ScalarFunction

class Spread:
    pass

class Sessions:
    def __init__(self, wait=0, name="", sign=1):
        pass

double = ScalarFunction("double", lambda v: 2 * v, (BIGINT,), BIGINT)
spread = AggregateFunction("spread", Spread, (BIGINT,), BIGINT)
sessions = OperatorFunction("Sessions", Sessions, (("n", BIGINT),), ())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules.py").write_text(RULES)
    return tmp_path


def test_import_and_operators(folder: Path) -> None:
    text = f"""{A}{B}IMPORT 'rules.py';
        S = SELECT double(v) AS d FROM A;
        G = SELECT spread(v) FILTER (WHERE v > 0) AS s FROM A WITH TUMBLING(5);
        P = PROCESS A USING Sessions();
        R = REDUCE A ON k, v USING Sessions(30m, 'x', -1);
        C = COMBINE A WITH B ON A.k == B.j USING Sessions();
        D = COMBINE A WITH B ON B.j = A.k USING Sessions();"""
    streams = dict(parse_program(text, directory=folder).streams)
    applied = {name: node for name, node in streams.items() if isinstance(node, Apply)}
    keys = {name: node.keys for name, node in applied.items()}
    assert keys == {"P": ((),), "R": (("k", "v"),), "C": (("k",), ("j",)), "D": (("k",), ("j",))}
    assert applied["R"].call.args == (1_800_000_000, "x", -1)
    assert applied["C"].call.operator.name == "Sessions"
    with pytest.raises(ScriptError, match=r"Sessions takes .*: too many positional") as caught:
        parse_program(
            f"{A}IMPORT 'rules.py'; P = PROCESS A USING Sessions(1, 2, 3, 4);", directory=folder
        )
    assert caught.value.source_line[caught.value.column - 1 :].startswith("PROCESS A")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1 / 0", "'bad.py', line 1: ZeroDivisionError"),
        ("\nx = (", "'bad.py', line 2: SyntaxError"),
        ("import sys\nsys.exit(3)", "'bad.py', line 2: SystemExit"),
        ("import no_such_module", "'bad.py', line 1: ModuleNotFoundError"),
        (RULES.replace('"double"', '"Upper"'), "`Upper`, which is built in"),
        (RULES.replace('"double"', '"count_distinct"'), "`count_distinct`, which is built in"),
    ],
)
def test_what_an_import_raises_is_a_script_error(tmp_path: Path, code: str, message: str) -> None:
    (tmp_path / "bad.py").write_text(code)
    with pytest.raises(ScriptError) as caught:
        parse_program("IMPORT 'bad.py';", directory=tmp_path)
    assert message in str(caught.value)
    assert (caught.value.line, caught.value.column) == (1, 8)


def test_errors_pickle() -> None:
    with pytest.raises(ScriptError) as caught:
        parse_program("A = SELECT;", name="p.weir")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)
    assert str(copy).startswith("p.weir, line 1, column 11: expected an expression, found `;`")


# --- the conformance programs ----------------------------------------------------------------


def _word(values: list[object]) -> str:
    kinds = {type(v) for v in values if v is not None}
    if list in kinds:
        return f"LIST({_word([e for v in values if isinstance(v, list) for e in v])})"
    for kind, word in ((str, "STRING"), (float, "DOUBLE"), (bool, "BOOLEAN")):
        if kind in kinds:
            return word
    return "BIGINT"


def _declaration(name: str, rows: object, options: str) -> str:
    parts = rows["partitions"] if isinstance(rows, dict) else [rows]
    events = [r for part in parts for r in part if "$cti" not in r]  # type: ignore[attr-defined]
    names = ["vs", *dict.fromkeys(n for e in events for n in e if n != "vs")]
    columns = ", ".join(f'"{n}" {_word([e.get(n) for e in events])}' for n in names)
    return f"STREAM {name} ({columns}) FROM '{name}.jsonl' {f'WITH ({options})' * bool(options)};\n"


CASES = Path(__file__).parents[2] / "conformance"
AT_RUN_TIME = ("late", "overflow", "open", "zero")


@pytest.mark.parametrize("file", ["algebra", "edges", "random"])
def test_conformance_programs(file: str) -> None:
    lines = (CASES / f"{file}.jsonl").read_text().splitlines()
    assert lines
    for case in map(json.loads, lines):
        options = case.get("options", {})
        inputs = case["inputs"].items()
        text = "".join(_declaration(n, rows, options.get(n, "")) for n, rows in inputs)
        wanted = case.get("error")
        if wanted is None or wanted in AT_RUN_TIME:
            assert "Out" in dict(parse_program(text + case["program"]).streams)
            continue
        with pytest.raises(ScriptError) as caught:
            parse_program(text + case["program"])
        assert wanted.lower() in str(caught.value).lower()


def test_windows_reach_the_plan() -> None:
    program = parse_program(A + "X = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(5);")
    assert repr(Hopping(5, 5, 0)) in repr(program.streams[0])

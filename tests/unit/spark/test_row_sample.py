"""When grouped aggregates are added up before the shuffle."""

from __future__ import annotations

from pathlib import Path

import pytest

from weir.ingress.memory_partitions import MemoryPartition
from weir.plan.operators import PartialAggregate
from weir.plan.program import Program
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.traversal import ordered_nodes
from weir.script.program import parse_program
from weir.spark.row_sample import rows_share_keys

A = "STREAM A (vs BIGINT, k BIGINT, words LIST(STRING)) FROM 'a.jsonl';"


def is_cut(query: str, *, keys: int, rows: int = 200) -> bool:
    program = parse_program(f"{A} {query} OUTPUT Out TO 'x.csv';")
    items = [{"vs": t, "k": t % keys, "words": ["a", "b", "a"]} for t in range(rows)]
    partitions = {"A": [MemoryPartition("A", items, program.sources[0].declared)]}
    return has_partial(rewrite(program, lambda node: rows_share_keys(node, partitions)))


def has_partial(program: Program) -> bool:
    nodes = ordered_nodes([program.outputs[0].node])
    return any(isinstance(n, PartialAggregate) for n in nodes)


COUNT = "Out = SELECT k, COUNT(*) AS n FROM A GROUP BY k WITH TUMBLING(100);"


@pytest.mark.parametrize(("keys", "cut"), [(2, True), (20, True), (150, False)])
def test_it_pays_when_rows_share_keys(keys: int, cut: bool) -> None:
    assert is_cut(COUNT, keys=keys) == cut


def test_windows_of_few_rows_do_not_pay() -> None:
    assert not is_cut(COUNT.replace("100", "3"), keys=2)


def test_what_lies_between_is_looked_through() -> None:
    query = """W = SELECT EXPLODE(words) AS w FROM A WHERE k > 0;
        Out = SELECT w, COUNT(*) AS n FROM W GROUP BY w WITH HOPPING(100, 50);"""
    assert is_cut(query, keys=100)


def test_nothing_to_look_at() -> None:
    assert not is_cut(COUNT, keys=2, rows=0)
    joined = """J = SELECT X.k AS k FROM A AS X INNER JOIN A AS Y ON X.k == Y.k;
        Out = SELECT k, COUNT(*) AS n FROM J GROUP BY k WITH TUMBLING(100);"""
    assert not is_cut(joined, keys=2)


def test_only_where_somebody_asks() -> None:
    program = parse_program(f"{A} {COUNT} OUTPUT Out TO 'x.csv';")
    assert not has_partial(rewrite(program))


@pytest.mark.parametrize(
    "between",
    [
        "SELECT told(k) AS k FROM A",
        "SELECT k FROM A WHERE told(k) > 0",
        "SELECT k FROM A WITH LIFETIME(vs, vs + told(k) + 1)",
        "SELECT k + 0 AS k FROM (SELECT k FROM A WHERE told(k) > 0)",
    ],
)
def test_user_code_does_not_run_for_a_look(between: str, tmp_path: Path) -> None:
    called = tmp_path / "called"
    code = f"""
import weir
@weir.udf(args=["BIGINT"], result="BIGINT")
def told(v):
    open({str(called)!r}, "w").close()
    return v
"""
    (tmp_path / "told.py").write_text(code, "utf-8")
    text = f"""IMPORT 'told.py'; {A} T = {between};
        Out = SELECT k, COUNT(*) AS n FROM T GROUP BY k WITH TUMBLING(100);
        OUTPUT Out TO 'x.csv';"""
    program = parse_program(text, directory=tmp_path)
    items = [{"vs": t, "k": 1, "words": []} for t in range(50)]
    partitions = {"A": [MemoryPartition("A", items, program.sources[0].declared)]}
    cut = rewrite(program, lambda node: rows_share_keys(node, partitions))
    assert not has_partial(cut)
    assert not called.exists()

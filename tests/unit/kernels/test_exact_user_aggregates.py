"""An aggregate that is declared exact is added to and removed from; the answer is the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from weir import testing

CODE = """
import weir

class Product:
    def zero(self) -> int:
        return 1
    def add(self, state: int, v: int) -> int:
        with open("calls.txt", "a") as file:
            file.write("add ")
        return state * (v or 1)
    def remove(self, state: int, v: int) -> int:
        return state // (v or 1)
    def merge(self, a: int, b: int) -> int:
        return a * b
    def result(self, state: int) -> int:
        return state

Folded = weir.aggregate(type("Folded", (Product,), {}))
Kept = weir.aggregate(exact=True)(type("Kept", (Product,), {}))
"""

WINDOWS = ["HOPPING(12, 3)", "TUMBLING(5)", "SNAPSHOT", "SESSION(4)", "COUNT(3, 1)"]


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "products.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return """IMPORT 'products.py';
        STREAM A (vs BIGINT, ve BIGINT, k STRING, v BIGINT) FROM 'a.jsonl' WITH (vs = vs, ve = ve);
    """


def _events() -> list[dict[str, object]]:
    chance = random.Random(5)
    rows = []
    for vs in sorted(chance.randrange(60) for _ in range(40)):
        row = {"vs": vs, "ve": vs + chance.randint(1, 9), "k": chance.choice("ab")}
        rows.append({**row, "v": chance.choice([None, 1, 2, 3])})
    return rows


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("restart", [None, 3])
def test_kept_states_give_what_folding_gives(
    declared: str, window: str, restart: int | None
) -> None:
    text = (
        f"{declared} Out = SELECT k, Folded(v) AS a, Kept(v) AS b FROM A GROUP BY k WITH {window};"
    )
    rows = testing.run(text, {"A": [_events()]}, cut=7, snapshot_at=restart).rows
    assert rows and any(r["a"] != 1 for r in rows)
    assert [r["a"] for r in rows] == [r["b"] for r in rows]


def test_an_event_is_added_once_however_many_windows_it_is_in(declared: str) -> None:
    text = f"""{declared} Out = SELECT Kept(v) AS b FROM A WITH HOPPING(1000, 10);
    """
    found = testing.run(text, {"A": [[{"vs": 5, "ve": 6, "k": "a", "v": 2}]]}).rows
    assert len(found) == 100 and {r["b"] for r in found} == {2}
    assert Path("calls.txt").read_text(encoding="utf-8") == "add "

"""Draws docs/pictures.md: for every operator and window its rows before and after, as intervals.

    python docs/pictures.py          write the page and its drawings
    python docs/pictures.py --check  fail if they are not what this would write

Nothing is drawn by hand: each program runs, and its rows are drawn as they come out.
"""

from __future__ import annotations

import html
import sys
from dataclasses import dataclass
from pathlib import Path

from weir.testing import run

HERE = Path(__file__).parent
FOLDER = HERE / "figures" / "intervals"
END = 20
"""Pictures show the ticks from 0 to here."""
TICK, ROW, LEFT, TOP = 26, 20, 40, 6

Rows = list[dict[str, object]]

A: Rows = [
    {"vs": 1, "ve": 7, "k": "x", "v": 1},
    {"vs": 4, "ve": 12, "k": "y", "v": 2},
    {"vs": 9, "ve": 15, "k": "x", "v": 3},
]
B: Rows = [
    {"vs": 3, "ve": 5, "k": "x", "w": 5},
    {"vs": 10, "ve": 13, "k": "x", "w": 6},
]
POINTS: Rows = [
    {"vs": t, "ve": t + 1, "k": "x", "v": v} for v, t in enumerate((1, 3, 4, 9, 11, 16), 1)
]
PIECES: Rows = [
    {"vs": 1, "ve": 5, "k": "x", "v": 1},
    {"vs": 5, "ve": 9, "k": "x", "v": 1},
    {"vs": 7, "ve": 11, "k": "x", "v": 1},
    {"vs": 13, "ve": 16, "k": "x", "v": 1},
]


@dataclass(frozen=True)
class Picture:
    """A query over A (and B), what it shows, and the rows it is shown with."""

    name: str
    query: str
    says: str
    a: Rows
    b: Rows | None = None


JOINS = [
    Picture(
        "inner",
        "SELECT A.v, B.w FROM A JOIN B ON A.k = B.k",
        "Each matching pair, for as long as both are valid.",
        A,
        B,
    ),
    Picture(
        "left",
        "SELECT A.v, B.w FROM A LEFT JOIN B ON A.k = B.k",
        "The inner join, and each left row with NULL while nothing matches it.",
        A,
        B,
    ),
    Picture(
        "semi",
        "SELECT v FROM A LEFT SEMI JOIN B ON A.k = B.k",
        "The left row, while something matches it.",
        A,
        B,
    ),
    Picture(
        "anti",
        "SELECT v FROM A LEFT ANTI JOIN B ON A.k = B.k",
        "The left row, while nothing matches it.",
        A,
        B,
    ),
    Picture(
        "clip",
        "SELECT v FROM A CLIP JOIN B ON A.k = B.k",
        "The left row, up to the first match that begins after its start.",
        A,
        B,
    ),
    Picture(
        "asof",
        "SELECT A.v, B.w FROM A ASOF JOIN B ON A.k = B.k",
        "The left row as it is, with the last match that had begun when it began.",
        A,
        B,
    ),
    Picture(
        "cross",
        "SELECT A.v, B.w FROM A CROSS JOIN B",
        "Every pair, for as long as both are valid.",
        A,
        B,
    ),
    Picture("union", "SELECT k FROM A UNION ALL SELECT k FROM B", "All rows of both.", A, B),
]
WINDOWS = [
    Picture(
        "tumbling",
        "SELECT COUNT(*) AS n FROM A WITH TUMBLING(5)",
        "Windows that touch. A row counts in every window that it meets.",
        POINTS,
    ),
    Picture(
        "hopping",
        "SELECT COUNT(*) AS n FROM A WITH HOPPING(10, 5)",
        "A window of 10 every 5: they overlap.",
        POINTS,
    ),
    Picture(
        "session",
        "SELECT COUNT(*) AS n FROM A WITH SESSION(4)",
        "A window ends when nothing has come for 4 ticks.",
        POINTS,
    ),
    Picture(
        "count",
        "SELECT COLLECT(v) AS seen FROM A WITH COUNT(3, 1)",
        "The last three rows, whenever one comes.",
        POINTS,
    ),
    Picture(
        "snapshot",
        "SELECT COUNT(*) AS n FROM A WITH SNAPSHOT",
        "The value at every instant: cut wherever a row begins or ends. It is what an aggregate "
        "without WITH means.",
        A,
    ),
    Picture(
        "sliding",
        "SELECT COUNT(*) AS n FROM (SELECT v FROM A WITH DURATION(6)) AS D",
        "A sliding window over the last 6 ticks: each row lives that long, then SNAPSHOT.",
        POINTS,
    ),
    Picture(
        "group",
        "SELECT k, SUM(v) AS s FROM A GROUP BY k",
        "Each group is cut only where its own rows begin or end.",
        A,
    ),
    Picture(
        "top", "SELECT k, v FROM A ORDER BY v DESC LIMIT 1", "The largest at every instant.", A
    ),
    Picture(
        "distinct",
        "SELECT DISTINCT k FROM A",
        "One row for as long as there is at least one.",
        PIECES,
    ),
]
LIFETIMES = [
    Picture("where", "SELECT v FROM A WHERE v <> 2", "Fewer rows; lifetimes stay the same.", A),
    Picture("duration", "SELECT v FROM A WITH DURATION(3)", "3 ticks, from its start on.", A),
    Picture("shift", "SELECT v FROM A WITH SHIFT(3)", "Both ends move 3 ticks later.", A),
    Picture("extend", "SELECT v FROM A WITH EXTEND(3)", "The end moves 3 ticks later.", A),
    Picture("clip_duration", "SELECT v FROM A WITH CLIP_DURATION(5)", "At most 5 ticks.", A),
    Picture("point", "SELECT v FROM A WITH POINT", "A point at its start.", A),
    Picture("point_at_end", "SELECT v FROM A WITH POINT_AT_END", "A point at its end.", A),
    Picture(
        "lifetime",
        "SELECT v FROM A WITH LIFETIME(vs + 1, vs + 2 * v + 2)",
        "A start moved by a constant, any end.",
        A,
    ),
    Picture("chop", "SELECT v FROM A WITH CHOP(5)", "Cut at every fifth tick.", A),
    Picture(
        "quantize",
        "SELECT v FROM A WITH QUANTIZE(5, 5)",
        "Both ends on the grid of the windows that it meets.",
        A,
    ),
    Picture(
        "hop_lifetime",
        "SELECT v FROM A WITH HOP_LIFETIME(10, 5)",
        "From the next grid point on, up to the one after its start + 10.",
        POINTS,
    ),
    Picture(
        "stitch",
        "SELECT v FROM A WITH STITCH",
        "Two equal rows become one if the second begins where the first ends; overlaps stay.",
        PIECES,
    ),
]
PARTS = {"Joins and unions": JOINS, "Windows and aggregates": WINDOWS, "Lifetimes": LIFETIMES}


def main(check: bool) -> int:
    wanted = {FOLDER / f"{p.name}.svg": drawn(p) for part in PARTS.values() for p in part}
    wanted[HERE / "pictures.md"] = page()
    stale = [path for path, text in wanted.items() if not _is(path, text)]
    if check:
        for path in stale:
            sys.stderr.write(
                f"{path.relative_to(HERE.parent)} is not what docs/pictures.py draws\n"
            )
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.write_text(wanted[path], encoding="utf-8")
    return 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def page() -> str:
    lines = [
        "# Operators in pictures",
        "",
        "An event is valid from `vs` up to, not including, `ve`: a bar. Above the line are the "
        "rows that a query reads, below it those that it makes; a number or a name in a bar is its "
        "payload. Every picture is drawn from a run of the query under it "
        "(`python docs/pictures.py`). The [semantics](reference/semantics.md) say, to the tick, "
        "what every operator means.",
    ]
    for title, pictures in PARTS.items():
        lines += ["", f"## {title}"]
        for p in pictures:
            name = p.name.replace("_", " ")
            lines += ["", f"### {name.capitalize()}", "", p.says, ""]
            lines += [f"![{name}: {p.says}](figures/intervals/{p.name}.svg)", ""]
            lines += ["```weir", f"Out = {p.query};", "```"]
    return "\n".join(lines) + "\n"


def drawn(p: Picture) -> str:
    columns = "vs BIGINT, ve BIGINT, k STRING"
    text = f"STREAM A ({columns}, v BIGINT) FROM 'a.jsonl';\n"
    if p.b is not None:
        text += f"STREAM B ({columns}, w BIGINT) FROM 'b.jsonl';\n"
    inputs = {"A": [p.a], **({} if p.b is None else {"B": [p.b]})}
    made = run(f"{text}Out = {p.query};", inputs).rows
    shows_key = "k" in made[0] or p.b is not None
    bars = [("A", row, _label(row, shows_key)) for row in p.a]
    bars += [("B", row, _label(row, shows_key)) for row in p.b or ()]
    made.sort(key=lambda row: (row["vs"], row["ve"]))
    results = [("Out", row, _label(row, True)) for row in made]
    return _svg(bars, results)


def _label(row: dict[str, object], shows_key: bool) -> str:
    values = [v for n, v in row.items() if n not in ("vs", "ve") and (shows_key or n != "k")]
    texts = ["–" if v is None else str(v).replace(" ", "") for v in values]
    return " ".join(texts)


def _svg(above: list[tuple[str, dict[str, object], str]],
         below: list[tuple[str, dict[str, object], str]]) -> str:  # fmt: skip
    line = TOP + len(above) * ROW + 10
    height = line + 14 + len(below) * ROW + 24
    width = LEFT + END * TICK + 12
    parts = []
    for t in range(0, END + 1, 5):
        x = LEFT + t * TICK
        parts.append(f'<line class="g" x1="{x}" y1="{TOP}" x2="{x}" y2="{height - 20}"/>')
        parts.append(f'<text class="t" x="{x}" y="{height - 6}" text-anchor="middle">{t}</text>')
    parts.append(f'<line class="d" x1="4" y1="{line}" x2="{width - 4}" y2="{line}"/>')
    before = ""
    for number, (name, row, label) in enumerate([*above, *below]):
        y = TOP + number * ROW + (24 if number >= len(above) else 0)
        if name != before:
            parts.append(f'<text class="n" x="4" y="{y + 13}">{name}</text>')
            before = name
        parts.append(_bar(name, row, label, y))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="system-ui, sans-serif" font-size="11">\n'
        "<style>.g{stroke:#8884}.d{stroke:#8889}.t,.n{fill:#777}.n{font-weight:600}"
        ".A{fill:#4c8bf5}.B{fill:#e8923c}.Out{fill:#3a9d5d}.l{fill:#fff}"
        "@media(prefers-color-scheme:dark){.t,.n{fill:#aaa}}</style>\n"
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _bar(name: str, row: dict[str, object], label: str, y: int) -> str:
    vs, ve = row["vs"], row["ve"]
    assert isinstance(vs, int)
    assert isinstance(ve, int)
    begin, end = max(vs, 0), min(ve, END)  # a window may begin before the picture does
    x, width = LEFT + begin * TICK, (end - begin) * TICK - 1
    shown = html.escape(label)
    inside = len(label) * 6.2 + 4 <= width
    at = f'x="{x + 5}"' if inside else f'x="{x + width + 4}"'
    kind = "l" if inside else "t"
    return (
        f'<rect class="{name}" x="{x}" y="{y + 2}" width="{width}" height="{ROW - 5}" rx="3"/>'
        f'<text class="{kind}" {at} y="{y + 13}">{shown}</text>'
    )


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))

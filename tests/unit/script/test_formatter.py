"""Scripts are laid out: the same tree and comments, and a second time nothing changes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from weir.errors import ScriptError
from weir.script.dialect import parse_statements
from weir.script.formatter import WIDTH, format_program
from weir.script.source import ProgramSource

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted((ROOT / "tests/golden/programs").glob("*.weir"))


def test_how_it_looks() -> None:
    untidy = """-- head
stream A (vs bigint, k string, -- the key
   v bigint) from 'a.jsonl' with (vs=vs,delay = 10s); -- done
output late  of A to 'late.jsonl';


Out=select k,-v as n, a - -1 as x, count(*)filter(where v>1) /* odd */ as c -- counts
  -- from here
  from A as a left anti semi join B on a.k==B.k and a.v > 3 and (x in (1,2) and y between 1 and 2)
where k like 'x%' group by k,n having count( * )>2 with hopping(5s,5s) order by n limit 3 with ties;
X = process Out using Op(30m);
-- end"""
    assert (
        format_program(untidy)
        == """-- head
STREAM A (
  vs bigint,
  k string,  -- the key
  v bigint
)
  FROM 'a.jsonl'
  WITH (vs = vs, delay = 10s);  -- done
OUTPUT LATE OF A TO 'late.jsonl';

Out =
  SELECT k, -v AS n, a - -1 AS x, count(*) filter (WHERE v > 1) /* odd */ AS c  -- counts
  -- from here
  FROM A AS a
  LEFT ANTI SEMI JOIN B ON a.k == B.k AND a.v > 3 AND (x IN (1, 2) AND y BETWEEN 1 AND 2)
  WHERE k LIKE 'x%'
  GROUP BY k, n
  HAVING count(*) > 2
  WITH hopping(5s, 5s)
  ORDER BY n
  LIMIT 3 WITH TIES;
X = PROCESS Out USING Op(30m);
-- end
"""
    )


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.stem)
def test_nothing_changes_a_second_time(path: Path) -> None:
    once = format_program(path.read_text(encoding="utf-8"))
    assert format_program(once) == once
    assert all(len(line) <= WIDTH for line in once.splitlines() if "'" not in line)


@pytest.mark.parametrize("seed", range(60))
def test_comments_and_spaces_anywhere(seed: int) -> None:
    """Comments between any two tokens are kept, and the tree is the same (which is checked inside:
    a difference raises)."""
    rng = random.Random(seed)
    text = rng.choice(SCRIPTS).read_text(encoding="utf-8")
    parts: list[str] = []
    for number, part in enumerate(_tokens(text)):
        parts.append(part)
        match rng.randrange(12):
            case 0:
                parts.append(f" -- note {number}\n")
            case 1:
                parts.append(f" /* note {number} */ ")
            case 2:
                parts.append(f"\n\n-- note {number}\n")
            case 3:
                parts.append(" " + "\n" * rng.randrange(4) + " " * rng.randrange(4))
            case _:
                parts.append(" ")
    harmed = "".join(parts)
    once = format_program(harmed)
    assert once.count("note") == harmed.count("note")
    assert format_program(once) == once


def _tokens(text: str) -> list[str]:
    from weir.script.dialect import tokens_of

    return [text[t.start : t.end + 1] for t in tokens_of(ProgramSource(text))]


@pytest.mark.parametrize(
    "text",
    [
        "late = SELECT k FROM A; OUTPUT late TO 'x'; OUTPUT of TO 'y'; OUTPUT to TO 'z';",
        "x = PROCESS using USING Op(1); y = COMBINE using WITH emit ON k USING Op(1);",
        'x = SELECT anti semi, "from", by, all, desc FROM A ties ORDER BY k desc LIMIT 1;',
        "set = SELECT k FROM A; stream = SELECT k FROM A; SET strategy = 'replay';",
    ],
)
def test_names_stay_as_they_are(text: str) -> None:
    made = format_program(text)
    names = [word for word in text.replace(",", " ").split() if word.islower()]
    assert all(word in made.replace(",", " ").split() for word in names)


def test_two_minus_signs_do_not_become_a_comment() -> None:
    text = "X = SELECT - - v AS a, - -1 AS b, -(-v) AS c, v - - v AS d FROM A;"
    laid = "X = SELECT - -v AS a, - -1 AS b, -(-v) AS c, v - -v AS d FROM A;\n"
    assert format_program(text) == laid
    assert format_program(laid) == laid


def test_what_is_no_script_is_refused() -> None:
    with pytest.raises(ScriptError, match="expected a statement"):
        format_program("SELECT k FROM A;")
    assert parse_statements(ProgramSource(format_program("-- nothing\n"))) == []

"""The glossary holds: a word has one meaning, stands for code that exists, and replaces others.

`docs/reference/glossary.md` has three kinds of tables: words with their meanings; under "In the
code", words with their classes; under "Words that we do not use", words with those that we use.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "weir"
GLOSSARY = (ROOT / "docs/reference/glossary.md").read_text(encoding="utf-8")
CODE, UNUSED = "In the code", "Words that we do not use"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

ALLOWED = {
    "anew": {
        "cli/replay.py": "the deprecated option",
        "replay/app_replay.py": "the deprecated argument",
    },
    "savepoint": {"docs/coming-from/flink.md": "Flink's word"},
    "watermark": {
        "README.md": "for those who know other systems",
        "docs/concepts.md": "for those who know other systems",
        "docs/tutorial-live.md": "for those who know other systems",
        "docs/coming-from/flink.md": "Flink's word",
        "plan/fluent/sources.py": "a name of other libraries",
        "plan/advice/python_habits.py": "a name of other libraries",
        "script/streams.py": "a word of other dialects",
        "script/habits.py": "a word of other dialects",
        "script/grammar_statements.py": "a word of other dialects",
    },
}
"""Where a word may stand all the same, and why. The glossary itself may name all of them."""


def sections() -> dict[str, list[list[str]]]:
    """The rows of the tables, by the headings above them, without the heads of tables."""
    rows: dict[str, list[list[str]]] = {}
    for text in GLOSSARY.split("\n## ")[1:]:
        heading, _, body = text.partition("\n")
        lines = [line for line in body.splitlines() if line.startswith("|")]
        rows[heading] = [[c.strip() for c in line.strip("|").split("|")] for line in lines[2:]]
    return rows


def defined() -> list[str]:
    """Every word of the glossary, as often as it is defined."""
    tables = [rows for heading, rows in sections().items() if heading not in (CODE, UNUSED)]
    return [word for rows in tables for row in rows for word in row[0].replace("*", "").split(", ")]


def test_a_word_is_defined_once() -> None:
    assert [word for word, count in Counter(defined()).items() if count > 1] == []


@pytest.mark.parametrize("row", sections()[CODE], ids=lambda row: row[0])
def test_a_word_has_its_class(row: list[str]) -> None:
    words, names, file = row
    italics = {word.removesuffix("s") for word in re.findall(r"\*([a-z ]+)\*", GLOSSARY)}
    assert set(words.split(", ")) <= {*defined(), *italics}
    path = SRC / file.strip("`")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    there = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert set(re.findall(r"`(\w+)`", names)) <= there


def test_code_names_exist() -> None:
    """Names of the package that the meanings cite (`weir.App`) are there."""
    import weir

    cited = re.findall(r"`weir\.(\w+)`", GLOSSARY)
    assert cited and [name for name in cited if not hasattr(weir, name)] == []


@cache
def prose(path: Path) -> str:
    """What people read of a file: a page without its code; texts, comments and names of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    read = (tokenize.COMMENT, tokenize.STRING, tokenize.NAME)
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(" ".join(t.string.split()) for t in tokens if t.type in read)


@pytest.mark.parametrize("row", sections()[UNUSED], ids=lambda row: row[0])
def test_other_words_are_not_used(row: list[str]) -> None:
    for word in row[0].replace("*", "").split(", "):
        unused = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
        allowed = ALLOWED.get(word, {})
        for path in (*PAGES, *sorted(SRC.rglob("*.py"))):
            name = str(path.relative_to(SRC if path.is_relative_to(SRC) else ROOT))
            if name != "docs/reference/glossary.md" and name not in allowed:
                assert not unused.search(prose(path)), f"{name}: '{word}'; write {row[1]}"


@pytest.mark.parametrize("word", ALLOWED)
def test_an_exception_is_needed(word: str) -> None:
    unused = re.compile(rf"\b{word}s?\b", re.IGNORECASE)
    for name in ALLOWED[word]:
        path = SRC / name if name.endswith(".py") else ROOT / name
        assert unused.search(prose(path)), name

"""Wording of messages: plurals, and foreign text (names, paths, values) made safe to show.

A character that would move the cursor or change the terminal or the direction of writing, or that
cannot be encoded, is written as JSON writes it: ESC becomes the six characters `\\u001b`. So JSON
stays JSON. All other characters stay as they are, whatever the script. Files and `--json` are not
for people: nothing is escaped there.
"""

from __future__ import annotations

import re

# C0 and C1 controls and DEL, marks that turn the direction of writing, separators that some
# terminals take for ends of lines, halves of pairs, invisible tags.
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_OTHERS = f"\x7f-\x9f{_BIDI}\u2028\u2029\ud800-\udfff\U000e0000-\U000e007f"
_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_OTHERS}]")
_IN_A_LINE = re.compile(f"[\x00-\x1f{_OTHERS}]")


def printable(text: str) -> str:
    """Escape a text of several lines; ends of lines and tabs stay.

    >>> printable("red \\x1b[31m, é, 日本\\n\\ttwo")
    'red \\\\u001b[31m, é, 日本\\n\\ttwo'
    """
    return _IN_LINES.sub(_escaped, text)


def in_one_line(text: str) -> str:
    """Escape a name or a value, which must not look like a line of its own.

    >>> in_one_line("a\\nweir: error: b\\u202e")
    'a\\\\u000aweir: error: b\\\\u202e'
    """
    return _IN_A_LINE.sub(_escaped, text)


def visible(text: str) -> str:
    """Escape a piece of a program's text, invisible characters included, so that nothing hides in
    it.

    >>> visible("a\\ufeffb")
    'a\\\\ufeffb'
    """
    return "".join(c if c.isprintable() or c in "\t\n\xa0" else _as_json(c) for c in text)


def _escaped(match: re.Match[str]) -> str:
    return _as_json(match[0])


def _as_json(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))


def counted(count: int, noun: str, nouns: str = "") -> str:
    """Say how many there are of something; `nouns` is its plural where that is not `noun` + s.

    >>> counted(1, "row"), counted(0, "row"), counted(1200, "recovery", "recoveries")
    ('1 row', '0 rows', '1,200 recoveries')
    """
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"

"""Foreign text for people: nothing that a terminal obeys, and all else as it is."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from weir.wording import in_one_line, printable

texts = st.text(st.characters(codec=None), max_size=30)


@given(texts)
def test_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    shown = printable(text)
    assert all(
        unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") or c in "\n\t" for c in shown
    )
    turning = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    assert not any(unicodedata.bidirectional(c) in turning for c in shown)
    assert in_one_line(text) == in_one_line(shown) and len(in_one_line(text).splitlines()) <= 1
    shown.encode()


@given(texts)
def test_json_stays_json(text: str) -> None:
    assert json.loads(printable(json.dumps(text, ensure_ascii=False))) == text


def test_what_is_harmless_stays() -> None:
    plain = "é ü 日本語 עברית العربية 👨‍👩‍👧 ﷽ [red] \\ \" '"
    assert printable(plain) == in_one_line(plain) == plain

"""Values of parameters, and their combinations."""

from __future__ import annotations

import pytest

from weir.errors import PlanError
from weir.handlers.api.app import App
from weir.replay.variants import split_values, variants_of


def app() -> App:
    made = App("a")
    made.param("threshold", 0.2)
    made.param("k", 3)
    made.param("word", "x")
    made.param("strict", False)
    return made


def test_several_parameters_multiply() -> None:
    found = variants_of(app(), {"threshold": ["0.1", "0.3"], "k": [1, 2], "word": "y"})
    assert [v.folder for v in found] == [
        "threshold=0.1/k=1",
        "threshold=0.1/k=2",
        "threshold=0.3/k=1",
        "threshold=0.3/k=2",
    ]
    assert found[2].label == "threshold=0.3, k=1"
    assert found[2].values == {"threshold": 0.3, "k": 1, "word": "y", "strict": False}


def test_folders_are_in_the_order_of_the_app() -> None:
    values: dict[str, object] = {"threshold": ["0.1", "0.3"], "k": [1, 2]}
    turned = dict(reversed(values.items()))
    assert list(turned) == ["k", "threshold"]
    assert variants_of(app(), turned) == variants_of(app(), values)


def test_one_value_makes_no_variants() -> None:
    (found,) = variants_of(app(), {"threshold": "0.5"})
    assert (found.folder, found.label, found.values["threshold"]) == ("", "", 0.5)
    assert variants_of(app(), {})[0].values["k"] == 3


def test_folders_of_any_text_stay_within() -> None:
    found = variants_of(app(), {"word": ["../a/b", "c d"], "strict": [True, False]})
    assert found[0].folder == "word=..%2Fa%2Fb/strict=true"
    assert found[-1].folder == "word=c d/strict=false"
    (alone,) = variants_of(app(), {"word": "a" * 300})  # which names no folder
    assert alone.folder == ""


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"treshold": "1"}, "unknown parameter `treshold`; did you mean `threshold`"),
        ({"k": ["1", "x"]}, "the parameter `k` must be an integer (default 3), not 'x'"),
        ({"threshold": ["0.1", "0.10"]}, "the parameter `threshold` has the value 0.1 twice"),
        ({"threshold": ["nan", "1", "nan"]}, "the parameter `threshold` has the value nan twice"),
        ({"threshold": [0.0, -0.0]}, "`threshold` has the values 0.0 and -0.0, which are equal"),
        (
            {"word": ["a" * 300, "b"]},
            "a value of the parameter `word` is too long: its folder's name "
            "has 305 letters of 200; give shorter values",
        ),
        ({"word": ["é" * 40, "b"]}, "has 245 letters of 200"),
        ({"word": ["\udcff", "b"]}, "`word` has the value '\\udcff', which no text can hold"),
        ({"word": "\ud800"}, "which no text can hold; give it in UTF-8"),
        ({"k": []}, "the parameter `k` has no value"),
        (
            {"k": list(range(50)), "threshold": [i / 7 for i in range(50)]},
            "too many variants: 2,500",
        ),
    ],
)
def test_what_is_wrong(given: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError) as caught:
        variants_of(app(), given)
    assert message in str(caught.value)


def test_commas_can_be_escaped() -> None:
    assert split_values(["a,b", "c\\,d"]) == ["a", "b", "c,d"]

"""Forms of Python mean what Python means: the loop's answer, in the way that is planned, or a
refusal before the run with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay_oracle.differences import How, judge
from replay_oracle.engine import Refused, prepare
from replay_oracle.product_loop import shadow_run
from replay_oracle.programs import Case
from replay_oracle.python_forms import FORMS, LOG, PythonForm
from weir.errors import ReplayDiffers
from weir.handlers.api.app_file import load_app
from weir.handlers.planning.app_compiler import flow_of

HOWS = (
    How(),
    How(cut=1, parallelism=2),
    How(vectorise=False, parallelism=5),
    How(cut=1, renew=True),
)


def _of(*ways: str) -> list[PythonForm]:
    return [form for form in FORMS if form.way in ways]


@pytest.mark.parametrize("form", _of("columns", "rows"), ids=lambda form: form.name)
def test_the_answer_is_the_loops(form: PythonForm, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(form.source, encoding="utf-8")
    flow = flow_of(load_app(tmp_path / "app.py"))
    assert form.way == ("rows" if "h" in flow.why_rows else "columns"), flow.why_rows
    for how in HOWS:
        verdict = judge(Case(0, form.source, LOG, {}), how)
        assert verdict.kind == "same", f"{how}: {verdict.text}"
    run = shadow_run(form.source, LOG, {})
    assert run.compare() <= len(run.first.events)


@pytest.mark.parametrize("form", _of("refused"), ids=lambda form: form.name)
def test_refused_before_the_run(form: PythonForm) -> None:
    with pytest.raises(Refused) as refused:
        prepare(form.source)
    missing = [word for word in form.words if word not in str(refused.value)]
    assert form.words and not missing, str(refused.value)


@pytest.mark.parametrize("form", _of("ended"), ids=lambda form: form.name)
def test_what_is_remembered_ends_the_run(form: PythonForm) -> None:
    for how in HOWS:
        verdict = judge(Case(0, form.source, LOG, {}), how)
        assert verdict.kind == "failed", f"{how}: {verdict.text}"
        assert all(word in verdict.text for word in form.words), verdict.text


@pytest.mark.parametrize("form", _of("unnoticed"), ids=lambda form: form.name)
def test_what_a_library_remembers_shows_in_the_comparison(form: PythonForm) -> None:
    """A cache hands one list to all events: nothing that is looked at has changed. The loop has
    filled the cache when the engine runs, so the two differ."""
    prepare(form.source)
    with pytest.raises(ReplayDiffers):
        shadow_run(form.source, LOG, {}).compare()


def test_every_way_is_there() -> None:
    assert {form.way for form in FORMS} == {"columns", "rows", "refused", "ended", "unnoticed"}
    assert len({form.name for form in FORMS}) == len(FORMS) > 45

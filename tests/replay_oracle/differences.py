"""Compares the engine with the loop, on one case."""

from __future__ import annotations

from dataclasses import dataclass

from replay_oracle.engine import Refused, run_app
from replay_oracle.loop import AppFailed, Comparable, comparable_answer, run_serially
from replay_oracle.programs import Case


@dataclass(frozen=True)
class How:
    """A `How` says how the engine runs a case, as `run_app` does."""

    cut: int | None = None
    parallelism: int = 1
    vectorise: bool = True
    renew: bool = False
    halves: bool = False
    numbered: bool = False
    begin: int | None = None


WAYS = tuple(How(cut, p, v) for v in (True, False) for p in (1, 2, 5) for cut in (1, 7, None))
_CUTS = (
    (7, 1),
    (None, 2),
    (1, 1),
    (None, 5),
    (7, 2),
    (None, 1),
    (1, 2),
    (7, 5),
    (None, 2),
    (7, 1),
    (1, 5),
    (None, 1),
)
"""Every cut with every parallelism; those that take long come seldom."""


def way_of(seed: int) -> How:
    """Choose how a seed's case runs; one in four runs all code row by row, one in five with fresh
    operators after each step, another one from a saved state; one in three of the rest is compared
    with the order of what is emitted."""
    halves = seed % 5 == 4
    return How(
        *_CUTS[seed % 12],
        vectorise=seed // 12 % 4 != 3,
        renew=seed % 5 == 2,
        halves=halves,
        numbered=not halves and seed // 5 % 3 == 1,
    )


@dataclass(frozen=True)
class Verdict:
    """A `Verdict` says what came of a case: `kind` is same, refused, other (another answer, or
    another failure), failed (but the loop did not), went on (but the loop failed) or crashed."""

    kind: str
    text: str = ""


def judge(case: Case, how: How) -> Verdict:
    """Run a case both ways."""
    right = right_answer(case, numbered=how.numbered)
    try:
        came: Comparable | AppFailed = run_app(
            case.source,
            case.logs,
            case.params,
            cut=how.cut,
            parallelism=how.parallelism,
            vectorise=how.vectorise,
            renew=how.renew,
            halves=how.halves,
            numbered=how.numbered,
            begin=how.begin,
        )
    except Refused as error:
        return Verdict("refused", str(error))
    except AppFailed as error:
        came = error
    except Exception as error:
        return Verdict("crashed", f"{type(error).__name__}: {error}")
    return compared(right, came)


def right_answer(
    case: Case, *, numbered: bool = False, to: int | None = None
) -> Comparable | AppFailed:
    """Return the loop's answer, or how it failed."""
    try:
        answer = run_serially(case.source, case.logs, case.params, to)
    except AppFailed as error:
        return error
    return comparable_answer(answer, numbered=numbered)


def compared(right: Comparable | AppFailed, came: Comparable | AppFailed) -> Verdict:
    """Compare the loop's answer, or failure, with the engine's."""
    if isinstance(right, AppFailed):
        if not isinstance(came, AppFailed):
            return Verdict("went on", str(right))
        if right.is_like(came):
            return Verdict("same")
        return Verdict("other", f"wanted the failure {right} on {right.event}\ncame {came}")
    if isinstance(came, AppFailed):
        return Verdict("failed", str(came))
    return Verdict("same") if right == came else Verdict("other", told(right, came))


def told(right: Comparable, came: Comparable) -> str:
    """Say in what two answers differ."""
    lines = []
    for name in sorted({*right[0], *came[0]}):
        wanted, found = right[0].get(name), came[0].get(name)
        if wanted != found:
            missing = (wanted or type(found)()) - (found or type(wanted)())  # type: ignore[operator,misc]
            more = (found or type(wanted)()) - (wanted or type(found)())  # type: ignore[operator,misc]
            lines.append(f"emit {name}: missing {list(missing)[:4]}, unexpected {list(more)[:4]}")
    for name in sorted({*right[1], *came[1]}):
        wanted_cells, cells = right[1].get(name, {}), came[1].get(name, {})
        if wanted_cells != cells:
            gone = object()
            keys = {*wanted_cells, *cells}
            keys = {k for k in keys if cells.get(k, gone) != wanted_cells.get(k, gone)}
            shown = [(k, wanted_cells.get(k, "-"), cells.get(k, "-")) for k in keys][:4]
            lines.append(f"state {name}: (key, wanted, came) {shown}")
    return "\n".join(lines)

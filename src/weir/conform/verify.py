"""Compares outputs or whole runs by digest, or outputs row by row.

Rules
1. The digest of an output is computed from its rows. If its digest file has another digest, the
   output is corrupt, whatever it is compared with.
2. A run is the output of `weir run --json`, saved as a `.json` file. Runs are compared by these
   digests, output by output.
3. If the columns differ, no row is read.
4. Digests detect accidents, not intent: different rows can be crafted to have the same digest. With
   `full`, outputs are instead compared row by row, by value (`files/output_diff.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from weir.errors import InputError
from weir.files.output_diff import Difference, Tell, compare_rows, first_difference, total_digest
from weir.files.saved_outputs import SavedOutput, column_differences, open_outputs, typed_names
from weir.files.sidecar import Sidecar, sidecar_path
from weir.reliable.digest import Digest
from weir.runtime.reports import OutputReport
from weir.wording import counted


@dataclass(frozen=True, slots=True)
class ComparedOutput:
    """One side of a comparison: its path, number of rows and digest."""

    path: str
    rows: int
    digest: str

    @property
    def shown(self) -> str:
        return f"{counted(self.rows, 'row')}, digest {self.digest}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of one comparison. `output` names the output of a run, `columns` describes
    differences of columns. If `corrupt`, the sides are the output and its digest file. After a full
    comparison, `alone` has the number of rows that only each side has."""

    status: Literal["equal", "different", "corrupt"]
    sides: tuple[ComparedOutput, ...] = ()
    output: str = ""
    columns: tuple[str, ...] = ()
    alone: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"{self.output}: {self._text}" if self.output else self._text

    @property
    def _text(self) -> str:
        if self.columns:
            return f"{self.status}: columns: {'; '.join(self.columns)}"
        if self.status == "equal":
            how = "equal" if self.alone is None else "equal row by row"
            return f"{how}: {self.sides[0].shown}"
        if len(self.sides) == 1:
            return f"different: only {self.sides[0].path} has it"
        a, b = self.sides
        if self.status == "corrupt":
            return f"corrupt: {a.path} has {a.shown}; it carries the digest of {b.shown}"
        parts = [f"{side.path} has {side.shown}" for side in self.sides]
        if self.alone is not None:
            alone = zip(self.alone, self.sides, strict=True)
            parts += [f"{counted(n, 'row')} in {side.path} alone" for n, side in alone if n]
        return f"different: {'; '.join(parts)}"


def verify(paths: Sequence[str], tell: Tell, *, full: bool = False) -> list[Comparison]:
    """Compare two outputs, two runs, or one output with its digest file; with `full`, compare two
    outputs row by row."""
    runs = [path for path in paths if _is_run(path)]
    if full and runs:
        raise InputError("a run has no rows; --full compares outputs", file=runs[0])
    if full and len(paths) < 2:
        raise InputError("--full compares two outputs; name another one", file=paths[0])
    if full:
        a, b = open_outputs(paths)
        return _verify_rows(a, b, tell)
    if not runs:
        return _verify_outputs(open_outputs(paths), tell)
    if len(runs) == 1:
        raise InputError("a run can only be compared with another run", file=runs[0])
    return _verify_runs(*runs)


@dataclass(frozen=True, slots=True)
class Differences:
    """How two outputs differ: in their columns, or else in the rows of the first time that
    differs."""

    columns: tuple[str, ...] = ()
    first: Difference | None = None

    @property
    def equal(self) -> bool:
        return not self.columns and self.first is None

    def __str__(self) -> str:
        if self.columns:
            return f"different columns: {'; '.join(self.columns)}"
        if self.first is None:
            return "no difference"
        lines = [f"first difference at {self.first.time}"]
        for sign, only in (("-", self.first.only_a), ("+", self.first.only_b)):
            lines += [f"{sign} {msgspec.json.encode(row).decode()}" for row in only.rows]
            if only.more:
                lines.append(f"{sign} … {only.more:,} more")
        return "\n".join(lines)


def diff(a: str, b: str, tell: Tell) -> Differences:
    """Find how two outputs differ."""
    for path in (a, b):
        if _is_run(path):
            raise InputError("a run has no rows; diff compares outputs", file=path)
    first, second = open_outputs([a, b])
    if columns := _columns_of(first, second):
        return Differences(columns)
    return Differences(first=first_difference(first, second, tell))


def _is_run(path: str) -> bool:
    return path.lower().endswith(".json")


def _columns_of(a: SavedOutput, b: SavedOutput) -> tuple[str, ...]:
    return column_differences(typed_names(a.form), typed_names(b.form), (a.path, b.path))


# --- outputs -------------------------------------------------------------------------------


def _verify_outputs(outputs: Sequence[SavedOutput], tell: Tell) -> list[Comparison]:
    if len(outputs) == 1 and outputs[0].sidecar is None:
        message = "has no digest file; name another output to compare it with"
        raise InputError(message, file=outputs[0].path)
    if len(outputs) == 2 and (columns := _columns_of(*outputs)):
        return [Comparison("different", columns=columns)]
    sides, corrupt = _sides(outputs, [total_digest(o, tell) for o in outputs])
    if len(outputs) == 1 and corrupt:
        return corrupt
    equal = len({side.digest for side in sides}) == 1
    return [*corrupt, Comparison("equal" if equal else "different", sides)]


def _verify_rows(a: SavedOutput, b: SavedOutput, tell: Tell) -> list[Comparison]:
    if columns := _columns_of(a, b):
        return [Comparison("different", columns=columns)]
    rows = compare_rows(a, b, tell)
    sides, corrupt = _sides([a, b], rows.digests)
    alone = rows.only_a, rows.only_b
    return [*corrupt, Comparison("different" if any(alone) else "equal", sides, alone=alone)]


def _sides(
    outputs: Sequence[SavedOutput], digests: Sequence[Digest]
) -> tuple[tuple[ComparedOutput, ...], list[Comparison]]:
    """Return both sides, and the verdicts on outputs that do not match their digest files."""
    sides = tuple(_side(o.path, d) for o, d in zip(outputs, digests, strict=True))
    corrupt = [v for o, side in zip(outputs, sides, strict=True) if (v := _corrupt(o, side))]
    return sides, corrupt


def _side(path: str, digest: Digest) -> ComparedOutput:
    return ComparedOutput(path, digest.count, str(digest))


def _corrupt(output: SavedOutput, side: ComparedOutput) -> Comparison | None:
    """Return the verdict on an output whose rows do not match its digest file."""
    carried = output.sidecar
    if carried is None:
        return None
    beside = ComparedOutput(sidecar_path(output.path), carried.rows, carried.digest)
    names = (output.path, beside.path)
    columns = column_differences(typed_names(output.form), _carried_columns(carried), names)
    if columns or carried.digest != side.digest:
        return Comparison("corrupt", (side, beside), columns=columns)
    return None


def _carried_columns(carried: Sidecar) -> list[tuple[str, str]]:
    lifetime = [("vs", carried.time), ("ve", carried.time)] if carried.lifetime else []
    return [*lifetime, *carried.columns]


# --- runs ----------------------------------------------------------------------------------


class _ReportedRun(msgspec.Struct):
    outputs: list[OutputReport]


def _verify_runs(a: str, b: str) -> list[Comparison]:
    first, second = _read_run(a), _read_run(b)
    return [
        _run_verdict(name, [run[name] for run in (first, second) if name in run])
        for name in dict.fromkeys((*first, *second))
    ]


def _run_verdict(name: str, sides: Sequence[ComparedOutput]) -> Comparison:
    equal = len(sides) == 2 and sides[0].digest == sides[1].digest
    return Comparison("equal" if equal else "different", tuple(sides), name)


_decoder = msgspec.json.Decoder(_ReportedRun)


def _read_run(path: str) -> dict[str, ComparedOutput]:
    """Return the outputs of a run by name and kind. If a stream went to two paths, return one of
    them: both have its rows."""
    try:
        run = _decoder.decode(Path(path).read_bytes())
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not what `weir run --json` prints: {error}", file=path) from error
    return {o.title: ComparedOutput(path, o.rows, o.digest) for o in run.outputs}

"""One program for each clause: its outputs byte for byte, straight, cut, and split otherwise.

A program `programs/x.weir` reads `data/`, and each OUTPUT is compared with the file of that name
in `expected/x/`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from weir.local.file_run import run_files
from weir.loops.loop import Loop
from weir.plan.operators import FinalState, Node, Recovery
from weir.plan.program import Program
from weir.plan.rewrites.rewrite import rewrite
from weir.plan.traversal import ordered_nodes
from weir.runtime.loop_needs import needed_loops
from weir.script.program import parse_program

FOLDER = Path(__file__).parent
PROGRAMS = sorted((FOLDER / "programs").glob("*.weir"))


def parsed(path: Path) -> Program:
    return parse_program(path.read_text(encoding="utf-8"), directory=path.parent)


@pytest.mark.parametrize("cut", [None, 1, 3])
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_outputs(path: Path, cut: int | None, parallelism: int, tmp_path: Path) -> None:
    program = parsed(path)
    outputs = [replace(o, path=str(tmp_path / o.path)) for o in program.outputs]
    run_files(
        replace(program, outputs=tuple(outputs)),
        directory=FOLDER,
        cut=cut,
        parallelism=parallelism,
    )
    for output in program.outputs:
        came = (tmp_path / output.path).read_text(encoding="utf-8").replace(str(FOLDER), "")
        wanted = (FOLDER / "expected" / path.stem / output.path).read_text(encoding="utf-8")
        assert came == wanted


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_the_loops_that_a_program_calls_are_those_that_it_needs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that `needed_loops` leaves out would be compiled in the middle of a stream."""
    call = Loop.__call__
    called: set[str] = set()

    def recorded(loop: Loop, *arguments: object) -> object:
        called.add(loop.name)
        return call(loop, *arguments)

    monkeypatch.setattr(Loop, "__call__", recorded)
    program = parsed(path)
    outputs = [replace(o, path=str(tmp_path / o.path)) for o in program.outputs]
    for pays in (None, lambda node: True):
        planned = rewrite(replace(program, outputs=tuple(outputs)), pays)
        run_files(planned, directory=FOLDER, cut=3, parallelism=3)
    assert called
    assert called <= {loop.name for loop in needed_loops(program, complete=True)}


def test_every_operator_has_a_program() -> None:
    """Those that scripts write, and those that only rewrites make."""
    written = [parsed(path) for path in PROGRAMS]
    nodes = {
        type(node)
        for program in [*written, *map(rewrite, written)]
        for output in program.outputs
        for node in ordered_nodes([output.node])
    }
    # Only Python says `with_strategy`, and only a replay saves states.
    assert nodes == set(get_args(Node)) - {Recovery, FinalState}

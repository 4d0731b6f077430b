"""The second run of `--check`, in a process that differs from this one.

Rules
1. A program that was parsed from a text is parsed again there, so its IMPORTs run again. Any other
   (an app's, one over partitions that were opened here) travels as it would to Spark: an app's file
   runs again there. One that cannot travel, since it has functions that no file has, runs a second
   time in this process, and only rules 3 and 4 hold.
2. The other process has another hash seed, and so another order of sets, another time zone, the
   plain locale, other memory addresses and another process id.
3. Functions are called more often than needed, so those that count or remember calls are found.
4. Inputs are cut elsewhere, and operators restart from their snapshots: after the first step, the
   second, the fourth and so on. They do not restart if a snapshot cannot keep all of their state
   (`plan/live_refusals.py`).

The first run leaves traces of all its streams in a folder (`traces.py`); the second compares its
rows with them, and what comes back is the first row that differs in each stream.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from weir.errors import RunError, WeirError
from weir.files.chunks import CHUNK_ROWS
from weir.local.runner import Emit, LocalRun
from weir.plan.live_refusals import unsaved_cells
from weir.plan.plan_fingerprint import PlanFingerprint, plan_difference, plan_fingerprint
from weir.plan.program import Output, Program, ProgramText, StreamKind
from weir.reliable.differences import RowDifference
from weir.reliable.traces import Traces
from weir.runtime.partitions import Partitions, open_partitions
from weir.runtime.program_plan import plan_program
from weir.script.program import parse_program

_COMMAND = "import sys; from weir.local.second_run import main; main(*sys.argv[1:])"


@dataclass(frozen=True, slots=True)
class _WrittenProgram:
    """A program as a text. `plan` is what the other process must make of it."""

    text: ProgramText
    outputs: tuple[tuple[str, str, StreamKind], ...]
    plan: PlanFingerprint
    directory: str


@dataclass(frozen=True, slots=True)
class _RunRequest:
    """Says what the other process shall run: a text, or a pickled program with its partitions."""

    program: _WrittenProgram | bytes
    traces: str
    cut: int
    parallelism: int


@contextmanager
def kept_traces() -> Iterator[Traces]:
    """Keep the traces of a first run in a folder of their own, which is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="weir-check-") as folder:
        yield Traces(folder)


def other_cut(cut: int | None, events: int | None = None) -> int:
    """Return the cut of a second run; if the first read few events, one that still cuts them."""
    smaller = max(1, (cut or CHUNK_ROWS) // 3)
    return smaller if events is None else min(smaller, max(1, events // 5))


def other_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the other process has in its environment that this one has not."""
    return {
        "PYTHONHASHSEED": "1" if environment.get("PYTHONHASHSEED") != "1" else "2",
        "TZ": "WEIR-10:37",  # east of Greenwich, by an offset that nobody has
        "LC_ALL": "C.UTF-8",
        "WEIR_EXTRA_CALLS": "1",
    }


def second_differences(
    program: Program,
    directory: str | Path,
    traces: str,
    *,
    cut: int,
    parallelism: int,
    partitions: Partitions | None = None,
) -> list[RowDifference]:
    """Run the program in another process, if it can go there; return how it differs from the run
    that left these traces."""
    opened = open_partitions(program, directory, look=False) if partitions is None else partitions
    what: _WrittenProgram | bytes | None
    if program.text is not None and partitions is None:
        outputs = tuple((o.name, o.path, o.kind) for o in program.outputs)
        plan = _fingerprint(program, parallelism)
        what = _WrittenProgram(program.text, outputs, plan, str(directory))
    else:
        what = _travelling(program, opened)
    differences = None if what is None else _asked(_RunRequest(what, traces, cut, parallelism))
    return (
        differences_here(
            program=program, partitions=opened, traces=traces, cut=cut, parallelism=parallelism
        )
        if differences is None
        else differences
    )


def _travelling(program: Program, partitions: Partitions) -> bytes | None:
    """Pickle a program with its partitions; None: there is something that cannot be."""
    try:
        return pickle.dumps((replace(program, app=None), partitions))
    except Exception:  # whatever a user's object raises: rule 1
        return None


def differences_here(
    program: Program, partitions: Partitions, traces: str, cut: int, parallelism: int
) -> list[RowDifference]:
    """Run the program in this process, with more calls; return how it differs from the run that
    left these traces."""
    nowhere: list[Emit] = [lambda vertex, rows: None for _ in program.outputs]
    compared = Traces(traces, compare=True)
    with more_calls():
        run = LocalRun(
            program, partitions, nowhere, cut=cut, parallelism=parallelism, traces=compared
        )
        steps, renewed = 0, 0 if unsaved_cells(program) else 1
        while run.step():
            steps += 1
            if steps == renewed:
                run.renew()
                renewed *= 2
    return compared.close()


@contextmanager
def more_calls() -> Iterator[None]:
    """Let functions be called more often than needed meanwhile."""
    before = os.environ.get("WEIR_EXTRA_CALLS")
    os.environ["WEIR_EXTRA_CALLS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["WEIR_EXTRA_CALLS"]


def _fingerprint(program: Program, parallelism: int) -> PlanFingerprint:
    return plan_fingerprint(plan_program(program, parallelism).stages)


# --- in this process ---------------------------------------------------------------------------


def _asked(request: _RunRequest) -> list[RowDifference] | None:
    """Ask the other process, and return its answer; None when the text is another program by
    now, or what was pickled is not there."""
    environment = os.environ | other_environment(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(p) for p in sys.path)
    with tempfile.TemporaryDirectory(prefix="weir-check-") as folder:
        request_path, answer_path = os.path.join(folder, "request"), os.path.join(folder, "answer")
        Path(request_path).write_bytes(pickle.dumps(request))
        command = [sys.executable, "-c", _COMMAND, request_path, answer_path]
        # What the user's code prints there is not a result: it goes to stderr.
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=2, env=environment
        ) as process:
            try:
                process.wait()
            except BaseException:  # Ctrl-C, or the end of this process
                process.kill()
                raise
        try:
            answer = pickle.loads(Path(answer_path).read_bytes())
        except FileNotFoundError:
            how = process.returncode
            ended_by = f"signal {-how}" if how < 0 else f"exit code {how}"
            raise RunError(f"the process of the second run died: {ended_by}") from None
    if isinstance(answer, WeirError):
        raise answer
    differences: list[RowDifference] | None = answer
    return differences


# --- in the other process ------------------------------------------------------------------------


def main(request_path: str, answer_path: str) -> None:
    """Do what a request says, and leave the answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C too, and ends us
    request = pickle.loads(Path(request_path).read_bytes())
    answer: list[RowDifference] | WeirError | None
    try:
        answer = _answer(request)
    except WeirError as error:
        answer = error
    Path(f"{answer_path}.part").write_bytes(pickle.dumps(answer))
    os.replace(f"{answer_path}.part", answer_path)  # before this there is no answer
    # Do not wait for threads that the user's code started.
    sys.stdout.flush()
    os._exit(0)


def _answer(request: _RunRequest) -> list[RowDifference] | None:
    what = request.program
    opened = _arrived(what) if isinstance(what, bytes) else _parsed(what, request.parallelism)
    if opened is None:
        return None
    program, partitions = opened
    return differences_here(
        program=program,
        partitions=partitions,
        traces=request.traces,
        cut=request.cut,
        parallelism=request.parallelism,
    )


def _arrived(body: bytes) -> tuple[Program, Partitions] | None:
    try:
        program, partitions = pickle.loads(body)
    except Exception:  # a module that is not there, or raises anything: rule 1
        return None
    return program, partitions


def _parsed(written: _WrittenProgram, parallelism: int) -> tuple[Program, Partitions] | None:
    text = written.text
    program = parse_program(
        text.source, params=dict(text.params), directory=Path(text.directory), name=text.name
    )
    named = {**{s.name: s for s in program.sources}, **dict(program.streams)}
    if not all(name in named for name, _, _ in written.outputs):
        return None
    outputs = tuple(Output(name, named[name], path, kind) for name, path, kind in written.outputs)
    program = replace(program, outputs=outputs)
    if plan_difference(written.plan, _fingerprint(program, parallelism)):
        return None
    return program, open_partitions(program, written.directory, look=False)

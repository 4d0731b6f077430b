"""Identifies a replay part by part, so that a refusal can name the part that changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from weir.handlers.api.app import App
from weir.plan.plan_fingerprint import plan_fingerprint
from weir.plan.program import Program
from weir.plan.usercode.code_fingerprint import program_code, value_text
from weir.replay.batch_programs import BatchProgram, ReplayTask
from weir.replay.run_folder import COMPILED
from weir.replay.saved_state import state_mark
from weir.runtime.program_plan import plan_program


def replay_parts(
    task: ReplayTask,
    compiled: BatchProgram,
    logs: Mapping[str, str],
    options: Mapping[str, object],
    state_in: Path | None,
) -> dict[str, str]:
    """Return a fingerprint of each part of a replay.

    The parts are the app's code and its compiled form, its logs (`log_marks`), the values of its
    parameters, and the other options.
    """
    parts = {f"the app {task.app.name}": ""}
    # The app does not depend on the paths of files.
    program = replace(
        compiled.program,
        outputs=tuple(
            replace(output, path=f"{n}.jsonl") for n, output in enumerate(compiled.program.outputs)
        ),
    )
    parts[COMPILED] = _compiled(task.app, program)
    parts |= dict(task.app.code) or program_code(program)
    parts |= logs
    for name in task.app.params:
        values = dict.fromkeys(repr(variant.values[name]) for variant in task.variants)
        parts[f"the parameter {name}"] = ", ".join(values)
    parts |= {option: str(value) for option, value in options.items() if value is not None}
    if state_in is not None:
        parts["--state-in"] = state_mark(state_in)
    return parts


def _compiled(app: App, program: Program) -> str:
    """Hash an app's compiled form: its plan, and its handlers with the values that they read.

    These also contain what the app takes from outside of its text, for example from the
    environment.
    """
    plan = plan_fingerprint(plan_program(program).stages)
    handlers = [value_text(h.function) for h in app.handlers.values()] if app.code else []
    return _hash(repr(([part.hash for part in plan.parts], handlers)).encode())


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]

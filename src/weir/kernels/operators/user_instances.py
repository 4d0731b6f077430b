"""Makes and calls instances of a user's operator class, and checks their state.

State always has the form that a snapshot restores. Numbers and texts are converted to it after
every call (`settle`). LISTs and STRUCTs, which may be long, must have it at the end of a step
(`check_nested`). Nothing else may be left in an instance (`check_rest`). So a restart changes
nothing. Every failure is an `OperatorFailed` that names the code and the event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

import pyarrow as pa

from weir.errors import OperatorFailed
from weir.events.types import type_name
from weir.kernels.expressions.evaluation import RowFailure
from weir.kernels.expressions.user_calls import failing_line, guarded
from weir.kernels.expressions.user_values import Misfit, is_plain, plain_value, shown, typed_array
from weir.kernels.operators.instance_changes import InstanceChanges, MadeAttributes
from weir.kernels.operators.user_context import Context
from weir.plan.usercode.functions import OperatorCall
from weir.plan.usercode.undeclared_state import LOST, declare_hint


class UserInstances:
    """Makes instances of one operator's class, calls them, and reads and writes their state."""

    def __init__(self, call: OperatorCall) -> None:
        self._operator, self._arguments = call.operator, call.args
        state = call.operator.state
        self._scalars = [(n, t) for n, t in state if not pa.types.is_nested(t)]
        self._nested = [(n, t) for n, t in state if pa.types.is_nested(t)]
        self._changes = InstanceChanges(call.operator.implementation, [name for name, _ in state])
        self._on_event: object = getattr(call.operator.implementation, "on_event", None)

    @property
    def has_nested_state(self) -> bool:
        return bool(self._nested)

    def make(self, event: object) -> object:
        """Return a new instance, with its own copies of lists from its class or its arguments."""
        implementation = self._operator.implementation
        instance = guarded(
            f"{self._operator.name}.__init__",
            lambda: implementation(*deepcopy(self._arguments)),
            (),
            event,
            implementation,
        )
        for name, dtype in self._nested:
            if isinstance(value := getattr(instance, name, None), list | dict):
                self._set(instance, name, self._plain(name, value, dtype, event), event)
        return instance

    def rest(self, instance: object) -> MadeAttributes:
        """Return the undeclared attributes of a new instance."""
        return self._changes.initial_attributes(instance)

    def check_rest(
        self, instance: object, rest: MadeAttributes, method: str, event: object
    ) -> None:
        """Raise if a call has changed anything but the declared state: a restart would lose it."""
        changed = self._changes.changed(instance, rest)
        if changed is not None:
            name, does = changed
            what = f"{method} {does} `{name}`, which is not declared as state: {LOST}"
            raise self.failed(event, f"{what}; {declare_hint(name)}")

    def restore(self, row: Mapping[str, object]) -> object:
        """Return a new instance with the state of a snapshot's row."""
        event = "its first call after a restart"
        instance = self.make(event)
        for name, _ in self._operator.state:
            self._set(instance, name, row[f"${name}"], event)
        return instance

    def call(
        self, method: str, instance: object, argument: object, context: Context, event: object
    ) -> None:
        """Call `on_event` or `on_time`, which must return nothing."""
        code = getattr(self._operator.implementation, method, None)
        if code is None:
            raise self.failed(event, f"it has no {method}; define it, or set no timer")
        name = f"{self._operator.name}.{method}"
        answer = guarded(
            name, lambda: getattr(instance, method)(argument, context), (), event, code
        )
        if answer is not None:
            raise self.failed(event, f"it must return None, not {shown(answer)}; emit by ctx.emit")

    def settle(self, instance: object, event: object) -> None:
        """Convert numbers and texts of the state to the form that a snapshot restores."""
        for name, dtype in self._scalars:
            value = self._get(instance, name, event)
            plain = self._plain(name, value, dtype, event)
            if plain is not value:
                self._set(instance, name, plain, event)

    def check_nested(self, instance: object, event: object) -> None:
        """Raise if a LIST or STRUCT of the state lacks the form that a snapshot restores."""
        for name, dtype in self._nested:
            value = self._get(instance, name, event)
            self._plain(name, value, dtype, event)
            if not is_plain([value], dtype):
                why = f"its state `{name}` must be {type_name(dtype)} of plain values (list, "
                why += "dict in the order of the type, int, float, …), as a restart gives "
                why += f"them back, not {shown(value)}"
                raise self.failed(event, why)

    def state(self, instances: Sequence[object]) -> dict[str, pa.Array]:
        """Return the state of these instances as columns of a snapshot."""
        return {
            f"${name}": self._column(name, dtype, instances) for name, dtype in self._operator.state
        }

    def _column(self, name: str, dtype: pa.DataType, instances: Sequence[object]) -> pa.Array:
        values = [self._get(instance, name, "a checkpoint") for instance in instances]
        try:
            return typed_array(values, dtype)
        except RowFailure as failure:
            why = f"its state `{name}` must be {failure.why}"
            raise self.failed("a checkpoint", why) from None

    def _get(self, instance: object, name: str, event: object) -> object:
        what = f"{self._operator.name}.{name}"
        return guarded(what, getattr, (instance, name), event, self._on_event)

    def _set(self, instance: object, name: str, value: object, event: object) -> None:
        what = f"{self._operator.name}.{name}"
        guarded(what, setattr, (instance, name, value), event, self._on_event)

    def _plain(self, name: str, value: object, dtype: pa.DataType, event: object) -> object:
        try:
            return plain_value(value, dtype)
        except Misfit as misfit:
            raise self.failed(event, f"its state `{name}` must be {misfit}") from None

    def failed(self, event: object, cause: str) -> OperatorFailed:
        """Return the error for this cause, at the line where `on_event` is defined."""
        failed_at = failing_line(self._operator.name, self._on_event, None)
        return OperatorFailed(
            function=failed_at.function,
            file=failed_at.file,
            line=failed_at.line,
            event=event,
            cause=cause,
        )

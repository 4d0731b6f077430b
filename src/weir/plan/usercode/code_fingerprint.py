"""Fingerprints of the user's Python: a resume compares its code with that of the job's start.

Rules
1. A file that IMPORT runs has a fingerprint. So has every module of the user's that it imports,
   directly or not, also inside functions (`module_search.py`). The fingerprint is computed from the
   syntax tree: comments and layout do not count.
2. A function that was not IMPORTed, such as one of a Python script or a notebook, has a fingerprint
   of its own: of its bytecode and constants, with the functions, classes and values that it refers
   to. Modules that it refers to have fingerprints by rule 1.
3. Values count by what pickle would store. A value that cannot be pickled (a lock, an open file, a
   generator), or that is nested in a thousand objects or five sets, counts only by its type.
4. Files that code reads, and versions of libraries, do not count.
"""

from __future__ import annotations

import ast
import copyreg
import dis
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import chain
from types import (
    CellType,
    CodeType,
    EllipsisType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
    NoneType,
)
from typing import Any

import numpy as np
import pyarrow as pa

from weir.plan.program import Program
from weir.plan.states import MergeFunction, RowCode
from weir.plan.traversal import ordered_nodes
from weir.plan.usercode.functions import AggregateFunction, OperatorFunction, ScalarFunction
from weir.plan.usercode.imported_files import IMPORTED, ImportedFrom
from weir.plan.usercode.made_functions import MadeFunction
from weir.plan.usercode.module_search import ReachedModules, is_users, reached_modules

UserFunction = ScalarFunction | AggregateFunction | OperatorFunction | MergeFunction | RowCode
_UNTOLD = frozenset(
    ("__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__")
)
_TOLD_BY_REPR = (float, complex, str, bytes, NoneType, EllipsisType)
_READS_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_DEEPEST_SETS = 5
_MOST_REDUCTIONS = 1000


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """List what has changed: "rules.py changed", "helper is new", "old is gone".

    >>> changes({"a": "1", "b": "1"}, {"b": "2", "c": "1"})
    ['a is gone', 'b changed', 'c is new']
    """
    lines = []
    for name in sorted({*before, *now}):
        if name not in now:
            lines.append(f"{name} is gone")
        elif name not in before:
            lines.append(f"{name} is new")
        elif before[name] != now[name]:
            lines.append(f"{name} changed")
    return lines


def program_code(program: Program) -> dict[str, str]:
    """Compute the fingerprints of all the user's code that a program was made of."""
    fingerprints = dict(program.code)
    roots = [output.node for output in program.outputs]
    for function in user_functions(ordered_nodes(roots)):
        thing = _wrapped(function)
        if not str(getattr(thing, "__module__", "")).startswith(IMPORTED):
            walk = _Walk()
            text = walk.text(function)
            if isinstance(thing, MadeFunction):  # a handler has several with the same name
                name = f"{thing.file}.{function.name}"
                text = f"{fingerprints.get(name)}{text}"
            else:
                name = f"{getattr(thing, '__module__', None)}.{function.name}"
            fingerprints[name] = _hash(text.encode())
            fingerprints |= _reached_code(reached_modules(walk.modules))
    return fingerprints


def value_text(value: object) -> str:
    """Return a text for a value that is the same in every process, by rule 3.

    >>> value_text(1.5), value_text("a"), value_text(True)
    ('1.5', "'a'", 'bool 1')
    """
    return _Walk().text(value)


def file_code(name: str, source: bytes, imports: ReachedModules) -> dict[str, str]:
    """Compute the fingerprints of a file that IMPORT runs and of what it imports.

    The file's is under the name as it was written."""
    return {name: source_hash(source)} | _reached_code(imports)


def _reached_code(reached: ReachedModules) -> dict[str, str]:
    modules = {**reached.others, **reached.travelling}
    return {
        name: source_hash(module.source) if module.is_text else _hash(module.source)
        for name, module in modules.items()
    }


def source_hash(source: bytes) -> str:
    """Hash a source; texts that differ only in comments and layout have the same hash."""
    try:
        return _hash(ast.unparse(ast.parse(source)).encode())
    except (SyntaxError, ValueError, RecursionError):  # not Python, or nested too deeply
        return _hash(source)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


# --- functions -------------------------------------------------------------------------------


def user_functions(value: object, seen: set[int] | None = None) -> Iterator[UserFunction]:
    """Yield all the user's functions in a plan, or in a part of one, in its order."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, UserFunction):
        yield value
    elif isinstance(value, tuple | list):
        for element in value:
            yield from user_functions(element, seen)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from user_functions(getattr(value, field.name), seen)


def _wrapped(function: UserFunction) -> object:
    match function:
        case ScalarFunction() | MergeFunction():
            return function.function
        case RowCode():
            return function.make
        case AggregateFunction() | OperatorFunction():
            return function.implementation


class _Walk:
    """Writes code and values as a text that is the same in every process.

    `modules` are those that the code refers to. Things are numbered in the order in which they are
    met, so cycles end, and nesting may be deep. `around` are the sets that the walk is inside of.
    """

    def __init__(self, around: tuple[int, ...] = ()) -> None:
        self.modules: list[str] = []
        self._around = around
        self._numbers: dict[int, int] = {}
        self._met: list[tuple[object, int]] = []  # each with the count of reductions that led to it
        self._reductions = 0

    def text(self, value: object) -> str:
        texts = [self._value_text(value)]
        for thing, reductions in self._met:  # the list grows meanwhile
            self._reductions = reductions
            texts.append(f"{type(thing).__name__}({self._parts(thing)})")
        return "\n".join(texts)

    def _value_text(self, value: object) -> str:
        """Return a plain value as text, and anything else as its number."""
        kind = type(value)
        if kind in (int, bool):
            return f"{kind.__name__} {value:x}"  # Python refuses decimals of long ones
        if kind in _TOLD_BY_REPR:
            return repr(value)
        if id(value) in self._around:
            return f"set {self._around.index(id(value))} around"
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._met)
            self._met.append((value, self._reductions))
        return f"#{self._numbers[id(value)]}"

    def _all(self, values: Iterable[object]) -> str:
        return ",".join(map(self._value_text, values))

    def _parts(self, value: object) -> str:
        kind = type(value)  # an instance of a subclass counts as an object
        match value:
            case tuple() | list() if kind in (tuple, list):
                return self._all(value)
            case set() | frozenset() if kind in (set, frozenset):
                return self._set(value)
            case dict() | MappingProxyType() if kind in (dict, MappingProxyType):
                return self._all(chain.from_iterable(value.items()))
            case pa.DataType():
                return str(value)
            case np.ndarray() if kind is np.ndarray:
                objects = value.dtype.hasobject  # their bytes would be addresses
                held = self._value_text(value.tolist()) if objects else _hash(value.tobytes())
                return f"{value.dtype}{value.shape}{held}"
            case CodeType():
                return self._code(value)
            case FunctionType():
                return self._function(value)
            case MethodType():
                return self._all((value.__func__, value.__self__))
            case staticmethod() | classmethod():
                return self._value_text(value.__func__)
            case property():
                return self._all((value.fget, value.fset, value.fdel))
            case partial():
                return self._all((value.func, value.args, value.keywords))
            case ModuleType():
                self.modules.append(name := value.__name__)
                # A program's own modules have a number that depends on the process.
                return name.partition(".")[2] if name.startswith(f"{IMPORTED}/") else name
            case type():
                return self._class(value)
            case (
                ScalarFunction()
                | AggregateFunction()
                | OperatorFunction()
                | MergeFunction()
                | RowCode()
            ):
                return self._all(
                    getattr(value, f.name) if f.compare else None for f in fields(value)
                )
            case MadeFunction():
                return self._all(value.identity())
            case ImportedFrom():
                return ""  # by rule 1
        return self._reduced(value)

    def _set(self, values: set[object] | frozenset[object]) -> str:
        """Return the sorted texts of a set's elements; a set's own order varies by process."""
        if len(self._around) == _DEEPEST_SETS:
            return str(len(values))
        texts = []
        for value in values:
            walk = _Walk((*self._around, id(values)))
            texts.append(walk.text(value))
            self.modules += walk.modules
        return ",".join(sorted(texts))

    def _reduced(self, value: object) -> str:
        """Return what pickle would store of an object: its class, its attributes, its elements."""
        if self._reductions == _MOST_REDUCTIONS:
            return ""
        try:
            reducer: Any = copyreg.dispatch_table.get(type(value))
            reduced: Any = reducer(value) if reducer else type(value).__reduce_ex__(value, 2)
            if isinstance(reduced, str):  # a global; a cached function is inside its cache object
                parts = [reduced, value.__module__, getattr(value, "__wrapped__", None)]
            else:
                parts = [
                    *reduced[:3],
                    *(list(items) for items in reduced[3:5] if items is not None),
                ]
        except KeyboardInterrupt:
            raise
        except BaseException:  # not picklable: a lock, a file, or the user's class raised
            return ""
        self._reductions += 1
        return self._all(parts)

    def _code(self, code: CodeType) -> str:
        constants = self._all(code.co_consts)
        names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_flags)
        return f"{names}{code.co_code.hex()}[{constants}]"

    def _function(self, function: FunctionType) -> str:
        if not _is_users(function.__module__):
            return f"{function.__module__}.{function.__qualname__}"
        namespace = function.__globals__
        used = {n: namespace[n] for n in sorted(_names(function.__code__)) if n in namespace}
        cells = [_content(cell) for cell in function.__closure__ or ()]
        extras = (function.__defaults__, function.__kwdefaults__, cells)
        return self._all((function.__code__, extras, used))

    def _class(self, cls: type) -> str:
        if not _is_users(cls.__module__):
            return f"{cls.__module__}.{cls.__qualname__}"
        members = {n: v for n, v in sorted(vars(cls).items()) if n not in _UNTOLD}
        return f"{cls.__qualname__}{self._all((cls.__bases__, members))}"


def _is_users(module: str | None) -> bool:
    """Tell whether code of this module is the user's: a script, a notebook, or their own module."""
    return module is None or module == "__main__" or module.startswith(IMPORTED) or is_users(module)


def _names(code: CodeType) -> set[str]:
    """Return the globals that code reads, without attributes of the same names."""
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    own = {i.argval for i in dis.get_instructions(code) if i.opname in _READS_GLOBALS}
    return own.union(*(_names(c) for c in inner))


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None

"""A loop as Python and as other loops see it.

Rules
1. Python calls a `Loop`. It has one type for each argument, declared beside it. A call with other
   types raises a TypeError that names the loop, and compiles nothing. Arrays of the declared
   numbers that are read-only or have gaps are copied for the call; a loop that writes to them
   refuses them.
2. Its code is loaded from the cache at its first call, and compiled if it is not there.
3. Only other loops call an `InnerLoop`. Its code is contained in theirs. The code for calls from
   Python, which is half of the work, is not made.

Of Numba, this uses `njit`, explicit signatures and `extending`, which are public. It takes code
apart and puts it together again as Numba's own cache does (`_taken_apart`, `_restored`). For that,
it uses parts that are not public: `CompileResult._reduce` and `_rebuild`, the pickler `dumps`,
`rtsys`, `cpu_target`.
"""

from __future__ import annotations

import hashlib
import pickle
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from threading import RLock
from typing import Any, get_type_hints

import numba
import numpy as np
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.extending import typeof_impl

from weir.loops.code_cache import Code, find, keep_content, kind, read_content

_njit: Any = numba.njit
"""`numba.njit` without its types, which lack the options that leave entry code out."""
OnReady = Callable[[int, int], None]
"""Called with two counts: the loops that are ready, and all loops."""

_loops: dict[str, Loop] = {}
"""The loops that Python calls, by name, of all imported modules."""
_lock = RLock()
"""Held while a loop is loaded or compiled."""
_compiled: list[str] = []
"""The names of the loops that this process compiled."""


class Loop:
    """A compiled function with declared types, for Python to call."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func = function
        self.name = f"{function.__module__.removeprefix('weir.')}.{function.__qualname__}"
        self.__doc__ = function.__doc__
        self._options = options
        self._run: Callable[..., Any] = self._first_call
        self._entry: Any = None
        """What Numba makes of the function; None until it is ready."""
        # A function typed at a prompt or in a doctest has no file that its code depends on.
        self._is_kept = function.__code__.co_filename.endswith(".py")
        if self._is_kept:
            _loops[self.name] = self

    def __call__(self, *args: Any) -> Any:
        try:
            return self._run(*args)
        except TypeError:
            fitting = [_fitting(v, t) for v, t in zip(args, self.types, strict=False)]
            self._check([*fitting, *args[len(fitting) :]])
            if all(new is old for new, old in zip(fitting, args, strict=False)):
                raise
        return self._on_copies(fitting, args)

    def _on_copies(self, fitting: Sequence[Any], args: Sequence[Any]) -> Any:
        result = self._run(*fitting)
        for new, old in zip(fitting, args, strict=True):
            if new is not old and new.tobytes() != old.tobytes():
                raise TypeError(f"loop {self.name} writes to an array that is not its own")
        return result

    def __repr__(self) -> str:
        return f"<loop {self.name}>"

    @cached_property
    def types(self) -> tuple[Any, ...]:
        """The types of its arguments, as Numba names them."""
        hints = get_type_hints(self.py_func, include_extras=True)
        code = self.py_func.__code__
        return tuple(hints[name].__metadata__[0] for name in code.co_varnames[: code.co_argcount])

    @cached_property
    def file_name(self) -> str:
        """The name of the file that holds its code."""
        types = repr([str(t) for t in self.py_func.__annotations__.values()])
        return f"{self.name}-{hashlib.sha256(types.encode()).hexdigest()[:16]}"

    @property
    def is_ready(self) -> bool:
        """Whether its code is loaded."""
        return self._entry is not None

    def make_ready(self) -> None:
        """Load its code; compile it if it is not in the cache."""
        with _lock:
            if self._entry is not None:
                return
            entry = _njit(**self._options)(self.py_func)
            content = read_content(self.file_name) if self._is_kept else None
            if content is None:
                entry.compile(self.types)
                _compiled.append(self.name)
                if self._is_kept:
                    keep_content(self.file_name, _taken_apart(entry.overloads[self.types]))
            else:
                entry.add_overload(_restored(content))
            entry.disable_compile()
            self._entry = self._run = entry

    def _first_call(self, *args: Any) -> Any:
        # From the second call on, Numba converts a float to an integer that was declared.
        self._check(args)
        self.make_ready()
        return self._entry(*args)

    def _check(self, args: Sequence[Any]) -> None:
        """Raise TypeError if the types of the arguments are not the declared ones."""
        types = [_type_of(value) for value in args]
        fit = [t in (d, _writable(d)) for t, d in zip(types, self.types, strict=False)]
        if len(types) != len(self.types) or not all(fit):
            expected, came = (", ".join(map(str, each)) for each in (self.types, types))
            raise TypeError(f"loop {self.name} takes ({expected}), not ({came})") from None


class InnerLoop:
    """A function that is compiled into the loops that call it."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func = function
        self.__doc__ = function.__doc__
        self._options = options

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function, which compiles it for the types of each caller."""
        return _njit(**self._options, no_cpython_wrapper=True)(self.py_func)

    @property
    def targetoptions(self) -> Any:
        """The options it is compiled with; Numba asks for them to decide what it may inline."""
        return self.dispatcher.targetoptions


# In other loops, Numba then treats it as its dispatcher.
typeof_impl.register(InnerLoop, lambda loop, context: numba.types.Dispatcher(loop.dispatcher))


def _type_of(value: object) -> Any:
    try:
        return numba.typeof(value)  # type: ignore[no-untyped-call]
    except ValueError:  # Numba has no type for it
        return type(value).__name__


def _fitting(value: Any, declared: Any) -> Any:
    """Return an array that the loop can take: a copy, if it is read-only or has gaps."""
    if not isinstance(value, np.ndarray) or not isinstance(declared, numba.types.Array):
        return value
    whole = value.flags.c_contiguous and value.flags.aligned
    readable = whole and (value.flags.writeable or not declared.mutable)
    return value if readable else value.copy(order="C")


def _writable(declared: Any) -> Any:
    """Return the type of a writable array, which a loop that only reads takes too."""
    is_array = isinstance(declared, numba.types.Array)
    return declared.copy(readonly=False) if is_array else declared


def _taken_apart(result: Any) -> bytes:
    return zlib.compress(dumps(result._reduce()), 1)  # type: ignore[no-untyped-call]


def _restored(content: bytes) -> Any:
    target = cpu_target.target_context
    # The part of `target.refresh()` that loading needs. The whole takes longer than a small run: it
    # imports everything that Numba can compile.
    rtsys.initialize(target)
    reduced = pickle.loads(zlib.decompress(content))  # rule 3 of `code_cache.py`
    return CompileResult._rebuild(target, *reduced)  # type: ignore[no-untyped-call]


# --- all of them ---------------------------------------------------------------------------------


def loops_of(modules: Iterable[str]) -> list[Loop]:
    """List the loops of those of these modules that were imported; only loops that Python calls."""
    prefixes = tuple(f"{module.removeprefix('weir.')}." for module in modules)
    return [loop for name, loop in _loops.items() if name.startswith(prefixes)]


def ready_loops() -> list[Loop]:
    """List the loops that this process has loaded or compiled."""
    return [loop for loop in _loops.values() if loop.is_ready]


def count_compiled() -> int:
    """Count the loops that this process compiled so far."""
    return len(_compiled)


def make_ready(names: Sequence[str], tell: OnReady = lambda done, of: None) -> None:
    """Load or compile the loops of these names whose modules were imported."""
    for number, name in enumerate(names):
        tell(number, len(names))
        if name in _loops:
            _loops[name].make_ready()
    tell(len(names), len(names))


def packed(loops: Sequence[Loop]) -> Code:
    """Return the code of these loops, for another machine.

    Loops that are not on disk are compiled first; they are left out if no folder keeps them."""
    files = {}
    for loop in loops:
        if find(loop.file_name) is None:
            loop.make_ready()
        body = find(loop.file_name)
        if body is not None:
            files[loop.file_name] = body
    return Code(kind(), tuple(loop.name for loop in loops), files)

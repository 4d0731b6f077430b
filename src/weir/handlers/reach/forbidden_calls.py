"""What no handler may call: functions that differ from run to run, or act on the outside world.

A rule is the full name of a function, or a prefix of such names. The first matching rule counts.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import BuiltinFunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

from weir.handlers.reach.object_contents import class_module, instance_dict, is_users_class
from weir.handlers.reach.static_attributes import hides_its_class, name_of


@dataclass(frozen=True, slots=True)
class Ban:
    """Why something is refused, and what to do instead."""

    why: str
    hint: str


_CLOCK = Ban("reads the clock: a replay would have another answer", "e.vs is the event's time")
_CHANCE = Ban("draws at random: a replay would have another answer", "hash a column of the event")
_OUTSIDE = Ban("acts outside of the app, and again at every replay", "app.emit(…) emits rows")
_READS = Ban("reads what may change between runs", "read it before the app, as a global")
_CODE = Ban("runs code that analysis cannot see", "write the code itself")
_ADDRESS = Ban("differs between processes", "use a key of the event, or hashlib")
_ZONE = Ban("uses the time zone of the machine", "pass one: fromtimestamp(t, tz=datetime.UTC)")
_PRECISION = Ban(
    "reaches a setting that all events of a process share",
    "make a context in the handler: decimal.Context(prec=9).divide(a, b)",
)
_HISTORY = Ban("depends on what ran before in the process", "count in a state: app.state(…)")
_INSIDE = Ban("looks into running code", "hand values over as arguments")
_LATER = Ban("runs code at a time that no replay repeats", "write it in one thread")

_BOUND = (BuiltinFunctionType, MethodType, MethodWrapperType)
_ALLOWED = ("random.Random", "uuid.uuid3", "uuid.uuid5", "uuid.UUID", "os.path.", "logging.INFO")
_BANNED = (
    (
        "time.time time.time_ns time.monotonic time.perf_counter time.process_time "
        "time.thread_time time.localtime time.gmtime time.ctime time.sleep time.clock_gettime "
        "time.asctime email.utils.formatdate email.utils.localtime "
        "datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today "
        "datetime.date.today",
        _CLOCK,
    ),
    (
        "random. secrets. uuid. os.urandom posix.urandom posix.getrandom numpy.random",
        _CHANCE,
    ),
    ("time.mktime", _ZONE),
    ("builtins.id builtins.hash posix.getpid", _ADDRESS),
    ("builtins.print builtins.open io.open", _OUTSIDE),
    ("builtins.input", _READS),
    ("builtins.breakpoint", _OUTSIDE),
    (
        "builtins.exec builtins.eval builtins.compile builtins.globals builtins.locals "
        "builtins.vars builtins.__import__ importlib. ctypes.",
        _CODE,
    ),
    ("os.environ os._Environ. os.getenv platform. locale. glob. getpass.", _READS),
    (
        "genericpath.exists genericpath.isfile genericpath.isdir genericpath.getsize "
        "genericpath.getmtime genericpath.getatime genericpath.getctime genericpath.samefile "
        "genericpath.islink genericpath.lexists posixpath.lexists posixpath.islink "
        "posixpath.ismount posixpath.realpath posixpath.abspath posixpath.expanduser "
        "posixpath.expandvars",
        _READS,
    ),
    (
        "os. posix. pathlib. subprocess. socket. logging. shutil. tempfile. sys. "
        "urllib.request http. requests.",
        _OUTSIDE,
    ),
    ("decimal.getcontext decimal.setcontext decimal.localcontext", _PRECISION),
    ("functools._lru_cache_wrapper.cache_info", _HISTORY),
    ("inspect. gc.", _INSIDE),
    ("threading. _thread. asyncio. multiprocessing. concurrent.", _LATER),
)
_BANS = tuple((name, ban) for names, ban in _BANNED for name in names.split())


def ban_of(thing: object, written: str) -> tuple[str, Ban] | None:
    """Return the name of a thing and why it is refused, or None.

    `written` is how the source calls it.
    """
    name = full_name(thing)
    if name is None or _is_one(name, _ALLOWED):
        return None
    for rule, ban in _BANS:
        if name == rule or (rule.endswith(".") and name.startswith(rule)):
            return written, ban
        if name.startswith(f"{rule}."):
            return written, ban
    return None


def banned_attribute(node: ast.AST) -> Ban | None:
    """Return why an attribute is refused, whatever object it is looked up on, or None."""
    match node:
        case ast.Attribute(attr="__hash__"):
            return _ADDRESS
        case ast.Name(id="__import__"):  # a loaded app has its own
            return _CODE
        case ast.Attribute(attr="f_locals" | "cell_contents"):
            return _INSIDE
        case ast.Call(func=ast.Attribute(attr="cache_info")):
            return _HISTORY
        case ast.Call(func=ast.Name(id="getattr"), args=[of, ast.Constant(value=str(name)), *_]):
            return banned_attribute(ast.Attribute(of, name, ast.Load()))
        case ast.Call(func=ast.Attribute(attr="astimezone"), args=[], keywords=[]):
            return Ban(_ZONE.why, "pass one: astimezone(datetime.UTC)")
    return None


def ban_of_call(thing: object, written: str, call: ast.Call | None) -> tuple[str, Ban] | None:
    """Return why a call is refused for a missing argument: a time zone, a time, a seed."""
    name = full_name(thing)
    arguments = [] if call is None else [*call.args, *(k.value for k in call.keywords)]
    zones = [a for a in arguments[1:] if not _is_none(a)]
    names = ("datetime.datetime.fromtimestamp", "datetime.date.fromtimestamp")
    if name in names and not zones:
        return written, _ZONE
    if name == "time.strftime" and len(arguments) < 2:
        return written, _CLOCK
    if name == "random.Random" and call is not None and all(map(_is_none, arguments)):
        return written, _CHANCE
    return None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_one(name: str, rules: tuple[str, ...]) -> bool:
    return any(name == r or (r.endswith(".") and name.startswith(r)) for r in rules)


def full_name(thing: Any) -> str | None:
    """Return the full name of a function or a class, as in `datetime.datetime.now`.

    >>> import datetime, random
    >>> full_name(datetime.datetime.now), full_name(random.random), full_name(3)
    ('datetime.datetime.now', 'random.Random.random', None)
    """
    own = type(thing)
    if issubclass(own, ModuleType):
        return None  # naming a module is harmless
    if issubclass(own, type):
        return class_name(thing)
    if not callable(thing) or is_users_class(own) or hides_its_class(thing):
        return _odd_name(thing)
    name = getattr(thing, "__qualname__", None)
    if not isinstance(name, str):
        return _odd_name(thing)
    owner = getattr(thing, "__self__", None)
    if own in _BOUND:
        if issubclass(type(owner), type):
            return f"{class_name(owner)}.{thing.__name__}"
        if owner is not None and not issubclass(type(owner), ModuleType):
            return f"{class_name(type(owner))}.{thing.__name__}"
    module = getattr(thing, "__module__", None) or instance_dict(owner).get("__name__")
    return f"{module}.{name}" if isinstance(module, str) else None


def class_name(cls: Any) -> str:
    """Return the full name of a class, without running code of its metaclass."""
    return f"{class_module(cls)}.{name_of(cls)}"


def _odd_name(thing: object) -> str | None:
    """Return the name of an object that acts though it is not a function.

    Examples are `os.environ` and a random generator of numpy.
    """
    name = class_name(type(thing))
    if name == "os._Environ":
        return "os.environ"
    if name.startswith("numpy.random"):
        return "numpy.random.Generator"
    return None

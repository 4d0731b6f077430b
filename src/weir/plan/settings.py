"""The settings of a program, which SET assigns, and the checks of their values.

Rules
1. No setting changes an answer. The local and the offline runner ignore all of them.
2. A setting on the command line or in Python overrides the program's.
3. A value is checked where it is set, so code that reads it later need not check it again.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from weir.errors import PlanError
from weir.events.types import BOOLEAN, STRING
from weir.plan.durations import UNITS, parse_duration
from weir.plan.program import Program
from weir.plan.sizes import parse_size, size_text
from weir.plan.strategy import parse_strategy


def parse_step_limit(text: str) -> float:
    """Return the seconds of a SET step_limit.

    >>> parse_step_limit("30s")
    30.0
    """
    ticks = parse_duration(text)
    if ticks <= 0 or text.strip().isdigit():
        hint = "expected a duration above zero, with its unit, such as 500ms, 30s or 5m"
        raise PlanError(f"invalid step limit '{text}'", hint=hint)
    return ticks / UNITS["s"]


def parse_interval(text: str) -> float:
    """Return the seconds between flushes or commits, or that rows wait for more rows.

    >>> parse_interval("200ms")
    0.2
    """
    ticks = parse_duration(text)
    if text.strip().isdigit() or not UNITS["ms"] <= ticks <= UNITS["h"]:
        raise PlanError(
            f"invalid interval '{text}'",
            hint="expected a duration from 1ms to 1h, such as 200ms or 5s",
        )
    return ticks / UNITS["s"]


def parse_patience(text: str) -> float:
    """Return the seconds for which a job waits for a failing store.

    >>> parse_patience("10m")
    600.0
    """
    ticks = parse_duration(text)
    if text.strip().isdigit() or not UNITS["s"] <= ticks <= UNITS["d"]:
        hint = "expected a duration from 1s to 1d, such as 30s or 10m"
        raise PlanError(f"invalid patience '{text}'", hint=hint)
    return ticks / UNITS["s"]


def parse_buffer(text: str, *, most: int) -> int:
    """Return the bytes of a buffer or a segment.

    >>> parse_buffer("8MB", most=1 << 30)
    8388608
    """
    size = parse_size(text)
    if not SMALLEST <= size <= most:
        raise PlanError(
            f"'{text}' is too {'small' if size < SMALLEST else 'large'}",
            hint=f"expected a size from {size_text(SMALLEST)} to {size_text(most)}",
        )
    return size


def parse_flag(text: str) -> bool:
    """Read TRUE or FALSE, as a script writes them.

    >>> parse_flag("true")
    True
    """
    if text.upper() not in ("TRUE", "FALSE"):
        raise PlanError(f"invalid value '{text}'", hint="expected TRUE or FALSE")
    return text.upper() == "TRUE"


def parse_address(text: str) -> str:
    """Read an address or a machine's name.

    >>> parse_address("[fd77::1]")
    'fd77::1'
    """
    address = text.strip().strip("[]")
    if not re.fullmatch(r"[0-9A-Za-z.:_%-]+", address):
        raise PlanError(
            f"invalid address '{text}'",
            hint="expected an IP address, such as 10.0.0.5 or fd00::5, or a machine's name",
        )
    return address


def parse_bind(text: str) -> str:
    """Read an address to listen on.

    >>> parse_bind("0.0.0.0")
    '0.0.0.0'
    """
    address = text.strip().strip("[]")
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        hint = "expected an IP address of the machine, such as 10.0.0.5; 0.0.0.0 or :: for all"
        raise PlanError(f"invalid address to listen on: '{text}'", hint=hint) from None


def parse_network(text: str) -> str:
    """Read a network, in which every host has an address.

    >>> parse_network("10.1.0.0/16")
    '10.1.0.0/16'
    """
    try:
        return str(ipaddress.ip_network(text.strip(), strict=False))
    except ValueError:
        hint = "expected an address and a prefix length, such as 10.1.0.0/16 or fd00::/8"
        raise PlanError(f"invalid network '{text}'", hint=hint) from None


def parse_ports(text: str) -> tuple[int, int]:
    """Read the first and the last port of a range.

    >>> parse_ports("40000-40100")
    (40000, 40100)
    """
    match = re.fullmatch(r"\s*(\d{1,5})\s*-\s*(\d{1,5})\s*", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]) <= LAST_PORT:
        hint = "expected the first and the last port, such as 40000-40100"
        raise PlanError(f"invalid port range '{text}'", hint=hint)
    return int(match[1]), int(match[2])


SMALLEST = 1 << 10
LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class SettingKind:
    """The type of a setting's value in a script, and the function that parses its text."""

    type: pa.DataType
    read: Callable[[str], object]


HOST_LIMITS: Mapping[str, Callable[[str], float]] = {
    "flush_interval": parse_interval,
    "segment_size": partial(parse_buffer, most=1 << 30),
    "commit_interval": parse_interval,
    "step_wait": parse_interval,
    "tail_buffer": partial(parse_buffer, most=64 << 30),
    "send_buffer": partial(parse_buffer, most=1 << 30),
    "ahead_buffer": partial(parse_buffer, most=1 << 30),
    "store_patience": parse_patience,
}
"""Limits of the hosts of a live run, with the same names as in `job/settings.py`."""

ADDRESSES: Mapping[str, Callable[[str], object]] = {
    "manager_address": parse_address,
    "manager_bind": parse_bind,
    "host_address": parse_network,
    "host_bind": parse_bind,
    "ports": parse_ports,
}
"""Where the processes of a live run listen, with the same names as in `AddressSettings`."""

SETTINGS: Mapping[str, SettingKind] = {
    "strategy": SettingKind(STRING, parse_strategy),
    "allow_unbounded": SettingKind(BOOLEAN, parse_flag),
    "step_limit": SettingKind(STRING, parse_step_limit),
    **{name: SettingKind(STRING, read) for name, read in HOST_LIMITS.items()},
    **{name: SettingKind(STRING, read) for name, read in ADDRESSES.items()},
}


def with_settings(program: Program, texts: Mapping[str, str]) -> Program:
    """Return the program with these settings, which override its own."""
    settings = dict(program.settings)
    for name, text in texts.items():
        if name not in SETTINGS:
            hint = f"the settings are {', '.join(SETTINGS)}"
            raise PlanError(f"unknown setting `{name}`", hint=hint)
        value = SETTINGS[name].read(text)
        settings[name] = value if SETTINGS[name].type == BOOLEAN else text
    return replace(program, settings=tuple(settings.items()))


def step_limit(program: Program) -> float | None:
    """Return how many seconds a step of a live run may take; None means no limit."""
    text = dict(program.settings).get("step_limit")
    return None if text is None else parse_step_limit(str(text))

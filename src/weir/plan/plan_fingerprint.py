"""Fingerprints of staged plans, which are equal if two programs compute the same.

Rules
1. The fingerprint of a stage covers its vertices, its split, its inputs and its operators, with
   everything that they compute. That of an output covers its name, kind and path, and the stages
   that write it. Names of streams count only if columns are named after them; the wording of
   `explain` does not count.
2. How a stage recovers does not count: a job may continue under another strategy.
3. For the user's functions, names and types count. Their code has fingerprints of its own
   (`code_fingerprint.py`).
4. A part is encoded by the names of classes and fields and by values, so its hash is the same in
   every process. FORMAT is increased when an unchanged plan would be encoded differently: plans of
   different formats cannot be compared.
5. The words of a part are for people who want to know what has changed. They are never compared.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from weir.events.types import type_name
from weir.plan.explain.explanation import operator_text
from weir.plan.operators import Node, Recovery
from weir.plan.stages import Branch, Link, Sink, Stage, StagedPlan
from weir.plan.usercode.code_fingerprint import UserFunction, value_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT = 1
_CODE = frozenset(("function", "implementation", "make"))
"""The fields of the user's functions that contain code."""
_MOST_WORDS = 300


@dataclass(frozen=True, slots=True)
class PlanPart:
    """One stage, operator or output: its place in the plan, its words, its hash."""

    where: str
    words: str
    hash: str


@dataclass(frozen=True, slots=True)
class PlanFingerprint:
    """All parts of a plan, in order."""

    parts: tuple[PlanPart, ...] = ()
    format: int = FORMAT


def plan_fingerprint(plan: StagedPlan) -> PlanFingerprint:
    """Compute the fingerprint of a plan."""
    return PlanFingerprint(tuple(_parts(plan)))


def plan_difference(before: PlanFingerprint, now: PlanFingerprint) -> str | None:
    """Return the first difference between two plans of one format, in words; None if there is none.

    >>> old, new = PlanPart("stage 0", "1 vertex", "a"), PlanPart("stage 0", "2 vertices", "b")
    >>> plan_difference(PlanFingerprint((old,)), PlanFingerprint((new,)))
    'stage 0 was 1 vertex and is 2 vertices'
    """
    for old, new in zip(before.parts, now.parts, strict=False):
        if (old.where, old.hash) == (new.where, new.hash):
            continue
        if old.where != new.where:
            is_gone = all(old.where != part.where for part in now.parts)
            return f"{old.where}, {old.words}, is gone" if is_gone else _is_new(new)
        if old.words != new.words:
            return f"{old.where} was {old.words} and is {new.words}"
        return f"{old.where}, {old.words}, has changed"
    for part in before.parts[len(now.parts) :]:
        return f"{part.where}, {part.words}, is gone"
    for part in now.parts[len(before.parts) :]:
        return _is_new(part)
    return None


def _is_new(part: PlanPart) -> str:
    return f"{part.where}, {part.words}, is new"


def _parts(plan: StagedPlan) -> Iterator[PlanPart]:
    for stage in plan.stages:
        where = f"stage {stage.number}"
        shape = (stage.vertices, stage.split_by, stage.uid, stage.ports)
        yield PlanPart(where, _stage_words(stage), _hash(shape))
        operators = [o for o in stage.operators if not _only_recovers(o)]
        for number, operator in enumerate(operators):
            words = textwrap.shorten(operator_text(operator), _MOST_WORDS, placeholder=" …")
            yield PlanPart(f"{where}, operator {number}", words, _hash(operator))
    for number, sink in enumerate(plan.sinks):
        output = sink.output
        identity = (output.name, output.kind, output.path, sink.stages)
        yield PlanPart(f"output {number}", _sink_words(sink), _hash(identity))


def _only_recovers(operator: Node | Branch) -> bool:
    """Tell whether a node only sets how its stage recovers (rule 2)."""
    return isinstance(operator, Recovery)


def _stage_words(stage: Stage) -> str:
    if stage.vertices is None:
        text = "a vertex for each partition"
    else:
        text = "1 vertex" if stage.vertices == 1 else f"{stage.vertices} vertices"
    text += f" split by {', '.join(stage.split_by)}" if stage.split_by else ""
    text += f" called '{stage.uid}'" if stage.uid else ""
    links = [_link_words(link) for port in stage.ports for link in port.links]
    return f"{text} reading {'; '.join(links)}" if links else text


def _link_words(link: Link) -> str:
    by = f" by {', '.join(link.keys)}" if link.keys else ""
    return f"stage {link.stage} ({link.channel}{by})"


def _sink_words(sink: Sink) -> str:
    output = sink.output
    return f"{output.title} to '{output.path}'"


# --- the encoding ----------------------------------------------------------------------------


def _hash(value: object) -> str:
    return hashlib.sha256(_encoded(value).encode()).hexdigest()[:32]


def _encoded(value: object) -> str:
    """Encode a value as a text that is the same in every process; no other value has that text."""
    if isinstance(value, str):
        return ascii(value)  # which characters `repr` shows depends on Python's version
    if isinstance(value, pa.DataType):
        return f"type {type_name(value)}"
    if isinstance(value, tuple):
        return f"({','.join(map(_encoded, value))})"
    if is_dataclass(value) and not isinstance(value, type) and _is_weirs(value):
        fields = (f"{name}={_encoded(getattr(value, name))}" for name in _counting(value))
        return f"{type(value).__name__}({','.join(fields)})"
    return value_text(value)


def _is_weirs(value: object) -> bool:
    """Tell whether it is a part of a plan, not a constant of the user's."""
    return type(value).__module__.startswith("weir.")


def _counting(value: DataclassInstance) -> list[str]:
    """Return the fields of one of Weir's values that count."""
    without = _CODE if isinstance(value, UserFunction) else ()
    return [
        f.name
        for f in fields(value)
        if f.compare
        and f.name not in without
        and not _holds_operators(getattr(value, f.name))
        and not (f.metadata.get("later") and getattr(value, f.name) is None)
    ]


def _holds_operators(value: object) -> bool:
    """Tell whether these are the inputs of an operator, which are separate parts."""
    return isinstance(value[0] if isinstance(value, tuple) and value else value, Node)

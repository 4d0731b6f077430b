"""A simulated store that fails as stores do, under one seed.

An object that was being written when its writer died is whole, or torn, or not there; an object
that is put as `new` is never torn (contract of `reliable/store.py`). A write may be said to have
failed though it succeeded; listings may lag behind; bits of checkpoints and segments may flip.

An adversary (`harm`) does what the rules of a bucket, other programs and people do: it loses,
flips, truncates, swaps and copies objects of every kind, and adds some that nobody wrote.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from weir.reliable.object_names import is_ephemeral
from weir.reliable.objects import SEAL
from weir.reliable.store import Body, ObjectExists


class SimulatedDisk:
    """A store with the faults that the module's docstring names; a generator draws them."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._objects: dict[str, bytes] = {}
        self._listed: dict[str, None] = {}
        """The names that a listing gives at the moment."""
        self.full = False
        """Whether there is no room for a write; the answers to writes say so."""
        self.flips = 0.0
        """The probability that a bit flips when a checkpoint or a segment is read."""
        self.flipped: list[str] = []
        """The objects in which a bit has flipped."""
        self.harmed: set[str] = set()
        """The objects that the adversary has touched."""
        self.log_records: dict[str, tuple[str, bytes]] = {}
        """Every record that was ever written to a source's log, by its seal."""
        self.ephemeral_bytes = 0
        """The size of what only a running job needs."""

    def put(self, key: str, body: Body, *, new: bool = False) -> None:
        if new and key in self._objects:
            raise ObjectExists(key)
        self._set(key, body)
        if self._rng.random() < 0.5:
            self._listed.update(dict.fromkeys(self._objects))

    def put_at_death(self, key: str, body: Body, *, new: bool) -> None:
        """Write an object, or some of it, or nothing: its writer died before it had an answer."""
        fate = self._rng.random()
        if fate < 0.4 or (new and key in self._objects):
            return
        if fate < 0.7 or new:
            self._set(key, body)
        else:
            self.put_torn(key, body)

    def put_torn(self, key: str, body: Body) -> None:
        self._set(key, body[: int(self._rng.integers(0, len(body)))])

    def put_late(self, key: str, body: Body, *, new: bool) -> None:
        """Write an object whose writer is dead: the network had held the write back."""
        if not new or key not in self._objects:
            self._set(key, body)

    def _set(self, key: str, body: Body) -> None:
        if key.startswith("ingress/"):
            self.log_records.setdefault(body[:SEAL].hex(), (key, bytes(body)))
        self._grow(key, len(body) - len(self._objects.get(key, b"")))
        self._objects[key] = bytes(body)

    def _grow(self, key: str, by: int) -> None:
        if is_ephemeral(key):
            self.ephemeral_bytes += by

    def get(self, key: str) -> bytes | None:
        body = self._objects.get(key)
        rots = key.startswith(("checkpoints/", "streams/")) and self._rng.random() < self.flips
        if body and rots:
            index = int(self._rng.integers(0, len(body)))
            body = body[:index] + bytes([body[index] ^ 1]) + body[index + 1 :]
            self._objects[key] = body
            self.flipped.append(key)
        return body

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._grow(key, -len(self._objects.pop(key, b"")))

    def list(self, prefix: str = "") -> list[str]:
        """List the objects that were there some time ago."""
        return sorted(k for k in self._listed if k.startswith(prefix))

    def harm(self, rng: np.random.Generator) -> str:
        """Harm one object or two; say what was done."""
        kinds = sorted({key.split("/", 1)[0] for key in self._objects})
        kind = str(rng.choice(kinds)) if kinds else ""
        of_kind = sorted(key for key in self._objects if key.startswith(kind))
        how = str(rng.choice(["lose", "flip", "truncate", "swap", "copy", "stray"]))
        if how == "stray" or not of_kind:
            key = str(rng.choice(_strays(of_kind)))
            self._set(key, rng.bytes(int(rng.integers(0, 60))))
            self.harmed.add(key)
            return f"stray {key}"
        # Those that were written last matter most.
        key, other = (of_kind[-1 - int(rng.integers(0, min(8, len(of_kind))))] for _ in range(2))
        body, at = self._objects[key], int(rng.integers(0, len(self._objects[key]) + 1))
        self.harmed |= {key, other} if how in ("swap", "copy") else {key}
        match how:
            case "lose":
                self.delete([key])
            case "flip" if at < len(body):
                self._set(key, body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :])
            case "truncate":
                self._set(key, body[:at])
            case "swap":
                self._set(key, self._objects[other])
                self._set(other, body)
            case "copy":
                self._set(other, body)
        return f"{how} {key}" + (f", {other}" if how in ("swap", "copy") else "")

    def settle(self) -> None:
        """Let listings catch up with what is there."""
        self._listed = dict.fromkeys(self._objects)

    def has(self, key: str) -> bool:
        return key in self._objects

    def body(self, key: str) -> bytes:
        """Read an object without any fault."""
        return self._objects[key]


def _strays(of_kind: list[str]) -> list[str]:
    """Make names for objects that nobody wrote: some that a job might give, some that none does."""
    names = ["records/README", "checkpoints/x", "streams/1.0/y", "parts/sink.0/z", "junk/../k"]
    names += ["commits/sink.0/last", *(f"{key}.bak" for key in of_kind[-1:])]
    for key in of_kind[-3:]:
        head, number = key[:-8], key[-8:]
        names += [f"{head}{int(number) + n:08}" for n in (1, 2, 50) if number.isdigit()]
    return names

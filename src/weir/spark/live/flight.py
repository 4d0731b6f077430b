"""Channels between hosts and to the manager: Arrow Flight with the job's secret.

Contract
1. Every call carries the secret, and is refused without it. Nothing that comes in is unpickled:
   control messages are msgspec's, rows are Arrow's, and both are checked (`message_checks.py`).
2. A reader asks for a stream from a row on and gets its entries as they come. An entry without
   rows is sent as metadata alone. The stream ends when the server says so or is gone.
3. With TLS both sides show the job's certificate, and each checks the other's before anything is
   read. Without TLS, Arrow receives a call that has one request (an action, say) whole, up to
   2 GB, before anybody can refuse it: the limits that gRPC has cannot be set from Python. So an
   address may also be a folder that only one user can enter: then hosts and manager listen at
   sockets in that folder, and at no port.
4. The server hands each entry to gRPC before it takes the next, so a slow reader holds it back. If
   it has nothing to send for `SIGN_EVERY` seconds, it sends a sign of life: a reader that gets
   neither can tell that the way is broken, of which nobody else may tell it.
"""

from __future__ import annotations

import hmac
import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

import msgspec
import pyarrow as pa
from pyarrow import flight

from weir.errors import RunError
from weir.reliable.codec import record_of
from weir.reliable.stream import Entry
from weir.spark.live.addresses import Endpoint, bracketed, free_port
from weir.spark.live.message_checks import Wanted, number_of, read_entry, read_wanted
from weir.spark.live.tls import Tls

# Else gRPC tells stderr of everybody who comes to a port with TLS and has no certificate.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

_HEADER = "authorization"
CALL_LIMIT = 5.0
"""Seconds within which an action is answered, unless the caller says otherwise."""
END_WITHIN = 1.0
"""Seconds that a server waits for calls to end, when it ends."""
SIGN_EVERY = 1.0
"""Seconds; see rule 4."""
CONNECT_WITHIN = 5.0
"""Seconds in which a connection is made, or given up."""
_SIGN = b"alive"
"""The metadata of a sign of life; that of an entry is never so."""


@dataclass(frozen=True, slots=True)
class Security:
    """Holds the job's secret, and what TLS needs if it is turned on."""

    token: str = field(repr=False)
    tls: Tls | None = None

    @property
    def scheme(self) -> str:
        return "grpc+tls" if self.tls is not None else "grpc"


# pyarrow.flight has no types: mypy sees the classes below derive from `Any`.


class _SecretCheck(flight.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses calls that do not carry the job's secret."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._expected = f"Bearer {token}".encode()

    def start_call(self, info: object, headers: dict[str, list[str]]) -> None:
        header = next(iter(headers.get(_HEADER, [])), "")
        if not hmac.compare_digest(header.encode("utf-8", "surrogateescape"), self._expected):
            raise flight.FlightUnauthenticatedError("the job's secret is missing or wrong")


class Subscription:
    """Holds the entries for one reader: the host's loop puts them in, a thread of the server takes
    them out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._entries: queue.SimpleQueue[Entry | None] = queue.SimpleQueue()

    def put(self, entry: Entry | None) -> None:
        """Add an entry; None ends the subscription."""
        self._entries.put(entry)

    def __iter__(self) -> Iterator[Entry | None]:
        """Give the entries as they come; None, each time that none has come for a while."""
        while True:
            try:
                entry = self._entries.get(timeout=SIGN_EVERY)
            except queue.Empty:
                yield None
                continue
            if entry is None:
                return
            yield entry


Act = Callable[[str, bytes], bytes]
Attend = Callable[[Iterator[bytes]], None]
Subscribe = Callable[[Wanted], Subscription]
Unsubscribe = Callable[[Subscription], None]
Sent = Callable[[Subscription, Entry], None]


class Server(flight.FlightServerBase):  # type: ignore[misc]
    """Serves streams (hosts) and actions (the manager).

    A RunError that `act` raises is sent to the caller. `attend` is called, in a thread of its own,
    for each line that a client keeps open (`Client.line`): with the messages that come, until the
    client or the way to it is gone."""

    def __init__(
        self,
        at: Endpoint,
        security: Security,
        *,
        act: Act | None = None,
        attend: Attend | None = None,
        subscribe: Subscribe | None = None,
        unsubscribe: Unsubscribe | None = None,
        sent: Sent | None = None,
    ) -> None:
        tls = security.tls
        scheme = "grpc+unix" if at.in_folder else security.scheme
        socket_name = f"{at.bind}/{uuid4().hex[:12]}"
        port = 0 if at.in_folder else free_port(at)
        super().__init__(
            f"{scheme}://{socket_name if at.in_folder else f'{bracketed(at.bind)}:{port}'}",
            middleware={"secret": _SecretCheck(security.token)},
            tls_certificates=None if tls is None else [(tls.certificate, tls.key)],
            verify_client=tls is not None,
            root_certificates=None if tls is None else tls.authority,
        )
        self._act, self._attend = act, attend
        self._subscribe, self._unsubscribe, self._sent = subscribe, unsubscribe, sent
        self.url = f"{scheme}://{socket_name}" if at.in_folder else at.url(scheme, self.port)
        # It serves from here on. `serve` would only wait, and end it when a signal comes: a job
        # that is asked to stop needs it for its last checkpoint.

    def end(self) -> None:
        """Serve nobody any more. A call whose client is out of reach would hold this up until TCP
        gives it up, so such calls are left behind after `END_WITHIN` seconds."""
        ending = threading.Thread(target=self.shutdown, daemon=True, name="ending")
        ending.start()
        ending.join(END_WITHIN)
        if ending.is_alive():
            for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined]
                if (finalized := finalizer.peek()) is not None and finalized[0] is self:
                    finalizer.atexit = False  # else Arrow waits again when the process leaves

    def do_action(self, context: object, action: flight.Action) -> list[bytes]:
        if self._act is None:
            raise flight.FlightServerError("no actions here")
        try:
            return [self._act(action.type, action.body.to_pybytes())]
        except RunError as error:
            raise flight.FlightServerError(str(error)) from None

    def do_exchange(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.MetadataRecordBatchWriter,
    ) -> None:
        if self._attend is not None:
            self._attend(_messages(reader))
            return
        if self._subscribe is None or self._unsubscribe is None:
            raise flight.FlightServerError("no streams here")
        try:
            request = read_wanted(descriptor.command)
        except RunError as error:
            raise flight.FlightServerError(str(error)) from None
        subscription = self._subscribe(request)
        began = False
        try:
            for entry in subscription:
                if entry is None:
                    writer.write_metadata(_SIGN)
                    continue
                number = msgspec.msgpack.encode(number_of(entry))
                if len(entry.rows):
                    record = record_of(entry)
                    if not began:
                        writer.begin(record.schema)
                        began = True
                    writer.write_with_metadata(record, number)
                else:
                    writer.write_metadata(number)
                if self._sent is not None:
                    self._sent(subscription, entry)
        finally:
            self._unsubscribe(subscription)


def _messages(reader: flight.MetadataRecordBatchReader) -> Iterator[bytes]:
    while True:
        try:
            yield reader.read_chunk().app_metadata.to_pybytes()
        except (StopIteration, *ChannelErrors):
            return


class Client:
    """Calls a `Server`: for actions, and for the entries of streams."""

    def __init__(self, url: str, security: Security) -> None:
        tls = security.tls
        self._client = flight.FlightClient(
            url,
            generic_options=[
                # Else a new client would go on with the connection of one that was given up.
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.min_reconnect_backoff_ms", int(CONNECT_WITHIN * 1000)),
            ],
            tls_root_certs=None if tls is None else tls.authority,
            cert_chain=None if tls is None else tls.certificate,
            private_key=None if tls is None else tls.key,
        )
        self._reader: flight.FlightStreamReader | None = None
        self._headers = [(_HEADER.encode(), f"Bearer {security.token}".encode())]
        self._options = flight.FlightCallOptions(headers=self._headers)

    def act(self, name: str, body: bytes, within: float = CALL_LIMIT) -> bytes:
        """Ask the server for an action; return its answer, which must come within so many
        seconds."""
        timed = flight.FlightCallOptions(headers=self._headers, timeout=within)
        results = self._client.do_action(flight.Action(name, body), timed)
        return bytes(next(iter(results)).body.to_pybytes())

    def entries(self, request: Wanted, types: Sequence[pa.DataType]) -> Iterator[Entry | None]:
        """Give the entries of a stream, with columns of these types, as they come; None for a sign
        of life. This ends when the server ends the stream, raises one of `ChannelErrors` when the
        channel breaks or `cancel` is called, and RunError when something comes that is no entry."""
        command = msgspec.msgpack.encode(request)
        descriptor = flight.FlightDescriptor.for_command(command)
        writer, reader = self._client.do_exchange(descriptor, self._options)
        self._reader = reader
        try:
            while True:
                try:
                    chunk = reader.read_chunk()
                except StopIteration:
                    return
                if chunk.app_metadata is not None and chunk.app_metadata.to_pybytes() == _SIGN:
                    yield None
                else:
                    yield read_entry(chunk.app_metadata, chunk.data, types)
        finally:
            # Closing waits for the end of the call unless it is cancelled; and Arrow complains on
            # stderr about a writer that was not closed before its channel broke.
            reader.cancel()
            with suppress(*ChannelErrors):
                writer.close()

    def cancel(self) -> None:
        """End `entries`, which another thread waits for, if it has begun."""
        if self._reader is not None:
            self._reader.cancel()

    def line(self) -> OpenLine:
        """Open a line that the server attends to for as long as this process lives. It waits long
        for a server that is out of reach: call after an action."""
        descriptor = flight.FlightDescriptor.for_command(b"")
        return OpenLine(*self._client.do_exchange(descriptor, self._options))

    def close(self) -> None:
        self._client.close()


class OpenLine:
    """An open connection to a server, which notices at once when this process dies."""

    def __init__(
        self, writer: flight.FlightStreamWriter, reader: flight.FlightStreamReader
    ) -> None:
        self._writer, self._reader = writer, reader

    def say(self, message: bytes) -> None:
        self._writer.write_metadata(message)

    def close(self) -> None:
        self._reader.cancel()
        with suppress(*ChannelErrors):
            self._writer.close()


ChannelErrors = (flight.FlightError, pa.ArrowException, OSError)
"""The errors that a broken channel raises."""

"""Channels between hosts and to the manager: Arrow Flight with the job's secret.

Contract
1. Every call carries the secret, and is refused without it. Nothing that comes in is unpickled:
   control messages are msgspec's, rows are Arrow's, and both are checked (`message_checks.py`).
2. Two hosts have one exchange for all streams that they read of each other, in both directions
   (`stream_connections.py`). It carries messages of words and a body (`link_messages.py`), at any
   time; it ends when the client gives it up, when the server ends the call, or when either is gone.
3. With TLS both sides show the job's certificate, and each checks the other's before anything is
   read. Without TLS, Arrow receives a call that has one request (an action, say) whole, up to
   2 GB, before anybody can refuse it: the limits that gRPC has cannot be set from Python. So an
   address may also be a folder that only one user can enter: then hosts and manager listen at
   sockets in that folder, and at no port.
"""

from __future__ import annotations

import hmac
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

import pyarrow as pa
from pyarrow import flight

from weir.errors import RunError
from weir.spark.live.addresses import Endpoint, bracketed, free_port
from weir.spark.live.message_checks import bad_message
from weir.spark.live.tls import Tls

# Else gRPC tells stderr of everybody who comes to a port with TLS and has no certificate.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

_HEADER = "authorization"
CALL_LIMIT = 5.0
"""Seconds within which an action is answered, unless the caller says otherwise."""
END_WITHIN = 1.0
"""Seconds that a server waits for calls to end, when it ends."""
CONNECT_WITHIN = 5.0
"""Seconds in which a connection is made, or given up."""
_BODY = pa.schema([("body", pa.uint8())])
"""What Flight takes a body for."""


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


class Exchange:
    """One call between two hosts: one thread of each may receive, and another one send."""

    def __init__(
        self,
        writer: flight.MetadataRecordBatchWriter,
        reader: flight.MetadataRecordBatchReader,
    ) -> None:
        self._writer, self._reader = writer, reader
        self._began = False

    def send(self, words: bytes, body: bytes) -> None:
        """Send a message; this waits while the other side takes nothing."""
        if not body:
            self._writer.write_metadata(words)
            return
        if not self._began:
            self._writer.begin(_BODY)
            self._began = True
        column = pa.Array.from_buffers(pa.uint8(), len(body), [None, pa.py_buffer(body)])
        self._writer.write_with_metadata(pa.RecordBatch.from_arrays([column], schema=_BODY), words)

    def receive(self) -> tuple[bytes, pa.Buffer] | None:
        """Wait for the next message; None: the other side has ended the call. RunError for what is
        no message."""
        try:
            chunk = self._reader.read_chunk()
        except StopIteration:
            return None
        words = b"" if chunk.app_metadata is None else chunk.app_metadata.to_pybytes()
        return words, pa.py_buffer(b"") if chunk.data is None else _body(chunk.data)

    def give_up(self) -> None:
        """End a call of this process's own, also while another thread waits for a message."""
        self._reader.cancel()

    def close(self) -> None:
        """Clean up after a call of this process's own that has ended, when nobody sends."""
        # Closing waits for the end of the call unless it is cancelled; and Arrow complains on
        # stderr about a writer that was not closed before its channel broke.
        self._reader.cancel()
        with suppress(*ChannelErrors):
            self._writer.close()


def _body(data: pa.RecordBatch) -> pa.Buffer:
    """Return the bytes of a body, in memory that is aligned as Arrow's arrays need it."""
    if data.schema != _BODY:
        raise bad_message("a message between hosts", f"a body of columns {data.schema.types}")
    try:
        data.validate()
    except pa.ArrowInvalid as error:
        raise bad_message("a message between hosts", error) from None
    column = data.column(0)
    body = column.buffers()[1].slice(column.offset, len(column))
    return pa.py_buffer(body.to_pybytes())


Act = Callable[[str, bytes], bytes]
Attend = Callable[[Iterator[bytes]], None]
AttendLink = Callable[[bytes, Exchange], None]


class Server(flight.FlightServerBase):  # type: ignore[misc]
    """Serves links (hosts) and actions (the manager).

    A RunError that `act` or `link` raises is sent to the caller. `attend` is called, in a thread of
    its own, for each line that a client keeps open (`Client.line`): with the messages that come,
    until the client or the way to it is gone; `link` for each link, with what its client said
    first. When `link` returns, the call ends, and nobody may use its exchange."""

    def __init__(
        self,
        at: Endpoint,
        security: Security,
        *,
        act: Act | None = None,
        attend: Attend | None = None,
        link: AttendLink | None = None,
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
        self._act, self._attend, self._link = act, attend, link
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
        if self._link is None:
            raise flight.FlightServerError("no streams here")
        try:
            self._link(descriptor.command or b"", Exchange(writer, reader))
        except RunError as error:
            raise flight.FlightServerError(str(error)) from None


def _messages(reader: flight.MetadataRecordBatchReader) -> Iterator[bytes]:
    while True:
        try:
            yield reader.read_chunk().app_metadata.to_pybytes()
        except (StopIteration, *ChannelErrors):
            return


class Client:
    """Calls a `Server`: for actions, lines and links."""

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
        self._headers = [(_HEADER.encode(), f"Bearer {security.token}".encode())]
        self._options = flight.FlightCallOptions(headers=self._headers)

    def act(self, name: str, body: bytes, within: float = CALL_LIMIT) -> bytes:
        """Ask the server for an action; return its answer, which must come within so many
        seconds."""
        timed = flight.FlightCallOptions(headers=self._headers, timeout=within)
        results = self._client.do_action(flight.Action(name, body), timed)
        return bytes(next(iter(results)).body.to_pybytes())

    def exchange(self, hello: bytes) -> Exchange:
        """Begin a link; whether it can be made shows with the first message that comes."""
        descriptor = flight.FlightDescriptor.for_command(hello)
        return Exchange(*self._client.do_exchange(descriptor, self._options))

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

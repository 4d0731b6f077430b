"""Channels with TLS: both sides' certificates are checked, and the secret is asked for as well."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import flight
from typer.testing import CliRunner

from certificates import certificate
from weir.cli import app
from weir.errors import PlanError
from weir.spark.live.addresses import Endpoint
from weir.spark.live.flight import ChannelErrors, Client, Security, Server
from weir.spark.live.tls import Tls, read_tls


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    certificate(made, "job")
    certificate(made, "other")
    certificate(made, "elsewhere", "IP:10.1.2.3")
    certificate(made, "both", "IP:127.0.0.1", "extendedKeyUsage=serverAuth,clientAuth")
    certificate(made, "serving", "IP:127.0.0.1", "extendedKeyUsage=serverAuth")
    return made


@pytest.fixture(scope="module")
def tls(folder: Path) -> Tls:
    return read_tls(folder / "job.crt", folder / "job.key")


@pytest.fixture(scope="module")
def server(tls: Tls) -> Iterator[Server]:
    made = Server(
        Endpoint("127.0.0.1"), Security("secret", tls), act=lambda name, body: name.encode() + body
    )
    yield made
    made.shutdown()


def test_a_call_over_tls_with_the_secret_is_answered(server: Server, tls: Tls) -> None:
    assert server.url.startswith("grpc+tls://")
    assert Client(server.url, Security("secret", tls)).act("hello", b"!") == b"hello!"


def test_tls_does_not_replace_the_secret(server: Server, tls: Tls) -> None:
    with pytest.raises(flight.FlightUnauthenticatedError):
        Client(server.url, Security("guessed", tls)).act("hello", b"")


@pytest.mark.parametrize("shown", [None, "other"])
def test_who_does_not_show_the_certificate_is_refused_before_it_sends(
    server: Server, tls: Tls, folder: Path, shown: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    mine = None if shown is None else read_tls(folder / f"{shown}.crt", folder / f"{shown}.key")
    client = flight.FlightClient(
        server.url,
        tls_root_certs=tls.authority,
        cert_chain=None if mine is None else mine.certificate,
        private_key=None if mine is None else mine.key,
    )
    secret = [(b"authorization", b"Bearer secret")]
    with pytest.raises((flight.FlightUnavailableError, flight.FlightInternalError)):
        list(
            client.do_action(flight.Action("hello", b""), flight.FlightCallOptions(headers=secret))
        )
    assert capfd.readouterr().err == ""


def test_a_certificate_may_say_that_it_is_for_both_sides(folder: Path) -> None:
    security = Security("secret", read_tls(folder / "both.crt", folder / "both.key"))
    server = Server(Endpoint("127.0.0.1"), security, act=lambda name, body: body)
    assert Client(server.url, security).act("hello", b"!") == b"!"
    server.shutdown()


def test_who_trusts_another_certificate_is_not_served(server: Server, folder: Path) -> None:
    other = read_tls(folder / "other.crt", folder / "other.key")
    with pytest.raises(ChannelErrors):
        Client(server.url, Security("secret", other)).act("hello", b"")


def test_a_plain_call_is_refused(server: Server) -> None:
    plain = server.url.replace("grpc+tls", "grpc")
    with pytest.raises(ChannelErrors):
        Client(plain, Security("secret")).act("hello", b"")


def test_a_certificate_for_another_address_is_not_accepted(folder: Path) -> None:
    security = Security("secret", read_tls(folder / "elsewhere.crt", folder / "elsewhere.key"))
    server = Server(Endpoint("127.0.0.1"), security, act=lambda name, body: body)
    with pytest.raises(ChannelErrors):
        Client(server.url, security).act("hello", b"")
    server.shutdown()


@pytest.mark.parametrize(
    ("cert", "key", "authority", "told"),
    [
        ("none.crt", "job.key", None, r"cannot read .*none\.crt.* for TLS: No such file"),
        ("job.crt", "none.key", None, r"cannot read .*none\.key"),
        ("job.crt", "job.key", "none.ca", r"cannot read .*none\.ca"),
        ("job.crt", "other.key", None, "no certificate with its key"),
        ("job.key", "job.key", None, "no certificate with its key"),
        ("job.crt", "job.key", "job.key", "no certificate of an authority"),
        ("serving.crt", "serving.key", None, "unsuitable certificate purpose; .*clientAuth"),
        ("job.crt", "job.key", "other.crt", "would not accept the certificate .*job.crt"),
    ],
)
def test_wrong_files_are_told(
    folder: Path, cert: str, key: str, authority: str | None, told: str
) -> None:
    with pytest.raises(PlanError, match=told):
        read_tls(folder / cert, folder / key, None if authority is None else folder / authority)


def test_a_key_with_a_password_is_told_and_not_asked_for(folder: Path) -> None:
    locked = folder / "locked.key"
    subprocess.run(
        [
            "openssl",
            "rsa",
            "-aes256",
            "-passout",
            "pass:x",
            "-in",
            folder / "job.key",
            "-out",
            locked,
        ],
        check=True,
        capture_output=True,
    )
    with pytest.raises(PlanError, match="without a password"):
        read_tls(folder / "job.crt", locked)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--runner", "live", "--store", "s", "--tls-cert", "a"], "both --tls-cert and --tls-key"),
        (["--runner", "live", "--store", "s", "--tls-ca", "a"], "both --tls-cert and --tls-key"),
        (["--tls-cert", "a", "--tls-key", "b"], "--tls-cert belongs to --runner live"),
        (
            ["--runner", "live", "--store", "s", "--tls-cert", "a", "--tls-key", "b"],
            "cannot read 'a' for TLS",
        ),
    ],
)
def test_options_that_do_not_fit(
    options: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.weir").write_text(
        "STREAM A (vs BIGINT) FROM 'rate://1?rows=1'; OUTPUT A TO 'a.csv';", encoding="utf-8"
    )
    done = CliRunner().invoke(app, ["run", "p.weir", *options])
    assert done.exit_code == 2
    assert told in done.output
    assert not Path("s").exists(), "nothing was begun"

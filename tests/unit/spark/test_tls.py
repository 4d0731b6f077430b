"""Channels with TLS: the certificate is checked, and the job's secret is asked for all the same."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import flight
from typer.testing import CliRunner

from certificates import certificate
from weir.cli import app
from weir.errors import PlanError
from weir.spark.flight import ChannelErrors, Client, Security, Server
from weir.spark.tls import Tls, read_tls


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    certificate(made, "job")
    certificate(made, "other")
    certificate(made, "elsewhere", "IP:10.1.2.3")
    return made


@pytest.fixture(scope="module")
def tls(folder: Path) -> Tls:
    return read_tls(folder / "job.crt", folder / "job.key")


@pytest.fixture(scope="module")
def server(tls: Tls) -> Iterator[Server]:
    made = Server("127.0.0.1", Security("secret", tls), act=lambda name, body: name.encode() + body)
    yield made
    made.shutdown()


def test_a_call_over_tls_with_the_secret_is_answered(server: Server, tls: Tls) -> None:
    assert server.url.startswith("grpc+tls://")
    assert Client(server.url, Security("secret", tls)).act("hello", b"!") == b"hello!"


def test_tls_does_not_replace_the_secret(server: Server, tls: Tls) -> None:
    with pytest.raises(flight.FlightUnauthenticatedError):
        Client(server.url, Security("guessed", tls)).act("hello", b"")


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
    server = Server("127.0.0.1", security, act=lambda name, body: body)
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
        ["openssl", "rsa", "-aes256", "-passout", "pass:x", "-in", folder / "job.key",
         "-out", locked],
        check=True, capture_output=True,
    )  # fmt: skip
    with pytest.raises(PlanError, match="without a password"):
        read_tls(folder / "job.crt", locked)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--runner", "live", "--store", "s", "--tls-cert", "a"], "both --tls-cert and --tls-key"),
        (["--runner", "live", "--store", "s", "--tls-ca", "a"], "both --tls-cert and --tls-key"),
        (["--tls-cert", "a", "--tls-key", "b"], "belong to --runner live"),
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

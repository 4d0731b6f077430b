"""Where manager and hosts listen: Spark's addresses, settings, ports, IPv6."""

import os
import socket
import tempfile
from collections.abc import Mapping

import pytest

from weir.errors import PlanError, RunError
from weir.plan.settings import with_settings
from weir.script.program import parse_program
from weir.spark.live.addresses import (
    AddressSettings,
    Endpoint,
    address_settings,
    free_port,
    listening,
    own_address,
    own_endpoint,
)
from weir.spark.live.flight import Client, Security, Server

PROGRAM = """
STREAM A (t BIGINT) FROM 'a.jsonl' WITH (vs = t);
SET ports = '40000-40009';
SET manager_bind = '0.0.0.0';
OUTPUT A TO 'out.csv';
"""
CLUSTER = {"spark.master": "spark://head:7077", "spark.driver.host": "10.0.0.1"}


def chosen(
    conf: Mapping[str, str], asked: AddressSettings | None = None, *, tls: bool = False
) -> tuple[Endpoint, Endpoint | None]:
    with listening(conf.get, asked or AddressSettings(), tls=tls, connect="") as found:
        return found


def test_the_manager_is_where_the_driver_is() -> None:
    assert chosen(CLUSTER) == (Endpoint("10.0.0.1", "10.0.0.1"), None)
    behind = {**CLUSTER, "spark.driver.bindAddress": "0.0.0.0"}
    assert chosen(behind) == (Endpoint("0.0.0.0", "10.0.0.1"), None)
    over_six = {**CLUSTER, "spark.driver.host": "[fd77::1]"}
    assert chosen(over_six)[0].url("grpc", 7) == "grpc://[fd77::1]:7"


def test_what_is_asked_for_counts_before_what_spark_says() -> None:
    asked = AddressSettings("outside.example", "0.0.0.0", ports=(7000, 7009))
    assert chosen(CLUSTER, asked)[0] == Endpoint("0.0.0.0", "outside.example", (7000, 7009))


def test_on_a_local_master_nothing_is_reached_from_elsewhere() -> None:
    manager, host = chosen({"spark.master": "local[3]"})
    assert manager == host and manager.in_folder and not os.path.exists(manager.bind)
    with_tls = chosen({"spark.master": "local[3]"}, tls=True)
    assert with_tls == (Endpoint("127.0.0.1"), Endpoint("127.0.0.1"))


@pytest.mark.parametrize("name", ["a b", "a%20b", "a#b", "\u00fc", 70 * "x"])
def test_a_folder_whose_name_no_url_has_holds_no_sockets(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", f"/{name}")
    assert chosen({"spark.master": "local[3]"}) == (Endpoint("127.0.0.1"), Endpoint("127.0.0.1"))


def test_settings_come_from_the_program_then_from_spark() -> None:
    program = parse_program(PROGRAM)
    conf = {"spark.weir.ports": "1-2", "spark.weir.host_address": "10.1.0.0/16"}
    found = address_settings(program, conf.get)
    assert found == AddressSettings(
        manager_bind="0.0.0.0", host_address="10.1.0.0/16", ports=(40000, 40009)
    )
    said = with_settings(program, {"manager_bind": "::"})
    assert address_settings(said, {}.get).manager_bind == "::"


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("ports", "40000", "invalid port range"),
        ("ports", "9-1", "invalid port range"),
        ("ports", "0-70000", "invalid port range"),
        ("manager_bind", "somewhere", "invalid address to listen on"),
        ("manager_address", "a b", "invalid address"),
        ("host_address", "10.0.0.0/77", "invalid network"),
    ],
)
def test_wrong_settings_are_refused(name: str, text: str, error: str) -> None:
    with pytest.raises(PlanError, match=error):
        with_settings(parse_program(PROGRAM), {name: text})


def test_a_host_has_the_address_that_leads_to_the_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    assert own_endpoint(AddressSettings(), "grpc://127.0.0.1:7") == Endpoint(
        "127.0.0.1", "127.0.0.1"
    )
    assert own_endpoint(AddressSettings(), "grpc://[::1]:7").name == "::1"
    everywhere = own_endpoint(AddressSettings(host_bind="0.0.0.0"), "grpc://127.0.0.1:7")
    assert (everywhere.bind, everywhere.name) == ("0.0.0.0", "127.0.0.1")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.5")
    assert own_endpoint(AddressSettings(), "grpc://127.0.0.1:7").name == "127.0.0.5"
    in_network = AddressSettings(host_address="127.0.0.0/8")
    assert own_endpoint(in_network, "grpc://127.0.0.1:7").name.startswith("127.")
    with pytest.raises(RunError, match=r"has no (address in|way to)"):
        own_endpoint(AddressSettings(host_address="203.0.113.0/24"), "grpc://127.0.0.1:7")


def test_a_machine_without_a_name_has_no_way() -> None:
    with pytest.raises(RunError, match=r"has no way to nowhere\.invalid"):
        own_address("grpc://nowhere.invalid:7")


def test_ports_stay_in_their_range() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(RunError, match=f"cannot listen at 127.0.0.1, ports {port}-{port}"):
            free_port(Endpoint("127.0.0.1", ports=(port, port)))
    assert free_port(Endpoint("127.0.0.1", ports=(port, port))) == port
    with pytest.raises(
        RunError, match=r"cannot listen at 203\.0\.113\.9: .*assign.*SET manager_bind"
    ):
        free_port(Endpoint("203.0.113.9"))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_server_is_reached_by_its_name(address: str) -> None:
    secret = Security("secret")
    server = Server(
        Endpoint("::" if ":" in address else "0.0.0.0", address),
        secret,
        act=lambda name, body: body,
    )
    assert Client(server.url, secret).act("hello", b"there") == b"there"
    server.shutdown()

"""The ports of a stopped server stay its own."""

from __future__ import annotations

import socket
import sys

import pytest

from kshim.testing.ports import HOST, Ports


def test_nobody_else_gets_a_held_port() -> None:
    ports = Ports(3)
    for port in range(ports.first, ports.first + 3):
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((HOST, port))
    ports.close()
    with socket.socket() as other:
        other.bind((HOST, ports.first))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the ports are released for the server")
def test_a_server_listens_beside_the_holder() -> None:
    ports = Ports(1)
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((HOST, ports.first))
        server.listen()
        other = socket.socket()
        with socket.create_connection((HOST, ports.first), 5), other, pytest.raises(OSError, match="in use"):
            other.bind((HOST, ports.first))
    ports.close()

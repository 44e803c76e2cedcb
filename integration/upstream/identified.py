"""kshim in front of a listener of the nodes, with a listener for certificates and a file of identities."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from integration.apache_kafka.nodes import Nodes
from integration.clients.security.cells import KEYSTORE_PASSWORD, PASSWORD, PROTOCOLS, USER, Cell
from integration.support.ports import Slot
from integration.support.server import Server, set_options
from integration.upstream.passed_logins import BY_NAME, KSHIM, address_of
from integration.upstream.secured import BOB, arguments, client, login

CAROL: Final = "carol"
"""A user who has a certificate, but does not stand in the file at first."""
MECHANISM: Final = "SCRAM-SHA-512"


class Identified:
    """A running kshim, and its file of identities."""

    def __init__(self, server: Server, certificates: Path, file: Path, listener: str) -> None:
        self.server = server
        self.certificates = certificates
        self._file = file
        self._listener = listener

    @property
    def address(self) -> str:
        """kshim's listener for the first node."""
        return f"{self.server.host}:{self.server.port}"

    def know(self, *users: str) -> None:
        """Write the file anew, with the credentials of these users."""
        write(self._file, self._listener, self.certificates, users)

    def of_librdkafka(self, user: str = USER) -> dict[str, Any]:
        """The settings of a client with the certificate of a user."""
        own = self.certificates / user
        return {
            "bootstrap.servers": self.address,
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.certificates / "ca.pem"),
            "ssl.certificate.location": f"{own}.pem",
            "ssl.key.location": f"{own}.key",
        }


def credentials(listener: str, certificates: Path, user: str) -> Mapping[str, str]:
    """The properties with which a user enters a listener of the nodes: a login, or a key store."""
    if PROTOCOLS[listener] != "SSL":
        return {"sasl.jaas.config": login(MECHANISM, user, PASSWORD)["sasl.jaas.config"]}
    return {
        "ssl.keystore.location": str(certificates / f"{user}.p12"),
        "ssl.keystore.password": KEYSTORE_PASSWORD,
    }


def write(file: Path, listener: str, certificates: Path, users: tuple[str, ...]) -> None:
    """Replace the file of identities at once, as editors and Kubernetes do."""
    lines = (
        f"{user}.{name}={text}\n"
        for user in users
        for name, text in credentials(listener, certificates, user).items()
    )
    new = file.with_suffix(".new")
    new.write_text("".join(lines))
    os.replace(new, file)


@contextmanager
def identified(nodes: Nodes, listener: str, directory: Path, certificates: Path) -> Iterator[Identified]:
    """kshim in front of a listener of the nodes, until the block ends. It knows USER and BOB."""
    slot, file = Slot(), directory / "identities.properties"
    write(file, listener, certificates, (USER, BOB))
    properties = {
        "listener.security.protocol.map": "CERTIFIED:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates / "ca.pem"),
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": BY_NAME,
        "upstream.identities.file": str(file),
        "upstream.groups.topic": f"__kshim_groups_{listener}",
        "upstream.groups.group.id": f"__kshim_{listener}",
    }
    protocol = PROTOCOLS[listener]
    told = client(Cell(listener, protocol, "" if protocol == "SSL" else MECHANISM), certificates, user=KSHIM)
    told |= credentials(listener, certificates, KSHIM)
    further = ("--listen", f"CERTIFIED://127.0.0.1:{slot.port}", *set_options(properties))
    server = Server(
        directory / "kshim", arguments(directory, address_of(nodes, listener), told, *further)
    ).start_at(slot)
    try:
        yield Identified(server, certificates, file, listener)
    finally:
        log = "\n".join(server.log)
        if server.running:
            server.kill()
        assert "Traceback" not in log
        assert PASSWORD not in log

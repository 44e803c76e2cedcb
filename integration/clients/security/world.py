"""The two servers, each with a listener for every security protocol."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from integration import apache_kafka
from integration.apache_kafka.jars import VERSION
from integration.clients.security.cells import CELLS, MECHANISMS, PASSWORD, PROTOCOLS, USER
from integration.differential.stories.sasl_settings import MODULES
from integration.support.ports import Slot
from integration.support.server import COMMAND, Server, set_options
from kshim.testing.wire import Wire
from schemas.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)

BROKERS = {"kshim": COMMAND, f"Apache Kafka {VERSION}": apache_kafka.COMMAND}
JAAS = {
    "plain": f'plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "scram-sha-256": "scram.ScramLoginModule required;",
    "scram-sha-512": "scram.ScramLoginModule required;",
    "oauthbearer": f'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{USER}";',
}
SALT = b"salt"


class Secured:
    """A server, and the address of each of its listeners."""

    def __init__(self, server: Server, addresses: Mapping[str, str], certificates: Path) -> None:
        self.server = server
        self.addresses = addresses
        self.certificates = certificates


@contextmanager
def secured(
    broker: str, directory: Path, certificates: Path, further: Mapping[str, str] | None = None
) -> Iterator[Secured]:
    """The server of that name, until the block ends. certificates: made by `kshim certificates`. further:
    other properties.
    """
    slot = Slot()  # holds its ports
    ports = dict(zip(PROTOCOLS, itertools.count(slot.port), strict=False))
    addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    listeners = ",".join(f"{name}://{address}" for name, address in addresses.items())
    options = set_options(settings_of(certificates) | dict(further or {}))
    server = Server(directory, ["--listen", listeners, *options], command=BROKERS[broker])
    server.start()
    try:
        set_password(server, USER, PASSWORD)
        yield Secured(server, addresses, certificates)
    finally:
        if server.running:
            server.stop()


def settings_of(certificates: Path) -> dict[str, str]:
    """The properties of a server with all these listeners. certificates: made by `kshim certificates`."""
    jaas = {
        f"listener.name.{listener.lower()}.{mechanism}.sasl.jaas.config": f"{MODULES}{line}"
        for listener in dict.fromkeys(cell.listener for cell in CELLS if cell.mechanism)
        for mechanism, line in JAAS.items()
    }
    protocols = {"CONTROLLER": "PLAINTEXT", **PROTOCOLS}
    return {
        "listener.security.protocol.map": ",".join(f"{name}:{each}" for name, each in protocols.items()),
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates / "ca.pem"),
        "listener.name.mutual.ssl.client.auth": "required",
        **jaas,
    }


def set_password(server: Server, user: str, password: str) -> None:
    """Set the password of a SCRAM user."""
    with Wire(server.host, server.port) as wire:
        for number, hash_name in ((1, "sha256"), (2, "sha512")):
            salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), SALT, 4096)
            upsertion = ScramCredentialUpsertion(
                name=user, mechanism=number, iterations=4096, salt=SALT, salted_password=salted
            )
            (result,) = wire.ask(0, AlterUserScramCredentialsRequest(upsertions=(upsertion,))).results
            assert not result.error_code, result

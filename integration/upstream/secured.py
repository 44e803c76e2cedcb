"""Apache Kafka with a listener for each security protocol, and the client.properties to come in by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from integration.apache_kafka.jars import VERSION
from integration.clients.security.cells import CELLS, KEYSTORE_PASSWORD, PASSWORD, USER, Cell
from integration.clients.security.world import Secured, secured
from integration.differential.stories.sasl_settings import MODULES
from integration.support.server import Server
from kshim.configs.access import STANDARD_AUTHORIZER

BOB: Final = "bob"
"""Who may do nothing that no ACL allows."""
SESSION_MS: Final = 3_000
"""How long a login by SCRAM-SHA-256 counts."""
SETTINGS: Final = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": f"User:ANONYMOUS;User:{USER};User:CN={USER}",
    "listener.name.login.scram-sha-256.connections.max.reauth.ms": str(SESSION_MS),
}


@contextmanager
def upstream(directory: Path, certificates: Path) -> Iterator[Secured]:
    """Apache Kafka, until the block ends."""
    with secured(f"Apache Kafka {VERSION}", directory, certificates, SETTINGS) as found:
        yield found
        found.server.kill()


def client(cell: Cell, certificates: Path, user: str = USER, password: str = PASSWORD) -> dict[str, str]:
    """The client.properties of a cell."""
    properties = {"security.protocol": cell.protocol, "client.id": "not for kshim"}
    if cell.mechanism:
        properties |= login(cell.mechanism, user, password)
    if cell.protocol.endswith("SSL"):
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(certificates / "ca.pem")}
    if cell.listener == "MUTUAL":
        properties |= {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(certificates / f"{USER}.p12"),
            "ssl.keystore.password": KEYSTORE_PASSWORD,
            "ssl.key.password": KEYSTORE_PASSWORD,
        }
    return properties


def login(mechanism: str, user: str, password: str) -> dict[str, str]:
    """The part about SASL."""
    credentials = f'username="{user}" password="{password}"'
    modules = {
        "PLAIN": f"plain.PlainLoginModule required {credentials};",
        "OAUTHBEARER": f'oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{user}";',
    }
    module = modules.get(mechanism, f"scram.ScramLoginModule required {credentials};")
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": f"{MODULES}{module}"}


def cell_of(listener: str, mechanism: str = "") -> Cell:
    (found,) = (each for each in CELLS if (each.listener, each.mechanism) == (listener, mechanism))
    return found


def arguments(directory: Path, address: str, properties: Mapping[str, str], *further: str) -> list[str]:
    """The options of `kshim serve` for an upstream with these client.properties."""
    file = directory / "client.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    return ["--upstream", address, "--upstream-config", str(file), *further]


def new_kshim(directory: Path, address: str, properties: Mapping[str, str], *further: str) -> Server:
    """kshim in front of that upstream, not started."""
    return Server(directory / "kshim", arguments(directory, address, properties, *further))

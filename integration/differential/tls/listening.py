"""A server of either kind with the same listeners, keys and trusted authority."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from integration import apache_kafka
from integration.support.ports import Slot
from integration.support.server import COMMAND, Server, set_options
from kshim.certificates.authority import Authority, Issued
from kshim.configs.principal_rules import mapped, parse_rules
from kshim.network.certificate_names import subject

KSHIM, APACHE_KAFKA = "kshim", "apache-kafka"
CONTROLLER = "CONTROLLER"
LISTENERS = {
    "PLAINTEXT": "PLAINTEXT",
    "REQUESTED": "SSL",
    "REQUIRED": "SSL",
    "MAPPED": "SSL",
    "LOGIN": "SASL_SSL",
}
"""Their protocols, by their names; their ports follow each other."""
RULES = "RULE:^CN=([^,]*),OU=Mapped.*$/$1/L,RULE:^CN=(.*?),O=(.*?)$/$2-$1/,DEFAULT"
FRIENDS = ("CN=alice", "CN=Bob B,OU=Mapped,O=Example,C=DE", "CN=carol,O=Example", "CN=Dave+OU=Ops,UID=d")
USER, USERS_PASSWORD = "alice", "wonderland"
"""The user that may log in at LOGIN, with PLAIN, and the password."""
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
MEANT = "D-tls-alerts"
"""The key of the only meant difference that is shown here."""
MALLORY = "CN=mallory"
"""Nobody's friend: it may do nothing."""


@dataclass(frozen=True)
class Certificates:
    """Certificates in files, for servers and clients."""

    directory: Path
    authority: Authority
    clients: Mapping[str, Issued]
    """The clients' certificates, by name."""

    @property
    def super_users(self) -> list[str]:
        """The principals of the friends, as kshim names them: at listeners without rules, and with RULES."""
        names = [subject(self.clients[name].certificate.public_bytes(Encoding.DER)) for name in FRIENDS]
        return [*names, *(str(mapped(parse_rules(RULES), name)) for name in names), "ANONYMOUS", USER]

    def write(self, name: str, issued: Issued) -> dict[str, str]:
        """A client's certificate, as librdkafka's properties."""
        (self.directory / f"{name}.pem").write_text(issued.certificate_pem)
        (self.directory / f"{name}.key").write_text(issued.key_pem)
        return {
            "ssl.certificate.location": str(self.directory / f"{name}.pem"),
            "ssl.key.location": str(self.directory / f"{name}.key"),
        }

    @property
    def trusting(self) -> dict[str, str]:
        """librdkafka's properties of a client without a certificate."""
        return {"security.protocol": "ssl", "ssl.ca.location": str(self.directory / "ca.pem")}


def new_certificates(directory: Path) -> Certificates:
    directory.mkdir()
    authority = Authority()
    server = authority.server(["localhost"])
    chain = server.key_pem + server.certificate_pem + authority.certificate_pem
    (directory / "server.pem").write_text(chain)
    (directory / "ca.pem").write_text(authority.certificate_pem)
    return Certificates(directory, authority, {name: authority.client(name) for name in (*FRIENDS, MALLORY)})


@dataclass(frozen=True)
class Listening:
    """A running server."""

    kind: str
    server: Server

    def port(self, listener: str) -> int:
        return self.server.port + list(LISTENERS).index(listener)

    def at(self, listener: str) -> str:
        return f"localhost:{self.port(listener)}"


@contextmanager
def serving(kind: str, directory: Path, certificates: Certificates) -> Iterator[Listening]:
    slot = Slot()
    command = apache_kafka.COMMAND if kind == APACHE_KAFKA else COMMAND
    server = Server(directory / kind, _options(kind, slot.port, certificates), command=command)
    server.start_at(slot)
    try:
        yield Listening(kind, server)
    finally:
        server.kill()


def _options(kind: str, port: int, certificates: Certificates) -> list[str]:
    listeners = [f"{name}://localhost:{port + number}" for number, name in enumerate(LISTENERS)]
    protocols = {**LISTENERS, CONTROLLER: "PLAINTEXT"}
    properties = {
        "listener.security.protocol.map": ",".join(map(":".join, protocols.items())),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.directory / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.directory / "ca.pem"),
        "ssl.client.auth": "requested",
        "listener.name.required.ssl.client.auth": "required",
        "listener.name.mapped.ssl.client.auth": "required",
        "listener.name.mapped.ssl.principal.mapping.rules": RULES,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.login.plain.sasl.jaas.config": (
            f'{LOGIN_MODULE} required user_{USER}="{USERS_PASSWORD}";'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{name}" for name in certificates.super_users),
    }
    if kind == APACHE_KAFKA:
        controller = port + len(LISTENERS)
        properties |= {
            "listeners": ",".join([*listeners, f"{CONTROLLER}://localhost:{controller}"]),
            "advertised.listeners": ",".join(listeners),
            "controller.quorum.voters": f"1@localhost:{controller}",
        }
    settings = set_options(properties)
    return settings if kind == APACHE_KAFKA else [*settings, "--listen", ",".join(listeners)]

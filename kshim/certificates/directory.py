"""Makes a directory of certificates, and of files with the properties to use them.

| File | |
|---|---|
| ca.pem | the authority's certificate, which everybody trusts |
| server.pem, server.p12 | the server's certificate, its key and the authority |
| server.properties | for `kshim serve --config`, and for Apache Kafka |
| truststore.p12 | the authority's certificate, for Java |
| NAME.pem, NAME.key, NAME.p12 | a client's certificate and key |
| NAME.properties, NAME.librdkafka | for Java's clients and tools, and for librdkafka's |
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kshim.certificates.authority import Authority

PASSWORD = "changeit"
HOSTS = ("localhost", "127.0.0.1", "::1")
CLIENT = "client"
_OWN_NAMES = ("ca", "server", "truststore")


class CannotMake(Exception):
    """The files cannot be made. str() is one line for the user."""


@dataclass(frozen=True, slots=True)
class Client:
    """The files of one client, and the properties with which client libraries use them."""

    name: str
    directory: Path

    def file(self, suffix: str) -> Path:
        return self.directory / f"{self.name}.{suffix}"

    @property
    def java(self) -> dict[str, str]:
        """The properties for Java's clients."""
        return {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.directory / "truststore.p12"),
            "ssl.truststore.password": PASSWORD,
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.file("p12")),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
        }

    @property
    def librdkafka(self) -> dict[str, str]:
        """The properties for confluent-kafka, and for all other clients on librdkafka."""
        return {
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.directory / "ca.pem"),
            "ssl.certificate.location": str(self.file("pem")),
            "ssl.key.location": str(self.file("key")),
        }

    @property
    def kafka_python(self) -> dict[str, str]:
        """The arguments for kafka-python."""
        return {
            "security_protocol": "SSL",
            "ssl_cafile": str(self.directory / "ca.pem"),
            "ssl_certfile": str(self.file("pem")),
            "ssl_keyfile": str(self.file("key")),
        }


@dataclass(frozen=True, slots=True)
class Made:
    """A finished directory of certificates."""

    directory: Path
    clients: Sequence[Client]

    @property
    def server(self) -> dict[str, str]:
        """The properties for a server's TLS listeners."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.directory / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.directory / "ca.pem"),
            "ssl.client.auth": "requested",
        }


def make(
    directory: Path, *, hosts: Sequence[str] = HOSTS, clients: Sequence[str] = (CLIENT,), days: int = 365
) -> Made:
    """Make all files. clients: names, or distinguished names. Raises CannotMake, and ValueError for a name
    that cannot be used.
    """
    authority = Authority(days=days)
    made = Made(directory.absolute(), [Client(_file_name(name), directory.absolute()) for name in clients])
    _check_names([*_OWN_NAMES, *(client.name for client in made.clients)])
    server = authority.server(hosts)
    files: dict[str, str | bytes] = {
        "ca.pem": authority.certificate_pem,
        "truststore.p12": authority.trust_store(PASSWORD),
        "server.pem": server.key_pem + server.certificate_pem + authority.certificate_pem,
        "server.p12": server.pkcs12("server", authority.certificate, PASSWORD),
        "server.properties": _properties(_listeners(hosts) | made.server),
    }
    for name, client in zip(clients, made.clients, strict=True):
        issued = authority.client(name)
        files |= {
            client.file("pem").name: issued.certificate_pem,
            client.file("key").name: issued.key_pem,
            client.file("p12").name: issued.pkcs12(client.name, authority.certificate, PASSWORD),
            client.file("properties").name: _properties(client.java),
            client.file("librdkafka").name: _properties(client.librdkafka),
        }
    _write(directory, files)
    return made


def _file_name(name: str) -> str:
    """The CN in small letters; characters that do not fit into a file name become "_"."""
    found = re.search(r"CN=([^,+]*)", name)
    return re.sub(r"[^\w.-]", "_", found[1] if found else name).lower()


def address(hosts: Sequence[str]) -> str:
    """The address of the server's TLS listener, HOST:PORT."""
    host = hosts[0]
    return f"[{host}]:9093" if ":" in host else f"{host}:9093"


def _listeners(hosts: Sequence[str]) -> dict[str, str]:
    """The properties of the listeners. Only with other names than this machine's is TLS open to others."""
    if hosts == HOSTS:
        return {"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://127.0.0.1:9093"}
    advertised = f"SSL://{address(hosts)}"
    return {"listeners": "PLAINTEXT://127.0.0.1:9092,SSL://0.0.0.0:9093", "advertised.listeners": advertised}


def _check_names(names: Sequence[str]) -> None:
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{twice[0]}: expected names of which no two are files of the same name")


def _properties(values: Mapping[str, str]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())


def _write(directory: Path, files: Mapping[str, str | bytes]) -> None:
    """Write all files, which only their owner may read; none if one of them exists. Raises CannotMake."""
    if there := [name for name in files if (directory / name).exists()]:
        raise CannotMake(f"{directory / there[0]} is there already; nothing was written")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise CannotMake(f"cannot write to {directory}: {error.strerror}") from error

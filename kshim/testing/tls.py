"""A TLS listener for a test's server: its certificates, and the settings that clients need.

with serving(tls=True) as kshim:
    producer = KafkaProducer(**kshim.tls.kafka_python)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kshim.certificates.directory import Client, Made, make
from kshim.testing.ports import HOST

__all__ = ["Tls"]


@dataclass(frozen=True)
class Tls:
    """Addresses, certificates and client settings of a TLS listener.

    It has `ssl.client.auth=requested`, unless the properties say otherwise: a client without a certificate
    may connect, as ANONYMOUS.
    """

    bootstrap: str
    """The addresses of the brokers, comma-separated, as clients take them."""
    made: Made
    chosen: Client

    @property
    def directory(self) -> Path:
        """The directory of the certificates; docs/security.md lists its files."""
        return self.made.directory

    @property
    def ca(self) -> Path:
        """The authority's certificate, in PEM."""
        return self.directory / "ca.pem"

    @property
    def kafka_python(self) -> dict[str, str]:
        """Arguments of kafka-python: `KafkaProducer(**kshim.tls.kafka_python)`."""
        return {"bootstrap_servers": self.bootstrap, **self.chosen.kafka_python}

    @property
    def librdkafka(self) -> dict[str, str]:
        """Properties of confluent-kafka: `Producer(kshim.tls.librdkafka)`."""
        return {"bootstrap.servers": self.bootstrap, **self.chosen.librdkafka}

    @property
    def java(self) -> dict[str, str]:
        """Properties for Java clients. With "kafka." before each key they are options for Spark."""
        return {"bootstrap.servers": self.bootstrap, **self.chosen.java}

    def client(self, name: str) -> Tls:
        """Return the settings of another client. name: the name of its files. Raises KeyError."""
        return replace(self, chosen={client.name: client for client in self.made.clients}[name])


def new_tls(directory: Path, ports: Sequence[int], clients: Sequence[str]) -> Tls:
    """Make the certificates. clients: their names, such as alice or CN=alice,OU=Sales. Raises ValueError."""
    made = make(directory, hosts=("localhost", HOST), clients=clients)
    return Tls(",".join(f"{HOST}:{port}" for port in ports), made, made.clients[0])

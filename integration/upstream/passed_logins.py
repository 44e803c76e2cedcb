"""Two nodes of Apache Kafka with listeners for logins, their ACLs, and kshim that passes logins through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from integration.apache_kafka.nodes import Nodes
from integration.clients.matrix.driver import Driver
from integration.clients.security.cells import PASSWORD, PROTOCOLS, USER, Cell
from integration.clients.security.world import set_password, settings_of
from integration.differential.stories.sasl_settings import MODULES
from integration.support.ports import Slot
from integration.support.server import Server, set_options
from integration.upstream.secured import BOB, SESSION_MS, arguments, client
from kshim.authentication.client import Scram
from kshim.authentication.scram_credential import ScramMechanism
from kshim.cluster.acl import AclOperation, AclResource, PatternType, Permission
from kshim.configs.access import STANDARD_AUTHORIZER
from kshim.configs.values import Secret
from kshim.testing.wire import Wire
from schemas.messages.create_acls import AclCreation, CreateAclsRequest
from schemas.messages.sasl_authenticate import SaslAuthenticateRequest
from schemas.messages.sasl_handshake import SaslHandshakeRequest

KSHIM: Final = "kshim"
"""The user as whom kshim itself comes to the upstream."""
USERS: Final = (USER, BOB, KSHIM)
LISTENERS: Final = ("PLAINTEXT", "LOGIN", "LOGINTLS", "MUTUAL")
"""The listeners of a node, in the order of their ports."""
OURS: Final = {"CLEAR": "SASL_PLAINTEXT", "SECRET": "SASL_SSL"}
"""kshim's listeners, in the order of their ports."""
BY_NAME: Final = "RULE:^CN=([^,]*).*$/$1/"
"""Makes alice of a certificate of CN=alice."""
NODES: Final = 2
NewDriver = Callable[..., Driver]
"""NewDriver(client, kshim, listener, mechanism, user="…"): a driver at that listener of kshim."""
TOPICS, GROUPS, SECRETS = "t-", "g-", "secret-"
"""What USER may use begins so. BOB may read the topics, but not write to them, and use no group."""
RIGHTS: Final = (
    (USER, AclResource.TOPIC, TOPICS, AclOperation.ALL),
    (USER, AclResource.GROUP, GROUPS, AclOperation.ALL),
    (USER, AclResource.TRANSACTIONAL_ID, TOPICS, AclOperation.ALL),
    (BOB, AclResource.TOPIC, TOPICS, AclOperation.READ),
    (BOB, AclResource.TRANSACTIONAL_ID, TOPICS, AclOperation.ALL),
    # What docs/upstream.md says that kshim needs; and topics that no other user may see.
    (KSHIM, AclResource.TOPIC, "__kshim_groups", AclOperation.CREATE),
    (KSHIM, AclResource.TOPIC, "__kshim_groups", AclOperation.READ),
    (KSHIM, AclResource.TOPIC, "__kshim_groups", AclOperation.WRITE),
    (KSHIM, AclResource.GROUP, "__kshim", AclOperation.READ),
    (KSHIM, AclResource.TOPIC, TOPICS, AclOperation.READ),
    (KSHIM, AclResource.GROUP, GROUPS, AclOperation.READ),
    (KSHIM, AclResource.TRANSACTIONAL_ID, TOPICS, AclOperation.WRITE),
    (KSHIM, AclResource.TOPIC, SECRETS, AclOperation.DESCRIBE),
)
_PASSWORDS: Final = " ".join(f'user_{user}="{PASSWORD}"' for user in USERS)
_PLAIN: Final = f"{MODULES}plain.PlainLoginModule required {_PASSWORDS};"


def upstream(directory: Path, certificates: Path) -> Nodes:
    """The nodes, with users and ACLs. The caller kills them."""
    protocols = {"CONTROLLER": "PLAINTEXT", **{name: PROTOCOLS[name] for name in LISTENERS}}
    settings = settings_of(certificates) | {
        "listener.security.protocol.map": ",".join(f"{name}:{each}" for name, each in protocols.items()),
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "listener.name.login.scram-sha-256.connections.max.reauth.ms": str(SESSION_MS),
        "listener.name.mutual.ssl.principal.mapping.rules": BY_NAME,
        "listener.name.login.plain.sasl.jaas.config": _PLAIN,
        "listener.name.logintls.plain.sasl.jaas.config": _PLAIN,
    }
    nodes = Nodes(directory, NODES, *set_options(settings))
    for server in nodes.servers.values():
        server.listeners = LISTENERS
    try:
        nodes.start()
    except BaseException:
        nodes.kill()
        raise
    first = nodes.servers[1]
    allow(first, *RIGHTS)
    for user in USERS:
        set_password(first, user, PASSWORD)
    return nodes


def allow(server: Server, *rights: tuple[str, AclResource, str, AclOperation]) -> None:
    """Allow users an operation on everything of a kind whose name begins so."""
    creations = tuple(
        AclCreation(
            resource_type=resource,
            resource_name=prefix,
            resource_pattern_type=PatternType.PREFIXED,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=Permission.ALLOW,
        )
        for user, resource, prefix, operation in rights
    )
    with Wire(server.host, server.port) as wire:
        answered = wire.ask(3, CreateAclsRequest(creations=creations))
    assert not any(each.error_code for each in answered.results), answered


def address_of(nodes: Nodes, listener: str, node_id: int = 1) -> str:
    """The address of a node's listener."""
    server = nodes.servers[node_id]
    return f"{server.host}:{server.port + LISTENERS.index(listener)}"


class Passing:
    """kshim in front of one listener of the nodes, with its own listeners for logins."""

    def __init__(self, server: Server, certificates: Path) -> None:
        self.server = server
        self.certificates = certificates

    def address(self, listener: str) -> str:
        """The address of kshim's listener for the first node; the second one has the next port."""
        return f"{self.server.host}:{self.server.port + NODES * list(OURS).index(listener)}"

    def wire(self, listener: str = "CLEAR", node: int = 0) -> Wire:
        """A connection to kshim's port for a node."""
        host, _, port = self.address(listener).rpartition(":")
        return Wire(host, int(port) + node)


def of_kshim(protocol: str, certificates: Path) -> dict[str, str]:
    """The client.properties with which kshim itself comes in."""
    return client(Cell("", protocol, "SCRAM-SHA-512"), certificates, user=KSHIM)


@contextmanager
def passing(nodes: Nodes, listener: str, directory: Path, certificates: Path) -> Iterator[Passing]:
    """kshim in front of a listener of the nodes, until the block ends."""
    slot = Slot()
    ours = {name: slot.port + NODES * number for number, name in enumerate(OURS)}
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ours.items())
    properties = {
        "listener.security.protocol.map": ",".join(f"{name}:{each}" for name, each in OURS.items()),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "server.pem"),
        "upstream.sasl.pass.through.enable": "true",
    }
    told = of_kshim(PROTOCOLS[listener], certificates)
    further = ("--listen", listeners, *set_options(properties))
    options = arguments(directory, address_of(nodes, listener), told, *further)
    server = Server(directory / "kshim", options).start_at(slot)
    try:
        yield Passing(server, certificates)
    finally:
        if server.running:
            server.kill()


def log_in(wire: Wire, user: str = USER, mechanism: str = "PLAIN", version: int = 2) -> Any:
    """Authenticate; return the last answer."""
    assert not wire.ask(1, SaslHandshakeRequest(mechanism=mechanism)).error_code
    if mechanism == "PLAIN":
        return wire.ask(version, SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{PASSWORD}".encode()))
    exchange = Scram(ScramMechanism(mechanism), user, Secret(PASSWORD))
    next_token: bytes | None = exchange.first()
    while next_token is not None:
        answer = wire.ask(version, SaslAuthenticateRequest(auth_bytes=next_token))
        assert not answer.error_code, answer
        next_token = exchange.answer(bytes(answer.auth_bytes))
    return answer


def of_librdkafka(kshim: Passing, mechanism: str = "SCRAM-SHA-512", user: str = USER) -> dict[str, Any]:
    return {
        "bootstrap.servers": kshim.address("CLEAR"),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }

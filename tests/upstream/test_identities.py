"""Connections to the upstream as its clients: whose credentials a connection has, and who gets none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed

from kshim.callers import Client, Refused
from kshim.callers.principal import Principal
from kshim.client.session import LoginFailed
from kshim.configs.endpoint import Endpoint
from kshim.configs.reading import new_config
from kshim.configs.sasl import LOGIN_MODULES
from kshim.configs.upstream import UpstreamSecurity, WrongUpstreamProperty
from kshim.upstream import identities as module
from kshim.upstream.identities import Identities
from kshim.upstream.lost import Lost

AT = Endpoint("b", 9093)
TIMEOUT_S = 5.0


class Connector:
    """Notes as whom it connects. The user "late" has no token at first."""

    made: list[Connector]
    late: bool

    def __init__(self, _: object) -> None:
        self.user = ""
        self.is_stopped = False
        self.made.append(self)

    def check(self, security: UpstreamSecurity) -> None:
        if _user(security) == "unreadable":
            raise WrongUpstreamProperty("ssl.keystore.location: cannot read it")

    def use(self, security: UpstreamSecurity) -> Deferred[None]:
        user = _user(security)
        if user == "late" and self.late:
            return fail(LoginFailed("gets no token"))
        self.user = user
        return succeed(None)

    def connect(self, target: Any, address: Endpoint, timeout_s: float) -> None:
        assert self.user, "it would come in as nobody"
        target.made.append((self.user, address, timeout_s))

    def stop(self) -> None:
        self.is_stopped = True


def _user(security: UpstreamSecurity) -> str:
    assert security.login is not None
    return str(security.login.options["username"])


class Target:
    def __init__(self) -> None:
        self.session = None
        self.made: list[tuple[str, Endpoint, float]] = []
        self.lost: list[Lost] = []

    def makeConnection(self, transport: Any) -> None:  # noqa: N802
        raise AssertionError

    def lose(self, lost: Lost) -> None:
        self.lost.append(lost)


class World:
    def __init__(self, file: Path, *users: str) -> None:
        self.file = file
        self.write(*users)
        Connector.made, Connector.late = [], True
        plain = f'{LOGIN_MODULES["PLAIN"]} required username="kshim" password="p";'
        config, _ = new_config(
            {
                "log.dirs": ":memory:",
                "listeners": "L://127.0.0.1:0",
                "listener.security.protocol.map": "L:SASL_PLAINTEXT",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256",
                "upstream.bootstrap.servers": "b:9093",
                "upstream.security.protocol": "SASL_PLAINTEXT",
                "upstream.sasl.mechanism": "PLAIN",
                "upstream.sasl.jaas.config": plain,
                "upstream.identities.file": str(file),
            }
        )
        self.config = config
        reactor: Any = None
        self.identities = Identities(reactor, config)
        self.prepare()

    def write(self, *users: str) -> None:
        """A name and a user of the upstream for each."""
        lines = (
            f'{each}.sasl.jaas.config={LOGIN_MODULES["PLAIN"]} required username="{each}" password="p";\n'
            for each in users
        )
        self.file.write_text("".join(lines))

    def prepare(self) -> None:
        failed: list[Any] = []
        self.identities.prepare().addErrback(failed.append)
        if failed:
            failed[0].raiseException()

    def connect(self, name: str, principal_type: str = "User") -> Target:
        client = Client("/127.0.0.1", Endpoint("127.0.0.1", 1), AT, Principal(principal_type, name))
        target = Target()
        self.identities.connect(target, client, AT, TIMEOUT_S)
        return target


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "Connector", Connector)
    return tmp_path / "identities.properties"


def test_each_connects_with_its_own_credentials(file: Path) -> None:
    world = World(file, "alice", "bob")
    assert world.connect("bob").made == [("bob", AT, TIMEOUT_S)]
    assert world.connect("alice").made == [("alice", AT, TIMEOUT_S)]


@pytest.mark.parametrize(("name", "principal_type"), [("carol", "User"), ("alice", "Group"), ("", "User")])
def test_who_is_not_in_the_file_is_nobody(file: Path, name: str, principal_type: str) -> None:
    world = World(file, "alice")
    with pytest.raises(Refused, match=f"{principal_type}:{name} is not in upstream.identities.file"):
        world.connect(name, principal_type)


def test_without_a_token_nobody_connects_until_there_is_one(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(file, "late")
    assert caplog.messages == ["there is no login as late at the upstream yet: gets no token"]
    target = world.connect("late")
    assert not target.made
    assert target.lost == [Lost("gets no token", is_refused=True)]
    Connector.late = False
    assert world.connect("late").made == [("late", AT, TIMEOUT_S)]


def test_two_clients_that_wait_for_a_token_share_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: list[Deferred[None]] = []

    def use(connector: Connector, security: UpstreamSecurity) -> Deferred[None]:
        tokens.append(Deferred().addCallback(lambda _: setattr(connector, "user", _user(security))))
        return tokens[-1]

    monkeypatch.setattr(Connector, "use", use)
    world = World(file, "alice")
    targets = [world.connect("alice"), world.connect("alice")]
    assert not any(each.made for each in targets)
    for each in tokens:
        each.callback(None)
    assert [each.made for each in targets] == [[("alice", AT, TIMEOUT_S)]] * 2
    assert [each.is_stopped for each in Connector.made if each.user] == [False, True, True]


def test_a_changed_file_counts_for_connections_to_come(file: Path) -> None:
    world = World(file, "alice", "bob")
    world.write("bob", "carol")
    world.prepare()
    assert world.connect("carol").made
    with pytest.raises(Refused):
        world.connect("alice")
    assert {each.user for each in Connector.made if each.is_stopped} == {"alice"}
    world.identities.stop()
    assert all(each.is_stopped for each in Connector.made if each.user)


@pytest.mark.parametrize("text", ["alice.sasl.jaas.config=x", "unreadable", None])
def test_a_file_that_cannot_be_used_leaves_all_as_it_was(file: Path, text: str | None) -> None:
    world = World(file, "alice")
    if text is None:
        file.unlink()
    elif text == "unreadable":
        world.write("alice", "unreadable")
    else:
        file.write_text(text)
    with pytest.raises(WrongUpstreamProperty, match=r"^upstream\.identities\.file: "):
        world.prepare()
    assert world.connect("alice").made == [("alice", AT, TIMEOUT_S)]


def test_the_files_are_the_table_and_the_stores(file: Path) -> None:
    assert World(file, "alice").identities.files == [str(file)]

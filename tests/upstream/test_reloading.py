"""The settings of the upstream's connection are read again when their files have changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kshim.client.session import LoginFailed
from kshim.configs.sasl import LOGIN_MODULES
from kshim.configs.upstream import UpstreamSecurity, WrongUpstreamProperty
from kshim.upstream.reloading import LOOK_S, Reloading


class Connector:
    def __init__(self) -> None:
        self.used: list[UpstreamSecurity] = []
        self.error: Exception | None = None

    def use(self, security: UpstreamSecurity) -> Deferred[None]:
        if self.error is not None:
            return fail(self.error)
        self.used.append(security)
        return succeed(None)


def properties(password: str, **further: str) -> dict[str, str]:
    module = f'{LOGIN_MODULES["PLAIN"]} required username="kshim" password="{password}";'
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": module,
        **{name.replace("_", "."): text for name, text in further.items()},
    }


def write(file: Path, found: dict[str, str]) -> None:
    file.write_text("".join(f"{name}={text}\n" for name, text in found.items()))


class World:
    def __init__(self, file: Path, found: dict[str, str], **given: str) -> None:
        """given: properties that were set beside the file."""
        write(file, found)
        self.file, self.clock, self.connector = file, Clock(), Connector()
        of_file = {f"upstream.{name}": text for name, text in found.items()}
        beside = {f"upstream.{name.replace('_', '.')}": text for name, text in given.items()}
        where = {"upstream.config.file": str(file)}
        self.reloading = Reloading(self.clock, {**of_file, **beside, **where}, self.connector)
        self.reloading.prepare()
        self.reloading.start()

    def passwords(self) -> list[str]:
        """Those of the settings that were used since the start."""
        logins = [each.login for each in self.connector.used]
        return ["" if login is None else str(login.options["password"]) for login in logins]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "client.properties"


def test_a_changed_password_is_used(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    world = World(file, properties("first"))
    world.clock.advance(LOOK_S)
    assert world.passwords() == []
    write(file, properties("second one"))
    world.clock.advance(LOOK_S)
    world.clock.advance(LOOK_S)
    assert world.passwords() == ["second one"]
    assert caplog.messages == ["the changed settings of the connection to the upstream are used from now on"]
    assert "second one" not in caplog.text


def test_what_was_set_beside_the_file_stays(file: Path) -> None:
    world = World(file, properties("first"), security_protocol="SASL_SSL", ssl_enabled_protocols="TLSv1.3")
    write(file, properties("second one", ssl_enabled_protocols="TLSv1.2"))
    world.clock.advance(LOOK_S)
    (used,) = world.connector.used
    assert used.tls is not None
    assert used.tls.protocols == ("TLSv1.3",)
    assert world.passwords() == ["second one"]


@pytest.mark.parametrize(
    "text", ["", "security.protocol=SASL_PLAINTEXT", "security.protocol=PLAINTEXT", "a=\\u12", None]
)
def test_settings_that_cannot_be_used_are_not(
    file: Path, text: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(file, properties("first"))
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    world.clock.advance(LOOK_S)
    assert not world.connector.used
    (line,) = caplog.messages
    assert line.startswith("the changed settings of the connection to the upstream are not used: ")
    write(file, properties("third of all"))
    world.clock.advance(LOOK_S)
    assert world.passwords() == ["third of all"]


def test_a_token_that_is_not_given_leaves_the_former_settings(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(file, properties("first"))
    world.connector.error = LoginFailed("gets no token")
    write(file, properties("second one"))
    world.clock.advance(LOOK_S)
    assert "are not used: gets no token" in caplog.text


def test_changed_certificates_are_used(file: Path) -> None:
    store = file.with_name("ca.pem")
    store.write_text("first")
    tls = {"security.protocol": "SSL", "ssl.truststore.location": str(store)}
    world = World(file, tls)
    store.write_text("the second one")
    world.clock.advance(LOOK_S)
    assert len(world.connector.used) == 1


class Identities:
    """The clients' credentials in one file, which cannot be used if it is empty."""

    def __init__(self, file: Path) -> None:
        self.files = [str(file)]
        self.used: list[str] = []

    def use(self, given: Mapping[str, str]) -> Deferred[None]:
        text = Path(self.files[0]).read_text()
        if not text:
            return fail(WrongUpstreamProperty("identities.file: is empty"))
        self.used.append(f"{text} at {given['upstream.sasl.mechanism']}")
        return succeed(None)


def test_changed_credentials_of_clients_are_used(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    clients = file.with_name("identities.properties")
    clients.write_text("first")
    clock, connector, identities = Clock(), Connector(), Identities(clients)
    given = {f"upstream.{name}": text for name, text in properties("p").items()}
    reloading = Reloading(clock, given, connector, identities)
    reloading.prepare()
    reloading.start()
    clock.advance(LOOK_S)
    assert identities.used == []
    for text in ("second one", "", "the third one"):
        clients.write_text(text)
        clock.advance(LOOK_S)
    assert identities.used == ["second one at PLAIN", "the third one at PLAIN"]
    assert len(connector.used) == 2
    assert "are not used: upstream.identities.file: is empty" in caplog.text
    reloading.stop()


def test_nobody_looks_where_there_is_no_file() -> None:
    clock = Clock()
    reloading = Reloading(clock, {}, Connector())
    reloading.start()
    assert not clock.getDelayedCalls()
    reloading.stop()

"""Tokens of an endpoint: how they are asked for, and renewed."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from twisted.internet.task import Clock

from kshim.client.session import LoginFailed
from kshim.client.token_endpoint import Token, fetch_token
from kshim.configs.upstream import LoginSettings
from kshim.configs.values import Secret
from kshim.upstream.token_endpoint import AGAIN_S, RenewedToken
from tests.api.harness import result

NOW_S = 1_700_000_000.0


class Endpoint(HTTPServer):
    """Answers every request alike."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.status, self.body = 200, b"{}"
        self.requests: list[tuple[str, str]] = []


class _Answering(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.requests.append((self.headers["Authorization"], body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def settings(endpoint: Endpoint, *, url_encodes: bool = False) -> LoginSettings:
    return LoginSettings(
        mechanism="OAUTHBEARER",
        token_url=f"http://127.0.0.1:{endpoint.server_port}/token",
        client_id="kshim",
        client_secret=Secret("a:b c"),
        scope="kafka read",
        url_encodes=url_encodes,
    )


def jwt(claims: dict[str, Any]) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.sig"


@pytest.mark.parametrize(("url_encodes", "sent"), [(False, "kshim:a:b c"), (True, "kshim:a%3Ab+c")])
def test_a_token_is_asked_for_with_credentials(endpoint: Endpoint, url_encodes: bool, sent: str) -> None:
    endpoint.body = json.dumps({"access_token": jwt({"exp": NOW_S}), "expires_in": 5}).encode()
    token = fetch_token(settings(endpoint, url_encodes=url_encodes))
    assert token == Token(Secret(jwt({"exp": NOW_S})), NOW_S)
    ((authorization, body),) = endpoint.requests
    assert base64.b64decode(authorization.removeprefix("Basic ")).decode() == sent
    assert body == "grant_type=client_credentials&scope=kafka+read"


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (401, b'{"error": "invalid_client"}', "it answers 401 Unauthorized"),
        (200, b"{}", "it answers without an access_token"),
        (200, b"[]", "it answers without an access_token"),
        (200, b"<html>", "Expecting value"),
    ],
)
def test_what_is_no_token_is_told_without_secrets(
    endpoint: Endpoint, status: int, body: bytes, why: str
) -> None:
    endpoint.status, endpoint.body = status, body
    with pytest.raises(LoginFailed) as failed:
        fetch_token(settings(endpoint))
    assert str(failed.value).startswith(f"upstream.sasl.oauthbearer.token.endpoint.url: {why}")
    assert "a:b c" not in str(failed.value)


class Reactor(Clock):
    """Whose other thread is this one."""

    def getThreadPool(self) -> Reactor:  # noqa: N802
        return self

    def callInThreadWithCallback(self, done: Any, do: Any, *arguments: Any) -> None:  # noqa: N802
        try:
            found = do(*arguments)
        except LoginFailed as failed:
            done(False, _failure(failed))
        else:
            done(True, found)

    def callFromThread(self, do: Any, *arguments: Any) -> None:  # noqa: N802
        do(*arguments)


def _failure(error: Exception) -> Any:
    from twisted.python.failure import Failure

    return Failure(error)


class Source:
    """Gives tokens that count for a hundred seconds."""

    def __init__(self) -> None:
        self.clock = Reactor()
        self.error: LoginFailed | None = None
        self.given = 0
        login = LoginSettings(mechanism="OAUTHBEARER", token_url="http://t")
        self.renewed = RenewedToken(login, self.clock, self.fetch, self.clock.seconds)

    def fetch(self, _: LoginSettings) -> Token:
        if self.error is not None:
            raise self.error
        self.given += 1
        return Token(Secret(f"t{self.given}"), self.clock.seconds() + 100)


def test_a_token_is_renewed_before_it_ends() -> None:
    source = Source()
    result(source.renewed.start())
    assert source.renewed.token() == "t1"
    source.clock.advance(79)
    assert source.renewed.token() == "t1"
    source.clock.advance(2)
    assert source.renewed.token() == "t2"
    source.renewed.stop()
    assert not source.clock.getDelayedCalls()


def test_without_a_new_token_the_old_one_counts_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    result(source.renewed.start())
    source.error = LoginFailed("it answers 503")
    source.clock.advance(81)
    assert source.renewed.token() == "t1"
    assert "the token for the upstream is not renewed yet: it answers 503" in caplog.text
    source.clock.pump([AGAIN_S] * 2)
    with pytest.raises(LoginFailed, match="there is no token: it answers 503"):
        source.renewed.token()
    source.error = None
    source.clock.advance(AGAIN_S)
    assert source.renewed.token() == "t2"


def test_without_a_first_token_there_is_no_start() -> None:
    source = Source()
    source.error = LoginFailed("it answers 401")
    with pytest.raises(LoginFailed, match="401"):
        result(source.renewed.start())

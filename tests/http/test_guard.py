"""The guard: the token, the cookie, and pages of other sites."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kshim.configs.reading import ConfigError, new_config
from kshim.configs.values import Secret
from tests.http.harness import HOST, Kshim

TOKEN = "hocus-pocus"


@pytest.fixture
def kshim() -> Kshim:
    return Kshim(http_steering_enable=True)


@pytest.fixture
def guarded() -> Kshim:
    return Kshim(http_token=Secret(TOKEN), http_steering_enable=True)


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "127.1.2.3"])
def test_this_machine_has_these_names(kshim: Kshim, host: str) -> None:
    assert kshim.get("/groups", Host=host).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8080", "", "[", "10.0.0.1"]
)
def test_a_name_that_was_made_to_point_here_is_refused(kshim: Kshim, host: str) -> None:
    reply = kshim.get("/groups", Host=host)
    assert reply.status == 403
    assert "as the host" in reply.json["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": f"http://{HOST}"}, 200),
        ({"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:3000"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_a_page_of_another_site_may_not_steer(kshim: Kshim, headers: dict[str, str], status: int) -> None:
    json = {"Content-Type": "application/json", **headers}
    assert kshim.ask("POST", "/commands/describe", json, b"[]").status == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ({"Authorization": f"bearer  {TOKEN}"}, 200),
        ({"Authorization": "Bearer hocus"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Cookie": f"kshim-8080={TOKEN}"}, 401),  # the cookie is another secret
        ({"Authorization": f"Bearer {TOKEN}", "Host": "kafka.example.org"}, 200),
    ],
)
def test_a_token(guarded: Kshim, headers: dict[str, str], status: int) -> None:
    reply = guarded.ask("GET", "/groups", headers)
    assert reply.status == status
    assert (reply.headers["WWW-Authenticate"] == "Bearer") == (status == 401)


def test_a_browser_gets_a_cookie_for_the_token(guarded: Kshim) -> None:
    reply = guarded.get(f"/groups?token={TOKEN}&x=1")
    assert (reply.status, reply.headers["Location"]) == (303, "/groups?x=1")
    cookie, *attributes = reply.headers["Set-Cookie"].split("; ")
    assert attributes == ["Path=/", "HttpOnly", "SameSite=Lax"]
    assert TOKEN not in cookie
    assert guarded.get("/groups", Cookie=f"a=b; {cookie}").status == 200
    assert guarded.get("/groups", Cookie=cookie[:-1]).status == 401
    assert guarded.get(f"//evil.example?token={TOKEN}").headers["Location"] == "/evil.example"


def test_a_wrong_token_in_the_address_is_none(guarded: Kshim) -> None:
    assert guarded.get("/groups?token=x").status == 401


def test_probes_know_no_token(guarded: Kshim) -> None:
    assert guarded.get("/healthz", Host="10.0.0.1:8080").status == 200
    icon = guarded.get("/favicon.ico", Host="10.0.0.1:8080")
    assert (icon.status, icon.headers["Content-Type"]) == (200, "image/svg+xml")
    assert guarded.get("/readyz").status == 200


def test_the_cookie_alone_does_not_let_another_site_steer(guarded: Kshim) -> None:
    cookie = guarded.get(f"/?token={TOKEN}").headers["Set-Cookie"].partition(";")[0]
    headers = {"Content-Type": "application/json", "Cookie": cookie}
    assert guarded.ask("POST", "/commands/describe", headers, b"[]").status == 200
    refused = guarded.ask("POST", "/commands/describe", {**headers, "Origin": "http://evil.example"}, b"[]")
    assert refused.status == 403


def test_each_answer_forbids_what_the_page_does_not_need(kshim: Kshim) -> None:
    for target in ("/groups", "/nope"):
        headers = kshim.get(target).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert (headers["X-Content-Type-Options"], headers["Cache-Control"]) == ("nosniff", "no-store")
        assert headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize(
    "address", ["0.0.0.0:8080", ":8080", "192.168.1.1:8080", "kafka.example.org:0", "[::]:1"]
)
def test_other_machines_need_a_token(address: str) -> None:
    with pytest.raises(ConfigError) as refused:
        new_config({"--http": address})
    (problem,) = refused.value.problems
    assert "expected http.token" in problem
    config, _ = new_config({"http.listener": address, "http.token": TOKEN})
    assert config.http_token == TOKEN
    assert TOKEN not in repr(config)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:8080", "[::1]:8080"])
def test_this_machine_needs_none(address: str) -> None:
    assert new_config({"--http": address})[0].http_listener is not None


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"--http": "8080"}, "--http=8080: expected HOST:PORT"),
        ({"http.token": "two words"}, "without blanks"),
        ({"http.steering.enable": "yes"}, "expected true or false"),
    ],
)
def test_properties_that_cannot_be_meant(properties: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        new_config(properties)


def test_nothing_of_it_is_loaded_by_a_server_without_it() -> None:
    imports = "import sys, kshim.server.server, kshim.server.local"
    code = f"{imports}; print({{'twisted.web', 'kshim.http'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"

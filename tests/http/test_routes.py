"""Each route's answer has the shape that openapi.json gives it; a mistake is answered with one line."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from kshim.http.routes import new_routes
from kshim.storage.interfaces import Activity, StorageError
from tests.http.harness import Kshim, billing, commit, create_topic, delays, join


@pytest.fixture
def kshim() -> Kshim:
    kshim = Kshim(http_steering_enable=True)
    billing(kshim)
    return kshim


TYPES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def faults(schema: Any, value: Any, schemas: Any, at: str = "") -> list[str]:
    """The places where a JSON value breaks its schema, by the part of JSON Schema that openapi.json uses."""
    if "$ref" in schema:
        return faults(schemas[schema["$ref"].rpartition("/")[2]], value, schemas, at)
    if "oneOf" in schema:
        tried = [faults(each, value, schemas, at) for each in schema["oneOf"]]
        return [] if [] in tried else tried[0]
    wanted = schema.get("type", [*TYPES.values()])
    if TYPES[type(value)] not in ([wanted] if isinstance(wanted, str) else wanted):
        return [f"{at}: {value!r} is no {wanted}"]
    found: list[str] = []
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += faults(schema["items"], item, schemas, f"{at}[{number}]")
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        found += [f"{at}: {name} is missing" for name in schema["required"] if name not in value]
        for name, item in value.items():
            of_it = faults(known[name], item, schemas, f"{at}.{name}") if name in known else ["unknown"]
            found += [f"{at}.{name}: {fault}" for fault in of_it]
    return found


def queried(operation: Any, where: str) -> tuple[str, ...]:
    return tuple(each["name"] for each in operation.get("parameters", ()) if each["in"] == where)


def test_the_openapi_file_has_the_routes_and_no_others(kshim: Kshim) -> None:
    paths = kshim.get("/openapi.json").json["paths"]
    told = {
        (method.upper(), path, queried(operation, "query"))
        for path, operations in paths.items()
        for method, operation in operations.items()
    }
    assert told == {(route.method, route.path, tuple(route.query)) for route in new_routes(kshim.facts)}
    for path, operations in paths.items():
        named = tuple(part[1:-1] for part in path.split("/") if part.startswith("{"))
        assert {queried(operation, "path") for operation in operations.values()} == {named}


def test_each_answer_is_what_the_openapi_file_says(kshim: Kshim) -> None:
    openapi = kshim.get("/openapi.json").json
    schemas, asked = openapi["components"]["schemas"], []
    for path, operations in openapi["paths"].items():
        content = operations.get("get", {"responses": {"200": {}}})["responses"]["200"].get("content", {})
        if "application/json" not in content:
            continue
        reply = kshim.get(path.format(group="billing", topic="orders"))
        assert (reply.status, reply.headers["Content-Type"]) == (200, "application/json"), path
        assert faults(content["application/json"]["schema"], reply.json, schemas) == [], path
        asked.append(path)
    assert {"/groups", "/groups/{group}", "/groups/{group}/rebalances", "/connections"} < set(asked)
    assert faults(schemas["Error"], kshim.get("/nope").json, schemas) == []


def test_a_group_is_told_with_what_it_is_behind(kshim: Kshim) -> None:
    (row,) = kshim.get("/groups").json["groups"]
    assert (row["group_id"], row["state"], row["members"], row["lag"]) == ("billing", "Stable", 1, 1)
    group = kshim.get("/groups/billing").json
    assert group["members"][0]["assignment"] == {"orders": [0]}
    assert [(o["topic"], o["committed"], o["high_watermark"], o["lag"]) for o in group["offsets"]] == [
        ("orders", 2, 3, 1)
    ]
    (rebalance,) = kshim.get("/groups/billing/rebalances").json["rebalances"]
    assert (rebalance["cause"], rebalance["generation"]) == ("a member joined", 1)
    assert rebalance["members"][0]["after"] == {"orders": [0]}


def test_names_are_quoted(kshim: Kshim) -> None:
    commit(kshim.client(), "a/b é?", "orders", 1)
    assert kshim.get("/groups/a%2Fb%20%C3%A9%3F").json["group_id"] == "a/b é?"
    assert kshim.get("/groups/a%2Fb%20%C3%A9%3F/rebalances").json == {"rebalances": []}


def test_an_assignment_that_only_clients_can_read_is_shown_as_bytes(kshim: Kshim) -> None:
    join(kshim.client(), kshim.reactor, "odd", {"orders": [0]})
    group = kshim.facts.groups.see("odd")
    assert group is not None
    group.members[0].assignment = b"\x00"
    assert kshim.get("/groups/odd").json["members"][0]["assignment"] == "00"


def test_the_lag_of_a_deleted_topic_is_unknown(kshim: Kshim) -> None:
    commit(kshim.client(), "early", "orders", 9)
    assert kshim.get("/groups/early").json["offsets"][0]["lag"] == 0  # never negative
    del kshim.facts.cluster.topics["orders"]
    (offset,) = kshim.get("/groups/early").json["offsets"]
    assert (offset["committed"], offset["high_watermark"], offset["lag"]) == (9, None, None)


@pytest.mark.parametrize(
    ("method", "target", "status", "said"),
    [
        ("GET", "/nope", 404, "no such path"),
        ("GET", "/groups/", 404, "no such path"),
        ("GET", "//groups", 404, "no such path"),
        ("GET", "/groups/nope", 404, "no group 'nope'"),
        ("GET", "/groups/nope/rebalances", 404, "no group 'nope'"),
        ("GET", "/groups/%ff", 400, "UTF-8"),
        ("GET", "/groups?state=Stable", 400, "no parameter 'state'"),
        ("GET", "/events?after=x", 400, "expected the number"),
        ("GET", "/events?since=1", 400, "it has after, group"),
        ("POST", "/groups", 405, "GET is"),
        ("DELETE", "/groups/billing", 405, "GET is"),
        ("GET", "/commands/describe", 405, "POST is"),
        ("POST", "/commands/nope", 404, "no command 'nope'"),
        ("POST", "/commands/describe", 415, "application/json"),
        ("GET", "/" + "x" * 10_000, 404, "no such path"),
    ],
)
def test_mistakes(kshim: Kshim, method: str, target: str, status: int, said: str) -> None:
    reply = kshim.ask(method, target, body=b"" if method == "POST" else None)
    assert (reply.status, list(reply.json)) == (status, ["error"])
    assert said in reply.json["error"]
    assert "\n" not in reply.json["error"]
    assert len(reply.json["error"]) < 400
    assert (reply.headers["Allow"] is not None) == (status == 405)


def test_head_is_get_without_a_body(kshim: Kshim) -> None:
    for target in ("/groups", "/healthz", "/events"):
        reply = kshim.ask("HEAD", target)
        assert (reply.status, reply.body) == (200, b"")
    assert kshim.ask("HEAD", "/nope").status == 404


def test_a_connection_is_used_again(kshim: Kshim) -> None:
    browser = kshim.browser()
    assert [browser.ask("GET", "/healthz").status for _ in range(3)] == [200] * 3
    assert browser.ask("GET", "/groups").json == browser.ask("GET", "/groups").json


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


def test_a_disk_that_fails_is_told(kshim: Kshim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kshim.facts.ends, "offsets", raising(StorageError("the disk is gone")))
    reply = kshim.get("/topics")
    assert (reply.status, reply.json) == (503, {"error": "the disk is gone"})


def test_our_own_fault_is_logged_and_not_told(
    kshim: Kshim, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kshim.facts.ends, "offsets", raising(ValueError("secret")))
    reply = kshim.get("/groups/billing")
    assert (reply.status, reply.json) == (500, {"error": "the server failed; its log says why"})
    assert "/groups/billing failed: ValueError('secret')" in caplog.text


def test_a_server_that_still_loads_is_not_ready(kshim: Kshim) -> None:
    kshim.backend._has_loaded = False
    reply = kshim.get("/readyz")
    assert (reply.status, reply.json) == (503, {"error": "coordinators are still loading what is stored"})
    assert kshim.get("/healthz").status == 200


def test_a_server_that_stores_nothing_is_not_ready(kshim: Kshim, monkeypatch: pytest.MonkeyPatch) -> None:
    full = Activity(failure="the disk is full: records and offsets are refused")
    monkeypatch.setattr(kshim.store, "activity", lambda: full)
    reply = kshim.get("/readyz")
    assert (reply.status, reply.json) == (503, {"error": "the disk is full: records and offsets are refused"})
    assert b"kshim_ready 0.0" in kshim.get("/metrics").body
    monkeypatch.undo()
    assert kshim.get("/readyz").status == 200


def test_long_listings_make_way_for_others(kshim: Kshim, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice is 10 ms at most, so many partitions take many turns of the reactor."""
    create_topic(kshim.client(), "large", 2000)
    turns = delays(kshim.reactor, monkeypatch)
    assert len(kshim.get("/topics").json["topics"][1]["partitions"]) == 2000
    assert turns.count(0) >= 4


def test_the_json_is_readable_and_exact(kshim: Kshim) -> None:
    assert json.loads(kshim.get("/groups").body) == kshim.get("/groups").json
    assert b'"group_id": "billing"' in kshim.get("/groups").body


def test_json_does_not_steer_a_terminal(kshim: Kshim) -> None:
    name = "\x1b[31m\x9b31m\u202e\x7f\n"
    commit(kshim.client(), name, "orders", 1)
    reply = kshim.get("/groups")
    assert name in [row["group_id"] for row in reply.json["groups"]]
    assert b"\\u009b31m\\u202e\\u007f\\n" in reply.body

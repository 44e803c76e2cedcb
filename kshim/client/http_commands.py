"""Asks a kshim server over its HTTP interface, with its token: for commands, and for what it shows."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, NamedTuple

from kshim.client.cluster import Cluster
from kshim.client.faults import ClientError
from kshim.configs.endpoint import Endpoint
from schemas.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

LISTENER: Final = "http.listener"
BROKER: Final = 4
ANSWER_S: Final = 90.0
"""Limit of each wait for the server; moving the clock may take long."""
JSON: Final = "application/json"
OK: Final = 200


class Fetched(NamedTuple):
    """An answer over HTTP."""

    status: int
    content_type: str
    body: bytes


class NoHttp(ClientError):
    """The server has no HTTP interface that can be found, or is not kshim."""


def find_http(cluster: Cluster) -> Endpoint:
    """Ask a server for the address of its HTTP interface. Raises NoHttp, ClientError."""
    connection = cluster.any()
    cluster.until_done(lambda: cluster.describe(()))
    node_id = next(
        (each.node_id for each in cluster.brokers.values() if each.address == connection.address),
        min(cluster.brokers),
    )
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(node_id), configuration_keys=(LISTENER,)
    )
    request = DescribeConfigsRequest(resources=(resource,))
    (found,) = cluster.until_done(lambda: cluster.ask(cluster.node(node_id), request)).results
    value = next((each.value for each in found.configs if each.name == LISTENER), None)
    if value is None:
        raise NoHttp(f"{connection} is not kshim, or does not show its http.listener")
    if not value:
        raise NoHttp(f"{connection} is kshim without an HTTP interface: start it with --http HOST:PORT")
    endpoint = Endpoint.parse(value)
    if not endpoint.port:
        raise NoHttp(f"{connection} has picked a free port for its HTTP interface ({value}): name it")
    return Endpoint(connection.address.host, endpoint.port) if endpoint.is_nowhere else endpoint


def fetch(
    endpoint: Endpoint,
    token: str,
    target: str,
    body: str | None = None,
    *,
    answer_s: float = ANSWER_S,
    most_bytes: int | None = None,
) -> Fetched:
    """GET a target; POST if there is a body, which is JSON. Raises ClientError.

    answer_s: limit of each wait. most_bytes: a longer answer is an error; None for any length.
    """
    headers = {} if body is None else {"Content-Type": JSON}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    connection = HTTPConnection(endpoint.host, endpoint.port, timeout=answer_s)
    try:
        connection.request("GET" if body is None else "POST", target, body, headers)
        answered = connection.getresponse()
        data = answered.read() if most_bytes is None else answered.read(most_bytes + 1)
    except (HTTPException, ValueError):
        raise _not_kshim(endpoint) from None
    except TimeoutError:
        what = target.removeprefix("/commands/")
        raise ClientError(f"the HTTP interface {endpoint} has not answered {what} in time") from None
    except OSError as error:
        raise ClientError(f"the HTTP interface {endpoint} cannot be reached: {error.strerror}") from None
    finally:
        connection.close()
    if most_bytes is not None and len(data) > most_bytes:
        raise ClientError(f"the HTTP interface {endpoint} answers with more than {most_bytes} bytes")
    return Fetched(answered.status, answered.headers.get("Content-Type", JSON), data)


def run_over_http(
    endpoint: Endpoint,
    token: str,
    command: str,
    arguments: tuple[object, ...],
    *,
    answer_s: float = ANSWER_S,
    most_bytes: int | None = None,
) -> Any:
    """Run a command, and return its JSON value. Raises ClientError. The limits are those of `fetch`."""
    target = f"/commands/{command}"
    body = json.dumps(arguments)
    fetched = fetch(endpoint, token, target, body, answer_s=answer_s, most_bytes=most_bytes)
    return value_of(endpoint, fetched, "done")


def value_of(endpoint: Endpoint, fetched: Fetched, name: str) -> Any:
    """Return a field of the JSON object that was fetched. Raises ClientError."""
    try:
        found = json.loads(fetched.body)
    except ValueError:
        raise _not_kshim(endpoint) from None
    if fetched.status != OK or not isinstance(found, dict) or name not in found:
        why = found.get("error") if isinstance(found, dict) else None
        raise ClientError(f"{why or f'the HTTP interface {endpoint} answers {fetched.status}'}")
    return found[name]


def _not_kshim(endpoint: Endpoint) -> ClientError:
    return ClientError(f"{endpoint} does not answer as the HTTP interface of kshim does")

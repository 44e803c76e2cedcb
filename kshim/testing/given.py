"""A Kafka cluster that tests run against in place of kshim, for a whole run of tests.

The environment names it, so that unittest, pytest and the workers of pytest-xdist see the same: pytest's
option --kshim-bootstrap sets the variable. A test that needs more than the cluster can do is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NoReturn, cast
from unittest import SkipTest

from kshim.client import cluster as client
from kshim.client.faults import ClientError
from kshim.client.settings import client_settings
from kshim.client.steering import STEERING
from kshim.control.client import ControlError
from kshim.testing.brokers import Brokers, Deadline, check
from kshim.testing.cluster import TIMEOUT_S
from kshim.testing.initial import GivenRecords, GivenTopics, new_initial
from kshim.testing.server import Kshim, serving
from kshim.testing.steered import SteeredCluster
from schemas.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)

__all__ = ["BOOTSTRAP", "MAY_RESET", "GivenCluster", "given_bootstrap", "server_for_tests"]

BOOTSTRAP: Final = "KSHIM_TEST_BOOTSTRAP"
"""The environment variable with the cluster's addresses."""
MAY_RESET: Final = "KSHIM_TEST_MAY_RESET"
"""The environment variable that allows to delete all topics and groups of the cluster, if it is not empty."""
BROKER = 4


def given_bootstrap() -> str:
    """The addresses of the cluster that tests run against; empty for servers of their own."""
    return os.environ.get(BOOTSTRAP, "")


class GivenCluster(SteeredCluster):
    """The cluster that a test run was given. What only kshim can do skips the test.

    Members are removed, and offsets moved, over Kafka's own protocol.
    """

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or not hasattr(Kshim, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise SkipTest(f"kshim.{name}: only kshim has it, and the tests run against {self.bootstrap}")

    def _ask(self, command: str, *arguments: object) -> Any:
        with client.Cluster(client_settings(self.bootstrap, {})) as cluster:
            try:
                return STEERING[command](cluster, *arguments)
            except ClientError as error:
                raise ControlError(str(error)) from None

    def reset(self, *, timeout_s: float = TIMEOUT_S) -> None:
        """Delete all groups, and all topics except Kafka's own, if that is allowed."""
        if _has_siblings():
            raise SkipTest("kshim.reset: would delete what other workers of pytest-xdist use; run without -n")
        if not os.environ.get(MAY_RESET):
            raise SkipTest(
                f"kshim.reset: would delete all topics and groups of {self.bootstrap}; "
                f"--kshim-may-reset, or {MAY_RESET}=1, allows it"
            )
        super().reset(timeout_s=timeout_s)


@contextmanager
def server_for_tests(
    brokers: int,
    properties: Mapping[str, str],
    tls: bool | Sequence[str],
    topics: GivenTopics | None,
    records: GivenRecords | None,
) -> Iterator[Kshim]:
    """Yield the given cluster, or else a server as `serving` starts it.

    The given cluster loses the topics at the end. Raises SkipTest if it has fewer brokers, other properties,
    or one of the topics already.
    """
    if not given_bootstrap():
        with serving(brokers, properties, tls=tls, topics=topics, records=records) as kshim:
            yield kshim
        return
    cluster = GivenCluster(given_bootstrap())
    _check_brokers(cluster, brokers, properties)
    names = new_initial(topics, records).names
    if names and _has_siblings():
        raise SkipTest(f"the workers of pytest-xdist would share topic {', '.join(names)}; run without -n")
    if found := sorted(set(names) & set(cluster.topics())):
        if not os.environ.get(MAY_RESET):
            raise SkipTest(f"{cluster.bootstrap} has topic {', '.join(found)} already")
        cluster.delete_topics(*found)
    cluster.begin_with(topics, records)
    try:
        yield cast(Kshim, cluster)
    finally:
        cluster.delete_topics(*names)


def _has_siblings() -> bool:
    """True if several workers of pytest-xdist have the given cluster."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) > 1


def _check_brokers(cluster: GivenCluster, brokers: int, properties: Mapping[str, str]) -> None:
    with Brokers(cluster.bootstrap, Deadline(TIMEOUT_S)) as connected:
        node_ids = connected.deadline.until_done(connected.node_ids)
        if len(node_ids) < brokers:
            raise SkipTest(f"the tests need {brokers} brokers, and {cluster.bootstrap} has {len(node_ids)}")
        if properties:
            _check_properties(connected, node_ids[0], properties)


def _check_properties(brokers: Brokers, node_id: int, properties: Mapping[str, str]) -> None:
    asked = DescribeConfigsResource(resource_type=BROKER, resource_name=str(node_id), configuration_keys=None)
    request = DescribeConfigsRequest(resources=(asked,))
    response = brokers.ask_node(node_id, request, DescribeConfigsResponse)
    (described,) = response.results
    check("the broker's properties", described.error_code, described.error_message)
    values = {each.name: each.value for each in described.configs}
    others = [f"{name}={values.get(name)}" for name, value in properties.items() if values.get(name) != value]
    if others:
        wanted = ", ".join(f"{name}={value}" for name, value in properties.items())
        raise SkipTest(f"the tests need {wanted}, and the cluster has {', '.join(others)}")

"""kafka-acls prints the same about Apache Kafka and about kshim."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping

import pytest

from integration.apache_kafka.tools import Tools
from integration.differential.stories.telling import both_servers
from integration.support.server import Server
from kshim.configs.access import STANDARD_AUTHORIZER

ACLS = "org.apache.kafka.tools.AclCommand --bootstrap-server SERVER"
PATIENCE_S = 5
SETTINGS = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
Lines = list[str]

COMMANDS = [
    "--list",
    "--add --allow-principal User:alice --operation Read --topic orders",
    "--add --allow-principal User:alice --operation Read --topic orders",
    "--add --deny-principal User:bob --deny-host 10.0.0.1 --operation Write --topic orders",
    "--add --allow-principal User:alice --allow-principal User:bob --allow-host 10.0.0.1 --operation All"
    " --group g",
    "--add --allow-principal User:alice --operation Describe --topic or --resource-pattern-type prefixed",
    "--add --allow-principal User:* --operation DescribeConfigs --topic *",
    "--add --allow-principal User:carol --producer --topic payments",
    "--add --allow-principal User:carol --producer --topic payments --transactional-id t --idempotent",
    "--add --allow-principal User:dave --consumer --topic payments --group readers",
    "--add --allow-principal User:dave --consumer --topic pay --group read --resource-pattern-type prefixed",
    "--add --allow-principal User:erin --cluster --operation Alter --operation ClusterAction",
    "--add --allow-principal User:erin --cluster --operation IdempotentWrite",
    "--add --allow-principal User:erin --transactional-id t --operation Write",
    "--add --allow-principal User:erin --transactional-id t --operation TwoPhaseCommit",
    "--add --allow-principal User:erin --delegation-token token --operation Describe",
    "--add --allow-principal User:erin --user-principal User:frank --operation CreateTokens",
    "--list",
    "--list --topic orders",
    "--list --topic orders --resource-pattern-type any",
    "--list --topic orders --resource-pattern-type match",
    "--list --topic or --resource-pattern-type prefixed",
    "--list --group g --group readers",
    "--list --cluster",
    "--list --principal User:alice",
    "--list --principal User:dave --topic payments",
    "--list --transactional-id t",
    "--list --user-principal User:frank",
    "--list --topic nothing",
    "--add --topic orders",
    "--add --allow-principal User:alice --operation Alter",
    "--add --allow-principal alice --operation Read --topic orders",
    "--add --allow-principal User:alice --operation Read --topic orders --resource-pattern-type match",
    "--add --allow-principal User:alice --operation Fly --topic orders",
    "--add --allow-principal User:alice --operation ClusterAction --topic orders",
    "--add --allow-principal User:alice --consumer --topic orders",
    "--remove --force --allow-principal User:alice --operation Read --topic orders",
    "--remove --force --allow-principal User:nobody --operation Read --topic orders",
    "--remove --force --topic or --resource-pattern-type prefixed",
    "--remove --force --allow-principal User:dave --consumer --topic payments --group readers",
    "--remove --force --topic payments --resource-pattern-type match",
    "--remove --force --group g",
    "--list",
    "--remove --force --cluster",
    "--list",
]


@pytest.fixture(scope="module")
def printed(
    class_path: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[int, tuple[Lines, Lines]]]:
    """What each command, by its number, printed about Apache Kafka and about kshim. What a command has
    changed Apache Kafka reports a moment later, so lists are repeated until both agree, or patience runs out.
    """
    tools = Tools(class_path)

    def run(command: str, server: Server) -> Lines:
        done = tools.run(*shlex.split(f"{ACLS} {command}".replace("SERVER", server.bootstrap)))
        lines = (line.strip() for line in done.text.splitlines())
        return [f"exit status {done.status}", *sorted(line for line in lines if line)]

    found: dict[int, tuple[Lines, Lines]] = {}
    try:
        with both_servers(tmp_path_factory.mktemp("servers"), SETTINGS) as (apache_kafka, kshim):
            for number, command in enumerate(COMMANDS):
                ours, theirs = run(command, kshim), run(command, apache_kafka)
                deadline = time.monotonic() + PATIENCE_S
                while command.startswith("--list") and theirs != ours and time.monotonic() < deadline:
                    theirs = run(command, apache_kafka)
                found[number] = theirs, ours
        yield found
    finally:
        tools.close()


@pytest.mark.parametrize(("number", "command"), list(enumerate(COMMANDS)), ids=lambda value: str(value))
def test_kafka_acls_prints_the_same(
    number: int, command: str, printed: Mapping[int, tuple[Lines, Lines]]
) -> None:
    theirs, ours = printed[number]
    assert ours == theirs

"""Tortures a stranger on Apache Kafka with what needs no kshim: kills, stops, standstills, one more instance.

    python -m integration.torture.strangers.beside NAME [--seed 1] [--runs 5] [--faults freeze,kill]

Sessions end by themselves, soon, as the program asks for that (SESSION_MS). Unknown is what the server of a
torture notes: who fetched, and who committed when.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from integration.apache_kafka import COMMAND
from integration.support.server import Server
from integration.torture.strangers.programs import STRANGERS, Stranger
from kshim.testing.brokers import Brokers, Deadline
from kshim.testing.cluster import Cluster
from kshim.testing.new_records import NewRecord
from kshim.torture.choice import schedule_of
from kshim.torture.evidence import Partition
from kshim.torture.judgement import judge
from kshim.torture.outputs import VALUE
from kshim.torture.processes import now_ms
from kshim.torture.promises import Anomaly, Judged, Output, Promise
from kshim.torture.run import Run
from kshim.torture.schedule import Schedule
from kshim.torture.settings import Settings
from kshim.torture.stage import Incoming, Note, Outgoing, Refused
from kshim.torture.story import lines, told, verdict
from schemas.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

SESSION_MS = 600
LOOK_MS = 250
PATIENCE_S = 20
FAULTS = "freeze,kill,stop,join"
UNKNOWN = frozenset((Anomaly.EARLY, Anomaly.LATE, Anomaly.WENT_BACK, Anomaly.TWO_OWNERS))
"""Anomalies that only the notes of a torture's server show."""
PROPERTIES = {
    "group.min.session.timeout.ms": "500",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


def _refused(what: str) -> Callable[..., NoReturn]:
    """A method that refuses a step which Apache Kafka does not do on command."""

    def refuse(*_: object) -> NoReturn:
        raise Refused(f"Apache Kafka does not {what}")

    return refuse


class ApacheStage:
    """One node of Apache Kafka in the place of the server of a torture."""

    def __init__(self, bootstrap: str, group: str, topic: str, instances: int) -> None:
        self._cluster = Cluster(bootstrap)
        self._bootstrap, self._group, self._topic, self._instances = bootstrap, group, topic, instances
        self._notes: list[Note] = []
        self._looked_ms = 0.0

    def bootstrap_of(self, listener: str) -> str:
        return self._bootstrap

    def make_topic(self, name: str, partitions: int) -> None:
        self._cluster.create_topic(name, partitions, configs={"message.timestamp.type": "LogAppendTime"})

    def append(self, topic: str, records: Sequence[Outgoing]) -> Sequence[tuple[int, int]]:
        made = [NewRecord(each.value, each.key, each.headers, partition=each.partition) for each in records]
        return self._cluster.produce(topic, made)

    def read(self, topic: str) -> Sequence[Incoming]:
        found = self._cluster.consume(topic, committed_only=True)
        return [Incoming(r.partition, r.offset, r.timestamp_ms, r.value, r.headers) for r in found]

    def committed(self, group: str) -> Mapping[Partition, int]:
        return {(at.topic, at.partition): offset for at, offset in self._cluster.offsets(group).items()}

    def group_ids(self) -> Sequence[str]:
        return self._cluster.groups()

    def rebalances_of(self, group: str) -> Sequence[Mapping[str, object]]:
        return ()

    def notes(self) -> Sequence[Note]:
        """The members that the group has had, and partitions for all once it is stable with so many members.

        An instance is known by its client id.
        """
        if now_ms() < self._looked_ms + LOOK_MS or self._group not in self._cluster.groups():
            return self._notes
        self._looked_ms = now_ms()
        group = self._cluster.describe_group(self._group)
        self._notes += [
            self._note(each.client_id.upper(), "joined", each.member_id) for each in group.members
        ]
        if group.state == "Stable" and len(group.members) >= self._instances:
            self._notes += [self._note(f"C{n}", "assigned") for n in range(1, self._instances + 1)]
        return self._notes

    def _note(self, listener: str, what: str, member: str = "") -> Note:
        given = {"group": self._group, "error": "", "partitions": [[self._topic, 0]], "instance": None}
        given["address"] = member  # a description does not tell the connection
        return {**given, "what": what, "listener": listener, "at_ms": now_ms(), "member": member}

    def expire(self, group: str, member: str) -> None:
        """Remove a member. It hears of that as of the end of its session."""
        with Brokers(self._bootstrap, Deadline(PATIENCE_S)) as brokers:
            node_id = brokers.deadline.until_done(lambda: brokers.coordinator(group))
            request = LeaveGroupRequest(group_id=group, members=(MemberIdentity(member_id=member),))
            left = brokers.ask_node(node_id, request, LeaveGroupResponse)
        if left.error_code or left.members[0].error_code:
            raise Refused(f"{member} is no member")

    def mend(self) -> None:
        """Nothing was broken."""

    append_aborted = _refused("abort records")
    fail_requests = _refused("fail requests")
    put_out = _refused("put a member out")
    static_member = _refused("name a static member")
    fence = _refused("fence a static member")
    fence_producer = _refused("fence a producer")
    rebalance = _refused("rebalance")
    move_coordinator = _refused("move a coordinator")
    move_leader = _refused("move a leader")
    stop_broker = _refused("stop a broker")
    start_broker = _refused("start a broker")
    add_partitions = _refused("add partitions")


def settings_of(stranger: Stranger) -> Settings:
    """The settings that the stranger's options mean."""
    options = argparse.ArgumentParser()
    options.add_argument("--report", action="store_true")
    options.add_argument("--output", default="")
    options.add_argument("--promise", default=Promise.AT_LEAST_ONCE.value)
    options.add_argument("--group", default="torture")
    given, _ = options.parse_known_args(stranger.options)
    values = dict(zip(stranger.options, stranger.options[1:], strict=False))
    output = Output.TOPIC if given.output else Output.REPORT
    return Settings(
        command=stranger.command(),
        judged=Judged(Promise(given.promise), output),
        start_s=60,
        settle_s=40,
        group=given.group,
        output_topic=given.output or "output",
        value=values.get("--value", VALUE),
    )


def play(stranger: Stranger, schedule: Schedule, session_ms: int) -> bool:
    """Play one schedule, and print its story. Return True if the promise holds."""
    settings = settings_of(stranger)._replace(environment={"SESSION_MS": str(session_ms)})
    options = [word for key, value in PROPERTIES.items() for word in ("--set", f"{key}={value}")]
    with tempfile.TemporaryDirectory(prefix="kshim-beside-") as directory:
        server = Server(Path(directory, "data"), options, command=COMMAND).start()
        try:
            stage = ApacheStage(server.bootstrap, settings.group, settings.topic, schedule.instances)
            logs, states = Path(directory), Path(directory, "states")
            evidence = Run(settings, schedule, stage, logs, states).play().evidence
        finally:
            server.kill()
    findings = [each for each in judge(evidence, settings.judged) if each.anomaly not in UNKNOWN]
    print("\n".join(verdict(evidence, findings, settings.judged)), flush=True)
    for one in told(evidence, findings, settings.judged, most=1):
        print("\n".join(lines(one, evidence.began_ms)), flush=True)
    return not any(finding.anomaly in settings.judged.breaking for finding in findings)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("name", choices=[each.name for each in STRANGERS])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--runs", type=int, default=1)
    options.add_argument("--faults", default=FAULTS)
    options.add_argument("--session-ms", type=int, default=SESSION_MS, help="session timeout of the program")
    given = options.parse_args()
    (stranger,) = (each for each in STRANGERS if each.name == given.name)
    for seed in range(given.seed, given.seed + given.runs):
        print(f"seed {seed}", flush=True)
        schedule = schedule_of(seed, 3, 10_000, given.faults.split(","))
        if not play(stranger, schedule, given.session_ms):
            raise SystemExit(1)


if __name__ == "__main__":
    main()

"""All cells: each case in each of its versions, for users with different parts of the needed ACLs."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from integration.differential.acls.cases import CASES, OTHER, OWN, SHARED, Case, Cell, Need
from integration.differential.acls.world import World
from kshim.cluster.acl import AclOperation, PatternType
from schemas.error_code import ErrorCode
from schemas.messages.create_acls import AclCreation
from schemas.messages.produce import ProduceRequest

ALLOW = 3
IMPLIED = {
    **dict.fromkeys(
        (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER),
        AclOperation.DESCRIBE,
    ),
    AclOperation.ALTER_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}
LEFT_OUT = frozenset(
    "throttle_time_ms host port rack cluster_id base_offset high_watermark last_stable_offset "
    "log_start_offset offset timestamp log_append_time_ms leader_epoch current_leader records low_watermark "
    "member_id transaction_start_time_ms transaction_timeout_ms voters observers nodes volume "
    "total_bytes usable_bytes log_dir brokers api_keys finalized_features finalized_features_epoch "
    "supported_features preferred_read_replica log_end_offset config_source "
    "last_fetch_timestamp last_caught_up_timestamp".split()
)
"""Fields that are not compared: they differ from server to server, or from moment to moment."""
NO_ID = UUID(int=0)
NEEDS = re.compile(r"Request Request\(.*\) needs (\w+) permission\.", re.DOTALL)
"""Kafka's message has the request as its own code prints it (D-error-text)."""


@dataclass(frozen=True)
class Row:
    """A case, and a user with some of the ACLs that it needs."""

    case: Case
    choice: str
    needs: tuple[Need, ...]
    user: str

    def __str__(self) -> str:
        return f"{self.case.name}-{self.choice}"


def rows() -> list[Row]:
    """Every case with nothing, with just enough, without each of its ACLs if there are several, and with one
    that allows only what each of them implies.
    """
    found: list[Row] = []
    for case in CASES:
        choices = {"nothing": (), "enough": case.needs} if case.needs else {"nothing": ()}
        if len(case.needs) > 1:
            for need in case.needs:
                name = f"without-{need.operation.name}-{need.resource.name}-{need.name}".lower()
                choices[name] = tuple(each for each in case.needs if each != need)
        for need in case.needs:
            if (implied := IMPLIED.get(need.operation)) is not None:
                name = f"{implied.name}-for-{need.operation.name}-{need.resource.name}".lower()
                weaker = need._replace(operation=implied)
                choices[name] = tuple(weaker if each == need else each for each in case.needs)
        for choice, needs in choices.items():
            found.append(Row(case, choice, needs, f"u{len(found)}"))
    return found


def acls(row: Row) -> Iterator[AclCreation]:
    """The ACLs of a row's user."""
    for operation, resource, name in row.needs:
        yield AclCreation(
            resource_type=resource,
            resource_name=f"{row.user}." if name == OWN else name,
            resource_pattern_type=PatternType.PREFIXED if name == OWN else PatternType.LITERAL,
            principal=f"User:{row.user}",
            host="*",
            operation=operation,
            permission_type=ALLOW,
        )


def prepare(world: World, played: Sequence[Row]) -> Mapping[str, UUID]:
    """Make what the rows' requests are about, and their ACLs. Returns the ids of all topics."""
    own = [
        Cell(row.user, version, {}).own
        for row in played
        if row.case.makes
        for version in row.case.each_version()
    ]
    ids = world.create_topics([SHARED, OTHER, *own])
    world.commit("committed", [SHARED, OTHER])
    world.begin("begun", [SHARED, OTHER])
    world.create_acls([acl for row in played for acl in acls(row)])
    return ids


def play(world: World, row: Row, version: int, ids: Mapping[str, UUID]) -> Any:
    """Send a row's request as its user, and return the answer in a comparable form."""
    request = row.case.request(Cell(row.user, version, ids))
    if isinstance(request, ProduceRequest) and not request.acks:
        return world.is_closed_by(row.user, version, request)
    return plain(world.ask(row.user, version, request))


def plain(value: Any) -> Any:
    """An answer of which a server's own ids, addresses and times are left out; arrays are sets."""
    if isinstance(value, UUID):
        return "no id" if value == NO_ID else "an id"
    if not hasattr(value, "__dataclass_fields__"):
        is_array = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        return sorted(map(plain, value), key=repr) if is_array else value
    fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if fields.get("producer_id", 0) > 0:
        fields["producer_id"] = "some"
    if fields.get("error_message"):
        fields["error_message"] = NEEDS.sub(r"The request needs \1 permission.", fields["error_message"])
    if not ErrorCode(fields.get("error_code", 0)).name.endswith("AUTHORIZATION_FAILED"):
        fields.pop("error_message", None)  # the stories compare those
    return {
        name: ErrorCode(field).name if name.endswith("error_code") else plain(field)
        for name, field in fields.items()
        if name not in LEFT_OUT
    }

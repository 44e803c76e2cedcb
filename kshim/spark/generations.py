"""Rebalances on a stream: of each group the generation it is in is remembered, and forgotten after a time.

The state of a group is JSON text, so that it can be read again by a later version of this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

if TYPE_CHECKING:
    import pandas

CLIENT = "struct<member_id:string,group_instance_id:string,client_id:string,client_host:string>"
GENERATION = (
    "group string, generation int, began timestamp, ended timestamp, protocol string, leader string, "
    f"members int, joined array<{CLIENT}>, left array<{CLIENT}>"
)
_CLIENT_FIELDS = ("member_id", "group_instance_id", "client_id", "client_host")

Clients = list[dict[str, Any]]


def following(groups: DataFrame, keep_for: timedelta) -> DataFrame:
    """Rows of GENERATION from a stream of groups' records, whose time is in `at` and whose members in
    `clients`.
    """
    keep_ms = int(keep_for.total_seconds() * 1000)

    def follow(
        key: tuple[str], frames: Iterator[pandas.DataFrame], state: GroupState
    ) -> Iterator[pandas.DataFrame]:
        import pandas

        if state.hasTimedOut:
            state.remove()
            return
        before = json.loads(state.get[0]) if state.exists else None
        records = sorted((record for frame in frames for record in _records(frame)), key=_log_offset)
        changed, now = advance(key[0], before, records)
        if now is None:
            if state.exists:
                state.remove()
        else:
            state.update((json.dumps(now),))
            state.setTimeoutDuration(keep_ms)
        if changed:
            yield pandas.DataFrame(changed)

    return groups.groupBy("group").applyInPandasWithState(
        follow, GENERATION, "generation string", "update", GroupStateTimeout.ProcessingTimeTimeout
    )


def _records(frame: pandas.DataFrame) -> Iterable[dict[str, Any]]:
    records: Iterable[dict[str, Any]] = frame.to_dict("records")
    return records


def _log_offset(record: dict[str, Any]) -> int:
    return int(record["log_offset"])


def advance(
    group: str, before: dict[str, Any] | None, records: Iterable[dict[str, Any]]
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Rows of GENERATION that began or ended with `records`, and the generation that lasts, None if none
    does.

    A generation that began and ended here has one row, with both.
    """
    rows: dict[tuple[int, str], dict[str, Any]] = {}
    current = before
    for record in records:
        if current is not None and not record["tombstone"] and record["generation"] == current["generation"]:
            current = current | {"clients": _clients(record)}
            continue
        if current is not None:
            _keep(rows, group, current, ended=record["at"])
        were = current["clients"] if current is not None else []
        current = None if record["tombstone"] else _begun(record, were)
        if current is not None:
            _keep(rows, group, current, ended=None)
    return list(rows.values()), current


def _begun(record: dict[str, Any], were: Clients) -> dict[str, Any]:
    clients = _clients(record)
    return {
        "generation": int(record["generation"]),
        "began": record["at"].isoformat(),
        "protocol": record["protocol"],
        "leader": record["leader"],
        "members": len(clients),
        "clients": clients,
        "joined": _without(clients, were),
        "left": _without(were, clients),
    }


def _keep(
    rows: dict[tuple[int, str], dict[str, Any]], group: str, current: dict[str, Any], ended: Any
) -> None:
    """Generation 0 is the group before its first rebalance."""
    import pandas

    if current["generation"] == 0:
        return
    rows[current["generation"], current["began"]] = {
        "group": group,
        "generation": current["generation"],
        "began": pandas.Timestamp(current["began"]),
        "ended": pandas.NaT if ended is None else ended,
        **{name: current[name] for name in ("protocol", "leader", "members", "joined", "left")},
    }


def _clients(record: dict[str, Any]) -> Clients:
    return [{name: client[name] for name in _CLIENT_FIELDS} for client in record["clients"]]


def _without(these: Clients, those: Clients) -> Clients:
    ids = {client["member_id"] for client in those}
    return [client for client in these if client["member_id"] not in ids]

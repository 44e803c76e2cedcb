"""The refusal of AddRaftVoter and RemoveRaftVoter: the voters of the quorum never change (KIP-853).

A node of Apache Kafka that is broker and controller has kraft.version 0 unless it was formatted otherwise,
and refuses both. kshim has no quorum, and answers like such a node.
"""

from __future__ import annotations

from uuid import UUID

from kshim.cluster import ZERO_UUID, Refusal
from schemas.error_code import ErrorCode


def refuse_cluster(asked: str | None, cluster_id: str) -> Refusal | None:
    """Refuse the id of another cluster; null stands for any."""
    if asked is None or asked == cluster_id:
        return None
    message = f'The given id "{asked}" doesn\'t match the cluster id "{cluster_id}"'
    return Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, message)


def refuse_voter(voter_id: int, directory_id: UUID, request: str) -> Refusal | None:
    """Refuse a voter that cannot be one. request: "Add" or "Remove"."""
    if voter_id >= 0 and directory_id != ZERO_UUID:
        return None
    return Refusal(ErrorCode.INVALID_REQUEST, f"{request} voter request didn't include a valid voter")


def fixed_voters(doing: str) -> Refusal:
    """The refusal of a change that is well-formed. doing: "adding" or "removing"."""
    message = f"Cluster doesn't support {doing} voter because the kraft.version feature is 0"
    return Refusal(ErrorCode.UNSUPPORTED_VERSION, message)

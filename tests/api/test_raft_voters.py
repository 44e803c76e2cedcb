"""AddRaftVoter and RemoveRaftVoter: refused, as by a node of Kafka 4.2 that is broker and controller."""

from __future__ import annotations

from uuid import UUID

import pytest

from kshim.api.add_raft_voter import add_raft_voter
from kshim.api.remove_raft_voter import remove_raft_voter
from kshim.cluster import ZERO_UUID
from schemas.error_code import ErrorCode
from schemas.messages.add_raft_voter import AddRaftVoterRequest, Listener
from schemas.messages.remove_raft_voter import RemoveRaftVoterRequest
from tests.api.harness import ask, new_broker

DIRECTORY = UUID(int=7)
CONTROLLER = Listener(name="Controller", host="h", port=1)


def add(
    cluster_id: str | None = None,
    voter_id: int = 2,
    directory_id: UUID = DIRECTORY,
    listeners: tuple[Listener, ...] = (CONTROLLER,),
) -> tuple[int, str | None]:
    request = AddRaftVoterRequest(
        cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id, listeners=listeners
    )
    response = ask(add_raft_voter, new_broker(), request, 1)
    return response.error_code, response.error_message


def remove(
    cluster_id: str | None = None, voter_id: int = 2, directory_id: UUID = DIRECTORY
) -> tuple[int, str | None]:
    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id
    )
    response = ask(remove_raft_voter, new_broker(), request, 0)
    return response.error_code, response.error_message


@pytest.mark.parametrize("mine", [True, False])
def test_the_voters_never_change(mine: bool) -> None:
    cluster_id = new_broker().cluster.cluster_id if mine else None
    fixed = "Cluster doesn't support {} voter because the kraft.version feature is 0"
    assert add(cluster_id) == (ErrorCode.UNSUPPORTED_VERSION, fixed.format("adding"))
    assert remove(cluster_id) == (ErrorCode.UNSUPPORTED_VERSION, fixed.format("removing"))


@pytest.mark.parametrize("cluster_id", ["", "another"])
def test_another_cluster(cluster_id: str) -> None:
    ours = new_broker().cluster.cluster_id
    message = f'The given id "{cluster_id}" doesn\'t match the cluster id "{ours}"'
    expected = (ErrorCode.INCONSISTENT_CLUSTER_ID, message)
    assert add(cluster_id, -1) == remove(cluster_id, -1) == expected


@pytest.mark.parametrize(("voter_id", "directory_id"), [(-1, DIRECTORY), (2, ZERO_UUID)])
def test_no_valid_voter(voter_id: int, directory_id: UUID) -> None:
    what = "voter request didn't include a valid voter"
    invalid = ErrorCode.INVALID_REQUEST
    assert add(None, voter_id, directory_id, ()) == (invalid, f"Add {what}")
    assert remove(None, voter_id, directory_id) == (invalid, f"Remove {what}")


@pytest.mark.parametrize(
    ("listeners", "told"),
    [
        ((), ""),
        ((Listener(name="x", host="::1", port=9),), "ListenerName(X)=::1/<unresolved>:9"),
        (
            (Listener(name="A", host="h", port=1), Listener(name="A", host="", port=2)),
            "ListenerName(A)=/<unresolved>:2",
        ),
    ],
)
def test_a_voter_that_cannot_be_reached(listeners: tuple[Listener, ...], told: str) -> None:
    assert add(listeners=listeners) == (
        ErrorCode.INVALID_REQUEST,
        f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{told}}})) for the default "
        "listener ListenerName(CONTROLLER)",
    )


def test_a_listener_without_a_name() -> None:
    """Apache Kafka 4.2 ends when it reads this."""
    message = "Add voter request has a listener without a name"
    assert add(listeners=(CONTROLLER, Listener(name=""))) == (ErrorCode.INVALID_REQUEST, message)

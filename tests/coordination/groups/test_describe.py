"""Groups as administrators see them."""

import pytest

from kshim.coordination.groups.refusals import DescribeGroup
from kshim.coordination.groups.states import State
from schemas.error_code import ErrorCode
from schemas.messages.describe_groups import DescribedGroup, DescribedGroupMember
from schemas.messages.list_groups import ListedGroup
from tests.coordination.groups.history import History


class TestDescribe:
    def test_a_stable_group(self, history: History) -> None:
        """[116]"""
        static = history.client(group_instance_id="i", client_id="shop")
        static.enter()
        history.sleep(3_000)
        static.sync({static: b"all"})
        assert history.ask(DescribeGroup("group")) == DescribedGroup(
            group_id="group",
            group_state="Stable",
            protocol_type="consumer",
            protocol_data="range",
            members=(
                DescribedGroupMember(
                    member_id="i-1",
                    group_instance_id="i",
                    client_id="shop",
                    client_host="/127.0.0.1",
                    member_metadata=b"topics",
                    member_assignment=b"all",
                ),
            ),
        )

    def test_a_group_in_the_join_phase(self, history: History) -> None:
        """[116]: no subscriptions, no protocol, and the assignments of the last generation."""
        (client,) = history.stable(1)
        history.client().enter()
        answer = history.ask(DescribeGroup("group"))
        assert (answer.group_state, answer.protocol_type, answer.protocol_data) == (
            "PreparingRebalance",
            "consumer",
            "",
        )
        assert [(m.member_id, m.member_metadata, m.member_assignment) for m in answer.members] == [
            (client.member_id, b"", b"0"),
            ("client-2", b"", b""),
        ]

    def test_a_group_in_the_sync_phase(self, history: History) -> None:
        (client,) = history.stable(1)
        client.join()
        answer = history.ask(DescribeGroup("group"))
        assert (answer.group_state, answer.protocol_data) == ("CompletingRebalance", "")
        assert answer.members[0].member_metadata == b""

    def test_a_pending_id_is_not_shown(self, history: History) -> None:
        history.client().join()
        assert history.ask(DescribeGroup("group")) == DescribedGroup(group_id="group", group_state="Empty")

    def test_a_group_of_offsets_alone(self, history: History) -> None:
        history.client().commit(7)
        assert history.ask(DescribeGroup("group")) == DescribedGroup(group_id="group", group_state="Empty")

    @pytest.mark.parametrize("version", range(7))
    def test_an_unknown_group(self, history: History, version: int) -> None:
        """[116]"""
        expected = DescribedGroup(group_id="group", group_state="Dead")
        if version >= 6:
            expected = DescribedGroup(
                group_id="group",
                group_state="Dead",
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message="Group group not found.",
            )
        assert history.ask(DescribeGroup("group"), version) == expected


class TestList:
    @pytest.fixture
    def listed(self, history: History) -> History:
        history.stable(1, "stable")
        (client,) = history.stable(1, "left", session_timeout_ms=100_000)
        client.leave()
        history.client("offsets").commit(7)
        history.stable(1, "joining", session_timeout_ms=100_000)
        history.client("joining").enter()
        history.client("stable", member_id="client-1", generation_id=1).heartbeat()
        return history

    def test_every_group(self, listed: History) -> None:
        """[118]"""
        answer = listed.list_groups()
        assert answer.error_code == ErrorCode.NONE
        assert {group.group_id: group for group in answer.groups} == {
            "stable": ListedGroup(
                group_id="stable", protocol_type="consumer", group_state="Stable", group_type="classic"
            ),
            "left": ListedGroup(
                group_id="left", protocol_type="consumer", group_state="Empty", group_type="classic"
            ),
            "offsets": ListedGroup(
                group_id="offsets", protocol_type="", group_state="Empty", group_type="classic"
            ),
            "joining": ListedGroup(
                group_id="joining",
                protocol_type="consumer",
                group_state="PreparingRebalance",
                group_type="classic",
            ),
        }

    @pytest.mark.parametrize(
        ("states", "types", "expected"),
        [
            (("Stable",), (), {"stable"}),
            (("sTABLE", "EMPTY"), (), {"stable", "left", "offsets"}),
            ((" Empty ",), (), {"left", "offsets"}),
            (("Unknown",), (), set()),
            (("",), (), set()),
            ((), ("classic",), {"stable", "left", "offsets", "joining"}),
            ((), ("CLASSIC", "consumer"), {"stable", "left", "offsets", "joining"}),
            ((), (" classic ",), set()),
            ((), ("consumer",), set()),
            ((), ("",), set()),
            (("PreparingRebalance",), ("classic",), {"joining"}),
            (("PreparingRebalance",), ("share",), set()),
        ],
    )
    def test_filters(
        self, listed: History, states: tuple[str, ...], types: tuple[str, ...], expected: set[str]
    ) -> None:
        """[118]"""
        answer = listed.list_groups(states_filter=states, types_filter=types)
        assert answer.error_code == ErrorCode.NONE
        assert {group.group_id for group in answer.groups} == expected

    def test_a_deleted_group_is_not_listed(self, history: History) -> None:
        assert State.DEAD not in {group.group_state for group in history.list_groups().groups}

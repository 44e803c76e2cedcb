"""ACLs from a seed, and what follows from them: the operations that a user may perform on each resource.

A seed has a user and the first letters of names of its own, so that no two of them meet.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

from integration.differential.acls.matrix import plain
from integration.differential.acls.world import World
from kshim.cluster.acl import AclOperation, AclResource, PatternType, Permission
from schemas.messages.create_acls import AclCreation
from schemas.messages.describe_cluster import DescribeClusterRequest
from schemas.messages.describe_groups import DescribeGroupsRequest
from schemas.messages.init_producer_id import InitProducerIdRequest
from schemas.messages.metadata import MetadataRequest, MetadataRequestTopic

SEEDS = range(100)
USERS = [f"d{seed}" for seed in SEEDS]
ENDS = ["".join(letters) for length in range(4) for letters in itertools.product("ab", repeat=length)]
HERE, ELSEWHERE = "127.0.0.1", "10.9.9.9"
OPERATIONS = [each for each in AclOperation if each > AclOperation.ANY]
RESOURCES = (AclResource.TOPIC, AclResource.GROUP)


def invent(seed: int) -> list[AclCreation]:
    """The ACLs of a seed: many that allow, some that deny."""
    chance = random.Random(seed)
    return [_acl(chance, seed) for _ in range(chance.randrange(1, 12))]


def _acl(chance: random.Random, seed: int) -> AclCreation:
    user = f"User:{USERS[seed]}"
    is_for_all = chance.random() < 0.2
    name = f"{USERS[seed]}-{chance.choice(ENDS)}"
    pattern = chance.choice([PatternType.LITERAL, PatternType.PREFIXED])
    if not is_for_all and chance.random() < 0.2:
        name, pattern = "*", PatternType.LITERAL
    return AclCreation(
        resource_type=chance.choice(RESOURCES),
        resource_name=name,
        resource_pattern_type=pattern,
        principal="User:*" if is_for_all else user,
        host=chance.choice(["*", "*", HERE, ELSEWHERE]),
        operation=chance.choice(OPERATIONS),
        permission_type=chance.choice([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
    )


def look(world: World, seed: int) -> list[Any]:
    """Ask as the seed's user, and return the answers, which list the operations that it may do."""
    user = USERS[seed]
    names = [f"{user}-{end}" for end in ENDS]
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    asked = MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )
    groups = DescribeGroupsRequest(groups=tuple(names), include_authorized_operations=True)
    return [
        plain(world.ask(user, 12, asked)),
        plain(world.ask(user, 5, groups)),
        plain(world.ask(user, 1, DescribeClusterRequest(include_cluster_authorized_operations=True))),
        plain(world.ask(user, 3, InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))),
    ]

"""The pages of groups, topics and connections: tables, made in slices."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote

from kshim.control.rows import GroupRow
from kshim.http import connections, groups, topics
from kshim.http.answers import Answer, Asked
from kshim.http.facts import Facts
from kshim.http.html import TABLE_END, Html, cell, duration, number, page, table_head, tag

HTML_US = 40
"""Time to write a row as HTML. Reading its data is counted separately."""
GROUP_COLUMNS = ("Group", "State", "#Members", "#Lag", "#Generation", "Protocol", "#Coordinator")
TOPIC_COLUMNS = ("Topic", "#Partition", "#Leader", "Replicas", "In sync", "#From", "#To", "#Records")
CONNECTION_COLUMNS = (
    "From",
    "#Broker",
    "Principal",
    "Software",
    "State",
    "#In flight",
    "#Bytes held",
    "#Idle",
)


async def groups_page(facts: Facts, asked: Asked) -> Answer:
    """GET /"""
    return page("Groups", "Groups", "groups", _groups(facts, asked))


async def _groups(facts: Facts, asked: Asked) -> AsyncIterator[Html]:
    yield tag("h1", "Groups")
    yield search("groups")
    yield table_head("Consumer groups, their state, and how far they are behind", GROUP_COLUMNS, id="groups")
    none = True
    async for row in groups.rows(facts, asked.slices):
        await asked.slices.spend(HTML_US)
        none = False
        yield group_row(row)
    yield TABLE_END
    yield tag("p", "No group has been here yet.", class_="none", id="none", hidden=not none)
    yield tag("template", group_row(EMPTY_ROW), id="row")


EMPTY_ROW: GroupRow = {
    "group_id": "",
    "state": "",
    "members": 0,
    "lag": None,
    "generation": 0,
    "protocol_type": "",
    "protocol": "",
    "leader": "",
    "coordinator": 0,
}
"""A template row; page.js copies it and fills it in for a new group."""


def group_row(row: GroupRow) -> Html:
    """A row of the table of groups; page.js changes its cells by their names."""
    group_id = row["group_id"]
    name = tag("a", group_id, href=f"/page/groups/{quote(group_id, safe='')}")
    return tag(
        "tr",
        tag("th", name, scope="row", data_label="Group"),
        cell("State", state(row["state"]), data_name="state"),
        cell("#Members", number(row["members"]), data_name="members"),
        cell("#Lag", number(row["lag"]), data_name="lag"),
        cell("#Generation", number(row["generation"]), data_name="generation"),
        cell("Protocol", row["protocol"] or "–", data_name="protocol"),
        cell("#Coordinator", row["coordinator"], data_name="coordinator"),
        data_group=group_id,
    )


def state(name: str) -> Html:
    """The state of a group, in the state's colour."""
    return tag("span", name, class_="state", data_state=name)


def search(kind: str) -> Html:
    """A search field, hidden at first. page.js shows it, and hides the rows that lack its text."""
    field = tag("input", type="search", id="search", autocomplete="off", spellcheck="false")
    return tag("p", tag("label", f"Find {kind} ", field), class_="search", hidden=True)


async def topics_page(facts: Facts, asked: Asked) -> Answer:
    """GET /page/topics"""
    return page("Topics", "Topics", "poll", _topics(facts, asked))


async def _topics(facts: Facts, asked: Asked) -> AsyncIterator[Html]:
    yield tag("h1", "Topics")
    yield search("topics")
    yield table_head("Partitions, who leads them, and where they begin and end", TOPIC_COLUMNS)
    known = sorted(facts.cluster.topics.values(), key=lambda topic: (topic.is_internal, topic.name))
    for topic in known:
        async for found in topics.partitions(facts.ends, asked.slices, topic):
            await asked.slices.spend(HTML_US)
            yield _partition_row(topic.name, found)
    yield TABLE_END


def _partition_row(topic: str, found: topics.ShownPartition) -> Html:
    start, end = found["log_start_offset"], found["high_watermark"]
    return tag(
        "tr",
        tag("th", topic, scope="row", data_label="Topic"),
        cell("#Partition", found["partition"]),
        cell("#Leader", found["leader"] if found["leader"] >= 0 else "none"),
        cell("Replicas", ", ".join(map(str, found["replicas"]))),
        cell("In sync", ", ".join(map(str, found["isr"])) or "none"),
        cell("#From", number(start)),
        cell("#To", number(end)),
        cell("#Records", number(end - start)),
    )


async def connections_page(facts: Facts, asked: Asked) -> Answer:
    """GET /page/connections"""
    return page("Connections", "Connections", "poll", _connections(facts, asked))


async def _connections(facts: Facts, asked: Asked) -> AsyncIterator[Html]:
    yield tag("h1", "Connections")
    yield search("connections")
    yield table_head("Clients that are connected, and what they wait for", CONNECTION_COLUMNS)
    none = True
    async for found in connections.rows(facts, asked.slices):
        await asked.slices.spend(HTML_US)
        none = False
        yield _connection_row(found)
    yield TABLE_END
    yield tag("p", "No client is connected.", class_="none", hidden=not none)


def _connection_row(found: connections.ShownConnection) -> Html:
    return tag(
        "tr",
        tag("th", found["address"], scope="row", data_label="From"),
        cell("#Broker", found["broker"]),
        cell("Principal", found["principal"]),
        cell("Software", found["software"] or "not known"),
        cell("State", found["state"]),
        cell("#In flight", number(found["in_flight"])),
        cell("#Bytes held", number(found["held_bytes"])),
        cell("#Idle", duration(found["idle_ms"])),
    )

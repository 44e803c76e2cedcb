"""The pages of groups, topics and connections: tables, made in slices."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from urllib.parse import quote

from kshim.cluster import Topic
from kshim.control.others import Silent
from kshim.control.overview import LastRebalance
from kshim.http import connections, group_rows, topics
from kshim.http.answers import Answer, Asked
from kshim.http.facts import Facts
from kshim.http.html import TABLE_END, Html, cell, duration, joined, moment, number, page, table_head, tag

HTML_US = 40
"""Time to write a row as HTML. Reading its data is counted separately."""
GROUP_COLUMNS = (
    *("Group", "State", "#Members", "#Lag", "Last rebalance", "Worth a look", "#Generation", "Protocol"),
)
TOPIC_COLUMNS = ("Topic", "#Partitions", "#Replicas", "#Records", "#Without a leader", "Configs")
CONNECTION_COLUMNS = (
    "From",
    "Client id",
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
    rows, silent = await group_rows.rows_of_all(facts, asked)
    # Events come from the asked process alone, so rows of others are kept current by looking again.
    is_alone = facts.others is None or not facts.others.all()
    return page("Groups", "Groups", "groups" if is_alone else "poll", _groups(asked, rows, silent))


async def _groups(
    asked: Asked, rows: AsyncIterator[group_rows.ListedGroup], silent: Sequence[Silent]
) -> AsyncIterator[Html]:
    yield tag("h1", "Groups")
    for each in silent:
        line = f"The kshim at {each['kshim']} {each['why']}. Its groups are missing here."
        yield tag("p", line, class_="helps")
    yield search("groups")
    yield table_head(
        "Consumer groups, their state, and how far they are behind",
        GROUP_COLUMNS,
        id="groups",
        data_sorts=True,
    )
    none = True
    async for row in rows:
        await asked.slices.spend(HTML_US)
        none = False
        yield group_row(row)
    yield TABLE_END
    yield tag("p", "No group has been here yet.", class_="none", id="none", hidden=not none)
    yield tag("template", group_row(EMPTY_ROW), id="row")


EMPTY_ROW: group_rows.ListedGroup = {
    "group_id": "",
    "state": "",
    "members": 0,
    "lag": None,
    "generation": 0,
    "protocol_type": "",
    "protocol": "",
    "leader": "",
    "coordinator": 0,
    "last": None,
    "remarks": (),
}
"""A template row; page.js copies it and fills it in for a new group."""


def group_row(row: group_rows.ListedGroup) -> Html:
    """A row of the table of groups; page.js changes its cells by their names."""
    group_id = row["group_id"]
    name = tag("a", group_id, href=f"/page/groups/{quote(group_id, safe='')}")
    return tag(
        "tr",
        tag("th", name, scope="row", data_label="Group"),
        cell("State", state(row["state"]), data_name="state"),
        cell("#Members", number(row["members"]), data_name="members"),
        cell("#Lag", number(row["lag"]), data_name="lag"),
        last_rebalance(row["last"]),
        cell("Worth a look", "; ".join(row["remarks"]) or "–", data_name="remarks"),
        cell("#Generation", number(row["generation"]), data_name="generation"),
        cell("Protocol", row["protocol"] or "–", data_name="protocol"),
        data_group=group_id,
    )


def last_rebalance(last: LastRebalance | None) -> Html:
    """The cell with the cause and the time of a group's last rebalance."""
    shown: object = (
        "–" if last is None else joined((tag("span", last["cause"]), " ", moment(last["ended_ms"])))
    )
    order = 0 if last is None else last["ended_ms"]
    return cell("Last rebalance", shown, data_name="last", data_order=order)


def state(name: str) -> Html:
    """The state of a group, in the state's colour."""
    return tag("span", name, class_="state", data_state=name)


def search(kind: str) -> Html:
    """A search field, hidden at first. page.js shows it, and hides the rows that lack its text."""
    field = tag("input", type="search", id="search", autocomplete="off", spellcheck="false")
    nothing = tag("span", class_="nothing", id="nothing", role="status", data_kind=kind)
    return tag("p", tag("label", f"Find {kind} ", field), nothing, class_="search", hidden=True)


async def topics_page(facts: Facts, asked: Asked) -> Answer:
    """GET /page/topics"""
    return page("Topics", "Topics", "poll", _topics(facts, asked))


async def _topics(facts: Facts, asked: Asked) -> AsyncIterator[Html]:
    yield tag("h1", "Topics")
    yield search("topics")
    known = sorted(facts.cluster.topics.values(), key=lambda topic: topic.name)
    own = [topic for topic in known if not topic.is_internal]
    internal = [topic for topic in known if topic.is_internal]
    yield table_head("Topics, and how many records they have", TOPIC_COLUMNS, data_sorts=True)
    for topic in own:
        yield await _topic_row(facts, asked, topic)
    yield TABLE_END
    yield tag("p", "No topic has been created yet.", class_="none", hidden=bool(own))
    if internal:
        summary = f"{len(internal)} internal topic{'s' * (len(internal) > 1)}"
        yield Html(f'<article id="internal"><details><summary>{summary}</summary>')
        yield table_head("Topics in which the server keeps groups and transactions", TOPIC_COLUMNS)
        for topic in internal:
            yield await _topic_row(facts, asked, topic)
        yield joined((TABLE_END, Html("</details></article>")))


async def _topic_row(facts: Facts, asked: Asked, topic: Topic) -> Html:
    records, leaderless = 0, 0
    async for found in topics.partitions(facts.ends, asked.slices, topic):
        records += found["high_watermark"] - found["log_start_offset"]
        leaderless += found["leader"] < 0
    await asked.slices.spend(HTML_US)
    name = tag("a", topic.name, href=f"/page/topics/{quote(topic.name, safe='')}")
    return tag(
        "tr",
        tag("th", name, scope="row", data_label="Topic"),
        cell("#Partitions", number(len(topic.partitions))),
        cell("#Replicas", number(len(topic.partitions[0].replicas) if topic.partitions else 0)),
        cell("#Records", number(records)),
        cell("#Without a leader", number(leaderless)),
        cell("Configs", ", ".join(f"{key}={value}" for key, value in sorted(topic.configs.items())) or "–"),
    )


async def connections_page(facts: Facts, asked: Asked) -> Answer:
    """GET /page/connections"""
    return page("Connections", "Connections", "poll", _connections(facts, asked))


async def _connections(facts: Facts, asked: Asked) -> AsyncIterator[Html]:
    yield tag("h1", "Connections")
    yield search("connections")
    yield table_head(
        "Clients that are connected, and what they wait for", CONNECTION_COLUMNS, data_sorts=True
    )
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
        cell("Client id", found["client_id"] or "none"),
        cell("#Broker", found["broker"]),
        cell("Principal", found["principal"]),
        cell("Software", found["software"] or "not known"),
        cell("State", found["state"]),
        cell("#In flight", number(found["in_flight"])),
        cell("#Bytes held", number(found["held_bytes"])),
        cell("#Idle", duration(found["idle_ms"])),
    )

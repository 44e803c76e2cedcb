"""The page of one topic: its records, who consumes it, its configs and its partitions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from kshim.cluster.described import DescribedConfig
from kshim.cluster.topics import Topic
from kshim.control.long import in_order
from kshim.control.rows import high_watermark
from kshim.coordination.groups.seen import SeenGroup
from kshim.http import topics
from kshim.http.answers import Answer, Asked, HttpError
from kshim.http.facts import Facts
from kshim.http.html import TABLE_END, Html, cell, joined, moment, number, page, table, table_head, tag
from kshim.http.records import FORMS, ShownRecord, ShownRecords, Wanted, read, wanted
from kshim.recorder.shown import shown_assignment

HTML_US = 40
GROUP_US = 30
MEMBER_US = 20
PARTITION_US = 5
MOST_GROUPS = 200
"""Groups that are listed."""
RECORD_COLUMNS = ("#Offset", "Time", "Key", "Value", "Headers")
GROUP_COLUMNS = ("Group", "State", "#Members", "#Partitions", "#Lag")
CONFIG_COLUMNS = ("Config", "Value", "Set where")
PARTITION_COLUMNS = ("#Partition", "#Leader", "Replicas", "In sync", "#From", "#To", "#Records")


async def topic_page(facts: Facts, asked: Asked) -> Answer:
    """GET /page/topics/{topic}"""
    it = wanted(facts, _with_ms(asked))
    return page(it.topic.name, "Topics", "still", _parts(facts, asked, it))


def _with_ms(asked: Asked) -> Asked:
    """The question with its time in ms: people write "2026-11-27 18:00" in UTC. Raises HttpError."""
    text = asked.query.get("time", "").strip()
    if not text or text.isdigit():
        return asked
    try:
        at = datetime.fromisoformat(text.removesuffix("Z"))
    except ValueError:
        why = f"time={text[:100]}: expected ms since 1970, or a time in UTC as in 2026-11-27 18:00:00"
        raise HttpError(400, why) from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return asked.asking(time=str(max(int(at.timestamp() * 1000), 0)))


async def _parts(facts: Facts, asked: Asked, it: Wanted) -> AsyncIterator[Html]:
    topic = it.topic
    yield tag("h1", tag("span", topic.name, class_="id"))
    yield tag("h2", "Records", id="records")
    yield _question(asked, it)
    try:
        yield _records(asked, it, await read(facts, asked, it))
    except HttpError as error:
        yield tag("p", f"{str(error)[:1].upper()}{str(error)[1:]}.", class_="none")
    yield tag("h2", "Who consumes it")
    async for part in _consumers(facts, asked, topic):
        yield part
    yield tag("h2", "Configs")
    yield _configs(facts, topic)
    yield tag("h2", "Partitions")
    yield table_head("Who leads them, and where they begin and end", PARTITION_COLUMNS)
    async for found in topics.partitions(facts.ends, asked.slices, topic):
        await asked.slices.spend(HTML_US)
        yield _partition_row(found)
    yield TABLE_END


# ---- records


def _question(asked: Asked, it: Wanted) -> Html:
    """The form that chooses records."""
    query = asked.query
    return tag(
        "form",
        _field(
            "Partition",
            "partition",
            it.partition.index,
            type="number",
            min=0,
            max=len(it.topic.partitions) - 1,
        ),
        _field("From offset", "offset", query.get("offset", ""), type="number", min=0),
        _field("or from time (UTC)", "time", query.get("time", ""), placeholder="2026-11-27 18:00:00"),
        tag(
            "label",
            "As ",
            tag("select", *(tag("option", each, selected=each == it.form) for each in FORMS), name="as"),
        ),
        tag("button", "Show"),
        action=f"/page/topics/{quote(it.topic.name, safe='')}#records",
        class_="question",
    )


def _field(label: str, name: str, value: object, **attributes: object) -> Html:
    return tag("label", f"{label} ", tag("input", name=name, value=value, autocomplete="off", **attributes))


def _records(asked: Asked, it: Wanted, shown: ShownRecords) -> Html:
    where = f"{number(shown['start'])} to {number(shown['end'])}"
    if not shown["records"]:
        said = "Nothing found" if shown["start"] < shown["end"] else "No records"
        return joined(
            (
                tag("p", f"{said}: partition {it.partition.index} has the offsets {where}.", class_="none"),
                _note(shown),
            )
        )
    caption = f"Partition {it.partition.index}, which has the offsets {where}"
    rows = map(_record_row, shown["records"])
    return joined((table(caption, RECORD_COLUMNS, rows, class_="records"), _note(shown), _ways(it, shown)))


def _note(shown: ShownRecords) -> Html:
    return tag("p", f"{shown['note']}.", class_="none", hidden=not shown["note"])


def _ways(it: Wanted, shown: ShownRecords) -> Html:
    """Links to the records before and after these."""
    before, after = max(shown["records"][0]["offset"] - it.most, shown["start"]), shown["next_offset"]
    links = []
    if shown["records"][0]["offset"] > shown["start"]:
        links.append(_way("Earlier records", it, before))
    if after < shown["end"]:
        links.append(_way("Later records", it, after))
    return tag("p", *links, class_="ways")


def _way(text: str, it: Wanted, offset: int) -> Html:
    query = urlencode({"partition": it.partition.index, "offset": offset, "as": it.form})
    return tag("a", text, href=f"/page/topics/{quote(it.topic.name, safe='')}?{query}#records")


def _record_row(record: ShownRecord) -> Html:
    headers = "; ".join(f"{name}: {value}" for name, value in record["headers"])
    return tag(
        "tr",
        tag("th", number(record["offset"]), scope="row", class_="number", data_label="Offset"),
        cell("Time", moment(record["timestamp_ms"]) if record["timestamp_ms"] >= 0 else "none"),
        cell("Key", _text(record["key"])),
        cell("Value", _text(record["value"])),
        cell("Headers", headers or "–"),
    )


def _text(text: str | None) -> Html:
    return tag("span", "null", class_="null") if text is None else tag("code", text)


# ---- consumers, configs, partitions


async def _consumers(facts: Facts, asked: Asked, topic: Topic) -> AsyncIterator[Html]:
    """The groups that have committed offsets of the topic, or whose members have partitions of it."""
    count = 0
    for group_id in await in_order(asked.slices, facts.groups.group_ids()):
        await asked.slices.spend(GROUP_US)
        group = facts.groups.see(group_id)
        if group is None:
            continue
        await asked.slices.spend(PARTITION_US * len(topic.partitions) + MEMBER_US * len(group.members))
        row = _consumer_row(facts, topic, group)
        if row is None:
            continue
        if not count:
            yield table_head("Groups that have partitions of it, or have committed offsets", GROUP_COLUMNS)
        count += 1
        yield row
        if count == MOST_GROUPS:
            break
    yield TABLE_END if count else tag("p", "No group consumes it.", class_="none")
    if count == MOST_GROUPS:
        yield tag("p", f"There may be more than these {number(MOST_GROUPS)} groups.", class_="none")


def _consumer_row(facts: Facts, topic: Topic, group: SeenGroup) -> Html | None:
    known = [
        (partition.index, committed.offset)
        for partition in topic.partitions
        if (committed := group.committed.get((topic.name, partition.index))) is not None
    ]
    consumed = _owned(topic, group) | {index for index, _ in known}
    if not consumed:
        return None
    ends = [(high_watermark(facts.cluster, facts.ends, topic.name, index), offset) for index, offset in known]
    lag = sum(max(0, end - offset) for end, offset in ends if end is not None)
    name = tag("a", group.group_id, href=f"/page/groups/{quote(group.group_id, safe='')}")
    state = tag("span", str(group.state), class_="state", data_state=str(group.state))
    return tag(
        "tr",
        tag("th", name, scope="row", data_label="Group"),
        cell("State", state),
        cell("#Members", number(len(group.members))),
        cell("#Partitions", number(len(consumed))),
        cell("#Lag", number(lag) if any(end is not None for end, _ in ends) else "–"),
    )


def _owned(topic: Topic, group: SeenGroup) -> set[int]:
    """The partitions of the topic that members have."""
    owned: set[int] = set()
    for member in group.members:
        if topic.name.encode() in member.assignment:
            assignment = shown_assignment(group.protocol_type, member.assignment)
            owned.update(() if isinstance(assignment, str) else assignment.get(topic.name, ()))
    return owned


def _configs(facts: Facts, topic: Topic) -> Html:
    if facts.topic_configs is None:
        return tag("p", "They are at the upstream, and not shown here.", class_="none")
    described = sorted(facts.topic_configs(topic), key=lambda each: each.name)
    own = [each for each in described if each.name in topic.configs]
    others = [each for each in described if each.name not in topic.configs]
    shown = [table("Set for this topic", CONFIG_COLUMNS, _config_rows(own))] if own else []
    return joined(
        (
            *(shown or [tag("p", "None is set for this topic.", class_="none")]),
            tag(
                "article",
                tag(
                    "details",
                    tag("summary", f"{len(others)} others, from the broker or the defaults"),
                    table("Not set for this topic", CONFIG_COLUMNS, _config_rows(others)),
                ),
                id="configs",
            ),
        )
    )


def _config_rows(described: Iterable[DescribedConfig]) -> Iterator[Html]:
    for each in described:
        yield tag(
            "tr",
            tag("th", each.name, scope="row", data_label="Config"),
            cell("Value", "–" if each.value in (None, "") or each.is_sensitive else each.value),
            cell("Set where", each.source.name.replace("_", " ").lower()),
        )


def _partition_row(found: topics.ShownPartition) -> Html:
    start, end = found["log_start_offset"], found["high_watermark"]
    return tag(
        "tr",
        tag("th", found["partition"], scope="row", class_="number", data_label="Partition"),
        cell("#Leader", found["leader"] if found["leader"] >= 0 else "none"),
        cell("Replicas", ", ".join(map(str, found["replicas"]))),
        cell("In sync", ", ".join(map(str, found["isr"])) or "none"),
        cell("#From", number(start)),
        cell("#To", number(end)),
        cell("#Records", number(end - start)),
    )

"""The page of one group: who waits for whom now, the last rebalances drawn and in words, members, offsets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial

from kshim.control.rows import offsets
from kshim.coordination.groups.seen import SeenGroup
from kshim.coordination.groups.states import State
from kshim.coordination.groups.waiting import WaitsFor
from kshim.http.answers import Answer, Asked
from kshim.http.cut import MOST_MEMBERS, cut_assignment, latest_rebalances
from kshim.http.everywhere import is_here
from kshim.http.facts import Facts
from kshim.http.groups import ShownGroupMember, group_scores, members, no_group
from kshim.http.html import (
    NOTHING,
    TABLE_END,
    Html,
    cell,
    duration,
    joined,
    moment,
    number,
    page,
    table,
    table_head,
    tag,
)
from kshim.http.pages import HTML_US, state
from kshim.http.timeline import anchor, held, named, names_of, timeline
from kshim.recorder.recorder import Event
from kshim.recorder.scores import remarks
from kshim.recorder.shown import MOST_INCIDENTS, Assignment, ShownPart, ShownRebalance

MOST_DESCRIBED = 20
"""Rebalances described in words."""
MOST_NAMES = 10
MOST_NAMED = 12
"""Partitions named of one assignment; the others are counted."""
MOST_OFFSETS = 5_000
MOST_UNFOLDED = 20
"""Offsets are folded away if there are more, so that the history is not far below."""
MEMBER_COLUMNS = ("Member", "Client", "Host", "Partitions", "#Session")
PART_COLUMNS = (
    *("Member", "#Heard after", "#Joined after", "#Assigned after", "#Stood still"),
    *("Before", "After"),
)
CONSUMERS_PART_COLUMNS = (*PART_COLUMNS[:2], "#Gave up after", *PART_COLUMNS[3:])
"""Members of a consumer group do not join; they give up partitions."""
OFFSET_COLUMNS = ("Topic", "#Partition", "#Committed", "#End", "#Lag")


async def group_page(facts: Facts, asked: Asked) -> Answer:
    """GET /page/groups/{group}"""
    group_id = asked.names[0]
    group, kept = facts.groups.see(group_id), facts.recorder.rebalances(group_id)
    if group is None and not kept:
        raise no_group(group_id)
    rebalances = await facts.aside.run_long(partial(latest_rebalances, kept, MOST_DESCRIBED)) if kept else []
    # A page that another process passes on gets no events of this one, and steers nothing here.
    live = "poll" if is_here(asked) else f"group {group_id}"
    return page(group_id, "", live, _parts(facts, asked, group_id, group, rebalances))


async def _parts(
    facts: Facts, asked: Asked, group_id: str, group: SeenGroup | None, rebalances: Sequence[ShownRebalance]
) -> AsyncIterator[Html]:
    now_ms = int(facts.wall_clock.seconds() * 1000)
    known = {member["member_id"]: member for each in rebalances[-1:] for member in each["members"]}
    first = [] if group is None else await _first_members(facts, asked, group)
    names = names_of({**known, **{member["member_id"]: member for member in first}}.values())
    yield tag("h1", tag("span", group_id, class_="id"), " ", state(group.state if group else "Dead"))
    if group is not None:
        yield _facts(group, names)
        worth = [*filter(None, (facts.notice(group_id),)), *remarks(await group_scores(facts, group_id))]
        yield _now(group, facts.groups.waits_for(group_id), names, now_ms, worth)
        yield tag("h2", "Members")
        async for part in _members(asked, first, names, len(group.members)):
            yield part
        yield tag("h2", "Offsets")
        async for part in _offsets(facts, asked, group):
            yield part
        if facts.is_steered and not is_here(asked):
            yield _reset(group_id)
    drawing = timeline(group_id, rebalances, now_ms)
    if drawing is not None:
        yield tag("section", tag("h2", "Timeline", id="h-t"), drawing, aria_labelledby="h-t")
    yield tag("h2", "Rebalances")
    if not rebalances:
        yield tag("p", "None since the server has started.", class_="none")
    for each in reversed(rebalances):
        await asked.slices.spend(HTML_US * (1 + len(each["members"])))
        yield _rebalance(each)
    incidents = facts.recorder.incidents(group_id, facts.groups.shard_for(group_id))[-MOST_INCIDENTS:]
    if incidents:
        yield tag("h2", "What else has happened to it")
        yield tag("ul", *map(_incident, incidents), class_="story")


def _reset(group_id: str) -> Html:
    """The form that resets the group's offsets, after it has shown what would change. page.js sends it."""
    places = (
        *(("earliest", "the first record"), ("latest", "the end")),
        *(("time", "a time (UTC)"), ("shift", "so many records on, or back")),
    )
    options = (tag("option", text, value=value) for value, text in places)
    field = tag("input", name="value", autocomplete="off", placeholder="2026-11-27 18:00:00, or -10")
    form = tag(
        "form",
        tag("label", "Reset to ", tag("select", *options, name="to")),
        tag("label", "Time or number ", field),
        tag("button", "Try", name="try"),
        tag("button", "Reset", name="reset", type="button", disabled=True),
        class_="question",
        id="reset",
        data_group=group_id,
    )
    says = tag("p", id="reset-says", role="status")
    return tag("section", tag("h2", "Reset offsets"), form, says, id="resetting", hidden=True)


def _facts(group: SeenGroup, names: Mapping[str, str]) -> Html:
    facts = {
        "Generation" if group.assignment_epoch is None else "Epoch": number(group.generation),
        "Members": number(len(group.members)),
        "Protocol": f"{group.protocol_type} {group.protocol}".strip() or "–",
        "Leader": names.get(group.leader, group.leader) or "–",
        "Coordinator": f"broker {group.node_id}",
    }
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts.items())
    return tag("dl", *pairs, class_="facts")


# ---- now


def _now(
    group: SeenGroup, waits: WaitsFor | None, names: Mapping[str, str], now_ms: int, worth: Sequence[str]
) -> Html:
    """Say who waits for whom. worth: remarks about what deserves a look, one list item each."""
    more = tag("ul", *(tag("li", remark) for remark in worth), class_="story") if worth else NOTHING
    if waits and group.assignment_epoch is not None and group.members:
        return _section_now(*_waits_of_consumers(waits, names, now_ms), more)
    if not waits or group.state not in (State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE):
        said = "It is empty." if group.state == State.EMPTY else "Nobody waits."
        return _section_now(tag("p", said), more)
    awaited = [*waits["to_join"], *waits["to_join_first"]]
    action = "to join"
    if group.state is State.COMPLETING_REBALANCE:
        leads = group.leader in waits["to_sync"]
        awaited = [group.leader] if leads else list(waits["to_sync"])
        action = "to assign the partitions" if leads else "to ask for its partitions"
    is_awaited = set(awaited)
    waiting = [each.member_id for each in group.members if each.member_id not in is_awaited]
    until_ms = waits["until_ms"]
    until = f", for {duration(max(0, until_ms - now_ms))} at most" if until_ms is not None else ""
    sentence = tag(
        "p",
        _chips(waiting, names, "waiting"),
        " " + ("waits" if len(waiting) == 1 else "wait") + " for ",
        _chips(awaited, names, "awaited") if awaited else "more members",
        f" {action}{until}.",
    )
    because = f"It rebalances because {waits['because']}" if waits["because"] else ""
    return _section_now(sentence, tag("p", because, class_="because"), more)


def _waits_of_consumers(waits: WaitsFor, names: Mapping[str, str], now_ms: int) -> Iterator[Html]:
    """Say which members of a consumer group have not reached their target, one paragraph each reason."""
    until_ms = waits["until_ms"]
    until = f", for {duration(max(0, until_ms - now_ms))} at most" if until_ms is not None else ""
    revoking = waits.get("revoking", ())[:MOST_NAMES]
    for each in revoking:
        count = sum(map(len, each["partitions"].values()))
        since, left = (duration(max(0, ms)) for ms in (now_ms - each["since_ms"], each["until_ms"] - now_ms))
        what = f" to give up {partitions(each['partitions'], count)}: asked {since} ago, removed in {left}."
        yield tag("p", "Waits for ", _chips([each["member_id"]], names, "awaited"), what)
    known = {each["member_id"] for each in revoking}
    rest = [member_id for member_id in waits.get("to_revoke", ()) if member_id not in known]
    reasons = (
        (rest, "awaited", f"to give up partitions{until}."),
        (waits.get("to_get", ()), "waiting", "to get partitions that others still have."),
        (waits.get("to_hear", ()), "awaited", "to ask for the new assignment."),
    )
    found = [reason for reason in reasons if reason[0]]
    for awaited, kind, what in found:
        yield tag("p", "Waits for ", _chips(awaited, names, kind), " ", what)
    if not found and not revoking:
        is_behind = waits.get("assignment_epoch") != waits["generation"]
        yield tag("p", "The assignment is not computed yet." if is_behind else "Nobody waits.")
    if waits["because"]:
        yield tag("p", f"It rebalances because {waits['because']}", class_="because")


def _section_now(*parts: Html) -> Html:
    return tag("section", tag("h2", "Now", id="h-n"), *parts, aria_labelledby="h-n", class_="now")


def _chips(member_ids: Sequence[str], names: Mapping[str, str], kind: str) -> Html:
    shown = [
        tag("span", names.get(each, each), class_=f"chip {kind}", title=each)
        for each in member_ids[:MOST_NAMES]
    ]
    more = len(member_ids) - len(shown)
    rest = [tag("span", f"{more} more", class_=f"chip {kind}")] if more > 0 else []
    return joined(shown + rest) if shown else Html("nobody")


# ---- rebalances


def _rebalance(it: ShownRebalance) -> Html:
    took = duration(it["ended_ms"] - it["began_ms"])
    end = "" if it["completed_ms"] else ", and gave way to the next one"
    unit = "Epoch" if it.get("is_of_consumers") else "Generation"
    heading = tag("h3", f"{unit} {it['generation']}: {it['cause']}")
    when = tag("p", moment(it["began_ms"]), f" · took {took}{end}", class_="when")
    story = tag("ul", *(tag("li", sentence) for sentence in it["story"]), class_="story")
    helps = tag("p", f"What helps: {it['advice']}", class_="helps")
    columns = CONSUMERS_PART_COLUMNS if it.get("is_of_consumers") else PART_COLUMNS
    rows = [_part_row(member, it["began_ms"], columns) for member in it["members"]]
    parts = joined((table("Each member's part", columns, rows), _more(it["more_members"], "members")))
    details = tag("details", tag("summary", "Member by member"), parts)
    return tag("article", heading, when, story, helps, details, id=anchor(it))


def _incident(event: Event) -> Html:
    return tag("li", moment(event.at_ms), " ", event.text)


def _part_row(member: ShownPart, began_ms: int, columns: Sequence[str]) -> Html:
    def after(ms: int | None) -> str:
        return "–" if ms is None else duration(max(0, ms - began_ms))

    gone = f" ({member['gone']})" if member["gone"] else ""
    return tag(
        "tr",
        tag("th", f"{member['name']}{gone}", scope="row", data_label="Member", title=member["member_id"]),
        cell("#Heard after", after(member["notified_ms"])),
        cell(columns[2], after(member["joined_ms"])),
        cell("#Assigned after", after(member["assigned_ms"])),
        cell("#Stood still", "–" if member["paused_ms"] is None else duration(member["paused_ms"])),
        cell("Before", partitions(member["before"], member["before_count"])),
        cell("After", partitions(member["after"], member["after_count"])),
    )


def partitions(assignment: Assignment, count: int) -> str:
    """Name the first MOST_NAMED partitions of an assignment, and count the others.

    count: how many the member has, as `assignment` may be cut.
    """
    names = [named(each) for each in sorted(held(assignment))]
    shown = ", ".join(names[:MOST_NAMED])
    more = count - MOST_NAMED
    return (f"{shown} and {number(more)} more" if more > 0 else shown) or "none"


def _more(count: int, kind: str) -> Html:
    """Say how many things of a kind are not shown; nothing if all are."""
    return tag("p", f"And {number(count)} more {kind}.", class_="none") if count > 0 else NOTHING


# ---- members and offsets


class _FirstMember(ShownGroupMember):
    """A member with the beginning of its assignment."""

    count: int
    """The number of its partitions."""


async def _first_members(facts: Facts, asked: Asked, group: SeenGroup) -> list[_FirstMember]:
    first: list[_FirstMember] = []
    some = group._replace(members=group.members[:MOST_MEMBERS])
    async for member in members(facts.aside, asked.slices, some):
        assignment, count = cut_assignment(member["assignment"])
        first.append({**member, "assignment": assignment, "count": count})
    return first


async def _members(
    asked: Asked, first: Sequence[_FirstMember], names: Mapping[str, str], count: int
) -> AsyncIterator[Html]:
    if not first:
        yield tag("p", "It has none.", class_="none")
        return
    yield table_head("The members and what they are assigned", MEMBER_COLUMNS)
    for member in first:
        await asked.slices.spend(HTML_US)
        yield tag(
            "tr",
            tag(
                "th", names[member["member_id"]], scope="row", data_label="Member", title=member["member_id"]
            ),
            cell("Client", member["client_id"]),
            cell("Host", member["host"]),
            cell("Partitions", partitions(member["assignment"], member["count"])),
            cell("#Session", duration(member["session_timeout_ms"])),
        )
    yield TABLE_END
    yield _more(count - len(first), "members")


async def _offsets(facts: Facts, asked: Asked, group: SeenGroup) -> AsyncIterator[Html]:
    count, fold = 0, len(group.committed) > MOST_UNFOLDED
    if fold:
        yield Html(f"<article id=offsets><details><summary>{len(group.committed)} partitions</summary>")
    async for offset in offsets(facts, asked.slices, group):
        if count == MOST_OFFSETS:
            break
        if not count:
            yield table_head("What it has committed, and how far it is behind", OFFSET_COLUMNS)
        count += 1
        await asked.slices.spend(HTML_US)
        yield tag(
            "tr",
            tag("th", offset["topic"], scope="row", data_label="Topic"),
            cell("#Partition", offset["partition"]),
            cell("#Committed", number(offset["committed"])),
            cell("#End", number(offset["high_watermark"])),
            cell("#Lag", number(offset["lag"])),
        )
    yield TABLE_END if count else tag("p", "It has committed none.", class_="none")
    if count == MOST_OFFSETS:
        yield _more(len(group.committed) - count, "partitions")
    if fold:
        yield Html("</details></article>")

"""How the scene looks: pure functions from what is known to what rich can draw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kshim.demo.checks import Check
from kshim.demo.rebalances import Rebalance
from kshim.demo.scene import Member, Scene

COLOURS = {"consumer-1": "blue", "consumer-2": "magenta", "consumer-3": "cyan"}
STATE_STYLES = {
    "starting": "dim",
    "joining": "yellow",
    "rebalancing": "yellow",
    "consuming": "green",
    "killed": "bold red",
    "left": "dim",
}
NARROW = 80
SHORTEST_BAR = 8
LONGEST_BAR = 32
EIGHTHS = " ▏▎▍▌▋▊▉█"
FULL_BAR_AT_LEAST = 100
"""Records of lag that fill the bar, unless the run has seen more."""
SIDE_BY_SIDE = 136
"""From this width on, the story stands beside the members."""


@dataclass(slots=True)
class Told:
    """A step of the story so far: `missing` is what it waits for; `done_ms` is None until it is done."""

    title: str
    began_ms: int | None = None
    done_ms: int | None = None
    missing: str = ""
    failed: bool = False


def colour(name: str) -> str:
    """Each consumer has a colour, the same everywhere."""
    return COLOURS.get(name, "white")


def seconds(at_ms: int, since_ms: int) -> str:
    """Seconds since the run began, to a tenth."""
    return f"{(at_ms - since_ms) / 1000:.1f} s"


def bar(amount: int, full: int, width: int) -> str:
    """A bar of `width` cells when amount == full, in eighths of a cell; the least amount shows."""
    eighths = min(width * 8, -(-amount * width * 8 // full))
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (EIGHTHS[part] if part else "")).ljust(width)


def cells(name: str, held: Sequence[int], partitions: int, alive: bool) -> Text:
    """One cell a partition, always at the same place; the ones held are coloured."""
    text = Text()
    for partition in range(partitions):
        if partition in held:
            text.append(f" {partition} ", f"bold white on {colour(name)}" if alive else "red strike")
        else:
            text.append(" · ", "dim")
    return text


def lag_of(scene: Scene, name: str) -> int:
    """Records not yet committed in the partitions a member holds, a dead one included."""
    return sum(scene.lag.get(partition, 0) for partition in scene.held_by(name))


def lag_cell(lag: int, full: int, width: int) -> Text:
    """The bar and the figure."""
    style = "red" if lag * 2 > full else "yellow" if lag * 5 > full else "green"
    return Text.assemble((bar(lag, full, width), style), f"{lag:>6,}")


def members_table(scene: Scene, full_lag: int, width: int) -> Table:
    """A row for each member; what `width` leaves over makes the bars longer."""
    bar_width = min(LONGEST_BAR, SHORTEST_BAR + max(0, width - NARROW))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("member", no_wrap=True, min_width=10)
    table.add_column("state", no_wrap=True, min_width=11)
    table.add_column("gen", justify="right", no_wrap=True)
    table.add_column("partitions", no_wrap=True, min_width=3 * scene.partitions)
    table.add_column("lag", no_wrap=True, min_width=bar_width + 6)
    table.add_column("received", justify="right", no_wrap=True)
    for name, member in scene.members.items():
        table.add_row(*member_row(scene, name, member, full_lag, bar_width))
    for _ in range(len(scene.members), len(COLOURS)):
        table.add_row("")
    return table


def member_row(
    scene: Scene, name: str, member: Member, full_lag: int, bar_width: int
) -> tuple[RenderableType, ...]:
    """Name, state, generation, partitions, lag and records received of a member."""
    held = scene.held_by(name)
    return (
        Text(name, f"bold {colour(name)}" if member.lives else "dim"),
        Text(member.state, STATE_STYLES[member.state]),
        str(member.generation) if member.generation is not None else "",
        cells(name, held, scene.partitions, member.lives),
        lag_cell(lag_of(scene, name), full_lag, bar_width) if held else "",
        f"{member.received:,}",
    )


def group_state(scene: Scene) -> str:
    """The group's state in the server's words; "Dead" is how it describes a group that does not exist yet."""
    if not (scene.seen and scene.reachable):
        return "out of reach"
    return "not yet" if scene.seen.state == "Dead" else scene.seen.state


def server_line(scene: Scene) -> Text:
    """The server and the group, in one line."""
    style = {"ready": "bold green", "killed": "bold white on red"}.get(scene.server, "yellow")
    text = Text.assemble("server ", (scene.address, "bold"), " ", (scene.server, style), no_wrap=True)
    if scene.seen and scene.server == "ready":
        group = group_state(scene)
        text.append("   group ").append(group, "green" if group == "Stable" else "yellow")
    if scene.generation is not None:
        text.append(f"   generation {scene.generation}")
    return text


def counts_line(scene: Scene) -> Text:
    """How many records went through."""
    return Text.assemble(
        (f"{scene.acknowledged:,}", "bold"), " acknowledged   ",
        (f"{scene.received:,}", "bold"), " received   ",
        (f"{sum(scene.lag.values()):,}", "bold"), " not yet committed",
        no_wrap=True,
    )  # fmt: skip


def members_panel(scene: Scene, full_lag: int, width: int) -> Panel:
    """The server, the members, the figures."""
    table = members_table(scene, full_lag, width)
    body = Group(server_line(scene), Text(), table, Text(), counts_line(scene))
    return Panel(
        body, title="kshim demo", title_align="left", border_style="dim", padding=(0, 1), width=width
    )


def story_table(story: Sequence[Told], began_ms: int, now_ms: int) -> Table:
    """The checklist: a tick and when it was done, or what is awaited."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(width=1)
    table.add_column(justify="right", min_width=6, no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    for step in story:
        if step.done_ms is not None:
            table.add_row(Text("✔", "green"), Text(seconds(step.done_ms, began_ms), "dim"), step.title)
        elif step.failed:
            table.add_row(Text("✘", "bold red"), seconds(now_ms, began_ms), Text(step.title, "red"))
        elif step.began_ms is not None:
            missing = f" · {step.missing}" if step.missing else ""
            title = Text.assemble((step.title, "bold"), (missing, "yellow"))
            table.add_row(Text("▸", "yellow"), seconds(now_ms, began_ms), title)
        else:
            table.add_row(Text("·", "dim"), "", Text(step.title, "dim"))
    return table


def picture(scene: Scene, story: Sequence[Told], full_lag: int, width: int) -> RenderableType:
    """The whole live view, for a terminal of this width."""
    checklist = story_table(story, scene.began_ms, scene.at_ms)
    if width < SIDE_BY_SIDE:
        return Group(
            members_panel(scene, full_lag, min(width, NARROW + LONGEST_BAR - SHORTEST_BAR)), checklist
        )
    grid = Table.grid(padding=(0, 2))
    grid.add_row(members_panel(scene, full_lag, NARROW), checklist)
    return grid


def owners(rebalance: Rebalance, partitions: int) -> Text:
    """The number of each partition's owner, in its colour."""
    by_partition: Mapping[int, str] = {p: name for name, held in rebalance.members for p in held}
    text = Text()
    for partition in range(partitions):
        if name := by_partition.get(partition):
            text.append(f"{name.rpartition('-')[2]} ", f"bold {colour(name)}")
        else:
            text.append("- ", "dim")
    return text


def rebalance_table(rows: Sequence[Rebalance], began_ms: int, partitions: int) -> Table:
    """Each rebalance: when, why, from which generation to which, who owns what then, and how long it took."""
    table = titled("Rebalances", box=box.SIMPLE_HEAD)
    table.add_column("at", justify="right", no_wrap=True)
    table.add_column("cause", ratio=1)
    table.add_column("gen", no_wrap=True)
    table.add_column("owner of\n" + " ".join(map(str, range(partitions))), no_wrap=True)
    table.add_column("noticed\nafter", justify="right", no_wrap=True)
    table.add_column("all set\nafter", justify="right", no_wrap=True)
    for row in rows:
        noticed = f"{(row.noticed_ms - row.began_ms) / 1000:.2f} s" if row.noticed_ms is not None else ""
        table.add_row(
            seconds(row.began_ms, began_ms),
            row.cause,
            generations(row),
            owners(row, partitions),
            noticed,
            Text(f"{row.took_ms / 1000:.2f} s", "bold"),
        )
    return table


def titled(title: str, box: box.Box | None = None, show_header: bool = True) -> Table:
    """An empty table under its title."""
    text = Text(title, "bold")
    return Table(box=box, title=text, title_justify="left", show_header=show_header, pad_edge=False)


def generations(row: Rebalance) -> str:
    """From which generation to which; a kept one is said so."""
    if row.before == row.after:
        return f"{row.after} kept"
    return f"{row.before if row.before is not None else '-'} > {row.after}"


def check_table(found: Sequence[Check]) -> Table:
    """Each promise, whether it held, and the figures."""
    table = titled("Checks", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for check in found:
        mark = Text("ok", "green") if check.holds else Text("FAILED", "bold red")
        table.add_row(mark, Text.assemble(check.promise, (f"\n{check.detail}", "dim")))
    return table

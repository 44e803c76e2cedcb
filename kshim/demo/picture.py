"""The live view: pure functions that turn a scene into what rich draws."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kshim.demo.scene import Member, Scene
from kshim.demo.story import Progress

COLOURS = {"consumer-1": "blue", "consumer-2": "magenta", "consumer-3": "cyan"}
STATE_STYLES = {
    "starting": "dim",
    "joining": "yellow",
    "rebalancing": "yellow",
    "consuming": "green",
    "killed": "bold red",
    "leaving": "yellow",
    "left": "dim",
}
NARROW = 80
SHORTEST_BAR = 8
LONGEST_BAR = 32
EIGHTHS = " ▏▎▍▌▋▊▉█"
FULL_BAR_AT_LEAST = 100
"""The lag, in records, that fills the bar, unless the run has had a larger one."""
SIDE_BY_SIDE = 136
"""From this terminal width on, the story stands beside the members."""


def colour(name: str) -> str:
    """The consumer's colour, everywhere in the view."""
    return COLOURS.get(name, "white")


def seconds(at_ms: int, since_ms: int) -> str:
    """Seconds since the run began, to a tenth."""
    return f"{(at_ms - since_ms) / 1000:.1f} s"


def bar(amount: int, full: int, width: int) -> str:
    """A bar for `amount`, in eighths of a cell.

    `full` takes `width` cells; even the least amount is visible.
    """
    eighths = min(width * 8, -(-amount * width * 8 // full))
    whole, part = divmod(eighths, 8)
    return ("█" * whole + (EIGHTHS[part] if part else "")).ljust(width)


def cells(name: str, held: Sequence[int], partitions: int, alive: bool) -> Text:
    """One cell per partition, always in the same place; those in `held` are coloured."""
    text = Text()
    for partition in range(partitions):
        if partition in held:
            text.append(f" {partition} ", f"bold white on {colour(name)}" if alive else "red strike")
        else:
            text.append(" · ", "dim")
    return text


def lag_cell(lag: int, full: int, width: int) -> Text:
    """A bar and a number for a lag."""
    style = "red" if lag * 2 > full else "yellow" if lag * 5 > full else "green"
    return Text.assemble((bar(lag, full, width), style), f"{lag:>6,}")


def members_table(scene: Scene, full_lag: int, width: int) -> Table:
    """A row for each member; the spare part of `width` makes the bars longer."""
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
        lag_cell(scene.lag_of(name), full_lag, bar_width) if held else "",
        f"{member.received:,}",
    )


def group_state(scene: Scene) -> str:
    """The group's state as the server names it, but "not there yet" for "Dead", an unknown group."""
    if not (scene.seen and scene.reachable):
        return "out of reach"
    return "not there yet" if scene.seen.state == "Dead" else scene.seen.state


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
    """How many records were acknowledged and received, and are not yet committed."""
    return Text.assemble(
        (f"{scene.acknowledged:,}", "bold"), " acknowledged   ",
        (f"{scene.received:,}", "bold"), " received   ",
        (f"{sum(scene.lag.values()):,}", "bold"), " not yet committed",
        no_wrap=True,
    )  # fmt: skip


def members_panel(scene: Scene, full_lag: int, width: int) -> Panel:
    """The panel with the server, the members and the counts of records."""
    table = members_table(scene, full_lag, width)
    body = Group(server_line(scene), Text(), table, Text(), counts_line(scene))
    return Panel(
        body, title="kshim demo", title_align="left", border_style="dim", padding=(0, 1), width=width
    )


def story_table(story: Sequence[Progress], scene: Scene) -> Table:
    """The checklist: for each step a tick and when it was done, or what it still waits for."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(min_width=1)
    table.add_column(justify="right", min_width=6, no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    now = seconds(scene.at_ms, scene.began_ms)
    for progress in story:
        title = progress.step.title
        if progress.done_ms is not None:
            table.add_row(Text("✔", "green"), seconds(progress.done_ms, scene.began_ms), title)
        elif progress.began_ms is None:
            table.add_row(Text("·", "dim"), "", Text(title, "dim"))
        elif scene.failure:
            table.add_row(
                Text("✘", "bold red"), seconds(scene.at_ms, scene.began_ms), Text(title, "bold red")
            )
        else:
            missing = Text(f" · {progress.missing(scene)}", "yellow")
            now = seconds(scene.at_ms, scene.began_ms)
            table.add_row(Text("▸", "yellow"), now, Text.assemble((title, "bold"), missing))
    return table


def picture(scene: Scene, story: Sequence[Progress], width: int) -> RenderableType:
    """The whole live view, for a terminal of this width."""
    full_lag = max(FULL_BAR_AT_LEAST, scene.most_lag)
    checklist = story_table(story, scene)
    if width < SIDE_BY_SIDE:
        panel_width = min(width, NARROW + LONGEST_BAR - SHORTEST_BAR)
        return Group(members_panel(scene, full_lag, panel_width), checklist)
    grid = Table.grid(padding=(0, 2))
    grid.add_row(members_panel(scene, full_lag, NARROW), checklist)
    return grid


def picture_at(scene: Scene, story: Sequence[Progress], at_ms: int, width: int) -> RenderableType:
    """The live view as it was at that time."""
    past = Scene(began_ms=scene.began_ms, partitions=scene.partitions)
    for event in scene.history:
        if event.at_ms <= at_ms:
            past.apply(event)
    past.at_ms = at_ms
    return picture(past, [progress.at(at_ms) for progress in story], width)

"""The tables printed at the end: the rebalances and the checks."""

from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from kshim.demo.checks import Check
from kshim.demo.picture import colour, seconds
from kshim.demo.rebalances import Rebalance


def owners(rebalance: Rebalance, partitions: int) -> Text:
    """For each partition the number of its owner, in the owner's colour."""
    by_partition: Mapping[int, str] = {p: name for name, held in rebalance.members for p in held}
    text = Text()
    for partition in range(partitions):
        if name := by_partition.get(partition):
            text.append(f"{name.rpartition('-')[2]} ", f"bold {colour(name)}")
        else:
            text.append("- ", "dim")
    return text


def rebalance_table(rows: Sequence[Rebalance], began_ms: int, partitions: int) -> Table:
    """A row for each rebalance: when, why, the generations, the new owners, and how long it took."""
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
    """The generations before and after, or the one that was kept."""
    if row.kept:
        return f"{row.after} kept"
    return f"{row.before if row.before is not None else '-'} > {row.after}"


def check_table(found: Sequence[Check]) -> Table:
    """A row for each check: whether it holds, its promise and its figures."""
    table = titled("Checks", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for check in found:
        mark = Text("ok", "green") if check.holds else Text("FAILED", "bold red")
        table.add_row(mark, Text.assemble(check.promise, (f"\n{check.detail}", "dim")))
    return table

"""The command: `python -m benchmarks`."""

from __future__ import annotations

import json
import re
import resource
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from benchmarks import plotting
from benchmarks.cases import CASES, COMPARED, OWN_SERVERS, PASSED, problems
from benchmarks.processor import load_average
from benchmarks.reporting import LEGEND, as_json, rows, titles
from benchmarks.running import Failed, Plan, Series, draw_flames, run, run_alone
from benchmarks.servers import APACHE_KAFKA, UPSTREAM, ServerFailed, Side
from kshim.cli.faults import fail
from kshim.cli.tables import print_table

COMMAND = "benchmarks"


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--against",
    metavar="PEER",
    default="",
    help="apache-kafka, HOST:PORT of a running server, or upstream: kshim in front of Apache Kafka, compared "
    "with the same one, reached directly.",
)
@click.option(
    "--load", metavar="TEXT", default="", help="Only loads with this in their name, such as `8 x 16`."
)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Rounds of each side.")
@click.option(
    "--seconds", type=click.FloatRange(0.1), default=3.0, show_default=True, help="Length of a round."
)
@click.option(
    "--flush",
    type=click.Choice(["commit", "os", "memory", "both", "all"]),
    help="kshim's flush.policy, or memory: nothing is written. By default both policies where records are "
    "written, else commit; all adds memory to both.",
)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every round's figures.")
@click.option("--plot", "plot_file", type=click.Path(path_type=Path), help="Draw the ratios, as SVG or PNG.")
@click.option(
    "--flames",
    "flames_dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Draw flame graphs of kshim instead, one for each load, as SVG.",
)
@click.option("--list", "listing", is_flag=True, help="List the cases.")
def benchmarks(
    names: tuple[str, ...],
    against: str,
    load: str,
    rounds: int,
    seconds: float,
    flush: str | None,
    json_file: Path | None,
    plot_file: Path | None,
    flames_dir: Path | None,
    listing: bool,
) -> None:
    """Measure kshim, and compare it with Apache Kafka in the same minutes.

    Without a NAME all cases run that compare servers. Their data is written to the system's directory for
    temporary files: set TMPDIR to measure another disk. The exit status is 1 if a case failed.

    \b
    Example:
      python -m benchmarks heartbeat offset-commit --against apache-kafka
    """
    if listing:
        print_table(("Case", "What it measures"), [(name, case.summary) for name, case in CASES.items()])
        return
    default = PASSED if against == UPSTREAM else COMPARED
    wrong = (problems(names, load) if names else problems(default)) + _wrong_options(against, plot_file)
    if own := [name for name in names if name in OWN_SERVERS and against == UPSTREAM]:
        wrong.append(f"--against {UPSTREAM}: name cases that use one server, not {', '.join(own)}")
    if wrong:
        fail(*wrong, command=COMMAND)
    plan = Plan(against, flush or "", rounds, seconds, load)
    if flames_dir is not None:
        _draw_flames(names, plan, flames_dir)
        return
    found, failed = _run_all(names or default, plan)
    if json_file is not None:
        flat = [series for each in found for series in each]
        json_file.write_text(json.dumps(as_json(flat, plan), indent=1) + "\n")
    if plot_file is not None:
        plotting.draw(plot_file, plotting.bars(found), Side(against).name)
    sys.exit(1 if failed else 0)


def _wrong_options(against: str, plot_file: Path | None) -> list[str]:
    """A line for each option that cannot be followed."""
    found = []
    if against not in ("", APACHE_KAFKA, UPSTREAM) and not re.fullmatch(r"[^:\s]+:\d+", against):
        found.append(f"--against {against}: expected {APACHE_KAFKA}, {UPSTREAM} or HOST:PORT")
    if plot_file is not None:
        found.append(plotting.problem(plot_file))
        if not against:
            found.append("--plot draws ratios: say with --against to whom")
    return [line for line in found if line]


def _draw_flames(names: tuple[str, ...], plan: Plan, into: Path) -> None:
    """Raises SystemExit if a case has no server to look into."""
    own = [name for name in names if name in OWN_SERVERS]
    if own or not names:
        fail(f"--flames: name cases that use one server, not {', '.join(own) or 'none'}", command=COMMAND)
    for name in names:
        for picture in draw_flames(name, CASES[name], plan, into):
            click.echo(picture)


def _run_all(names: tuple[str, ...], plan: Plan) -> tuple[list[list[Series]], bool]:
    """Print a table for each case; returns the series of each load, and whether a case failed."""
    all_found: list[list[Series]] = []
    failed = False
    for name in names:
        case = CASES[name]
        begin = len(all_found)
        load_before = load_average()
        try:
            if case.servers == "alone":
                run_alone(case, plan)
                continue
            for found in run(name, case, plan):
                if isinstance(found, Failed):
                    failed = True
                    click.echo(f"{COMMAND}: {name} {found.load}: {found.why}", err=True)
                else:
                    all_found.append(found)
        except ServerFailed as error:
            failed = True
            click.echo(f"{COMMAND}: {name}: {error}", err=True)
        if all_found[begin:]:
            print_table(titles(all_found[begin]), [row for found in all_found[begin:] for row in rows(found)])
            click.echo(f"load of the machine: {load_before:.1f} before, {load_average():.1f} at the end")
            click.echo()
    if all_found:
        click.echo(LEGEND)
    return all_found, failed


def main() -> NoReturn:
    """Run the command, and exit with its status."""
    # A generator has ten thousand connections, and so have the servers, which take this over.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # servers are stopped
    try:
        sys.exit(benchmarks.main(prog_name="python -m benchmarks", standalone_mode=False))
    except click.ClickException as error:
        fail(" ".join(error.format_message().split()), command=COMMAND)
    except click.Abort:
        sys.exit(130)


if __name__ == "__main__":
    main()

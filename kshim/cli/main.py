"""The `kshim` command. Each subcommand is a module, imported when the user calls it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final, NoReturn

import click

from kshim import __version__, platform_fault
from kshim.cli.faults import EXIT_USAGE, fail
from kshim.cli.output import open_streams

COMMANDS: Final = (
    *("serve", "demo", "apis", "config", "check"),
    *("topic", "produce", "consume"),
    *("groups", "top", "why", "watch"),
    *("cluster", "group", "adopt", "fault", "clock", "torture", "plan"),
    *("users", "certificates", "pipeline"),
)
"""Each command NAME is the function NAME in kshim/cli/NAME.py."""
# Since 8.2, click raises this if a group is called without a command. It shows the group's help.
_ASKED_FOR_NOTHING = getattr(click.exceptions, "NoArgsIsHelpError", ())


class Commands(click.Group):
    """A group that imports only the called command's module, so that `serve` starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"kshim.cli.{cmd_name}"), cmd_name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="kshim", message="%(prog)s %(version)s")
def commands() -> None:
    """A Kafka-protocol server with its own group coordinator.

    \b
    Start one, and point any Kafka client at 127.0.0.1:9092:
        kshim serve
    """


def main() -> NoReturn:
    """Run the `kshim` command, and exit with its status."""
    if fault := platform_fault(sys.platform):
        fail(fault)
    open_streams()
    try:
        sys.exit(commands.main(prog_name="kshim", standalone_mode=False))
    except click.ClickException as error:
        if isinstance(error, _ASKED_FOR_NOTHING):
            error.show()
            sys.exit(EXIT_USAGE)
        fail(_problem(error))
    except click.Abort:
        sys.exit(130)
    finally:
        sys.stdout.flush()


def _problem(error: click.ClickException) -> str:
    """Return one line that says what is wrong. If a command is missing or unknown, it lists the commands."""
    problem = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    group = None if context is None else context.command
    if context is None or not isinstance(group, click.Group):
        return problem
    if " command" not in problem or problem.endswith("?"):  # click has named a similar one
        return problem
    return f"{problem.rstrip('.')}; expected one of {', '.join(group.list_commands(context))}"

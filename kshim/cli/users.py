"""`kshim users`: shows and changes the users for SCRAM, of a running server or before its first start."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

import click

from kshim.authentication.scram_credential import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism
from kshim.authentication.scram_keys import new_salt, salted_password
from kshim.cli.asking import ByAddress, of_server
from kshim.cli.lines import print_line
from kshim.cli.tables import print_table
from kshim.control.client import FILE_NAME, ControlError, NoServer, ask

if TYPE_CHECKING:
    from kshim.cli.stored_users import Question

_MECHANISMS = [each.value for each in ScramMechanism]


class Users(NamedTuple):
    """The place of the users: a running server, or the data directory of a server that does not run."""

    data_dir: Path
    control: Path | None

    def ask_all(self, questions: Sequence[Question]) -> list[object]:
        """Run commands, each with its arguments, and return their results. Raises ClickException."""
        path = self.control or self.data_dir / FILE_NAME
        try:
            return [ask(path, *question) for question in questions]
        except NoServer as error:
            if self.control is not None:
                raise click.ClickException(str(error)) from error
        except ControlError as error:
            raise click.ClickException(str(error)) from error
        from kshim.cli.stored_users import ask_data_dir

        return ask_data_dir(self.data_dir, questions)


@click.group()
def users() -> None:
    """List, add and remove the users that may authenticate with SCRAM.

    This works with a running server, here or by its address, and with a data directory before the first
    start. The server never gets the passwords; it stores only what SCRAM needs. kafka-configs sees the same
    users. The users of PLAIN are in the server's configuration instead.

    \b
    Examples:
      kshim users add alice
      kshim users add alice --password-file - <secret.txt
      kshim users add bob --mechanism SCRAM-SHA-512 --iterations 8192
      kshim users list
      kshim users remove alice
    """


_of_users = of_server("of", Users, "The server's data directory. The server need not run.")
_mechanism = click.option(
    "--mechanism",
    "mechanisms",
    type=click.Choice(_MECHANISMS),
    multiple=True,
    default=_MECHANISMS,
    show_default=" and ".join(_MECHANISMS),
    help="Only this mechanism; may be given several times.",
)


@users.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_of_users
def list_users(of: Users | ByAddress, as_json: bool) -> None:
    """List the users."""
    (found,) = _ask(of, ("list-users",))
    assert isinstance(found, list)
    if as_json:
        click.echo(json.dumps(found))
        return
    rows = [(each["user"], each["mechanism"], str(each["iterations"])) for each in found]
    print_table(("User", "Mechanism", "Iterations"), rows)


@users.command()
@click.argument("name")
@click.option(
    "--password-file",
    metavar="FILE",
    type=click.File(encoding="utf-8"),
    help="A file whose first line is the password; - is standard input. Without it, kshim asks for it.",
)
@click.option(
    "--iterations",
    type=click.IntRange(MIN_ITERATIONS, MAX_ITERATIONS),
    default=MIN_ITERATIONS,
    show_default=True,
    help="Number of times that the password is hashed.",
)
@_mechanism
@_of_users
def add(
    of: Users | ByAddress,
    name: str,
    password_file: TextIO | None,
    iterations: int,
    mechanisms: tuple[str, ...],
) -> None:
    """Add the user NAME with a password, or replace the password of NAME."""
    password = _password(name, password_file)
    questions: list[Question] = []
    for mechanism in map(ScramMechanism, dict.fromkeys(mechanisms)):
        salt = new_salt()
        salted = salted_password(mechanism, password, salt, iterations)
        questions.append(("put-user", name, mechanism.value, iterations, salt.hex(), salted.hex()))
    _ask(of, *questions)
    print_line(f"{name} may authenticate with {' and '.join(dict.fromkeys(mechanisms))}")


@users.command()
@click.argument("name")
@_mechanism
@_of_users
def remove(of: Users | ByAddress, name: str, mechanisms: tuple[str, ...]) -> None:
    """Remove NAME's password. Open connections stay open."""
    asked = list(dict.fromkeys(mechanisms))
    were_there = _ask(of, *(("remove-user", name, each) for each in asked))
    removed = [each for each, was_there in zip(asked, were_there, strict=True) if was_there]
    if not removed:
        raise click.ClickException(f"there is no user {name} with {' or '.join(asked)}")
    print_line(f"{name} may no longer authenticate with {' and '.join(removed)}")


def _ask(of: Users | ByAddress, *questions: Question) -> list[object]:
    """Run commands, each with its arguments, and return their results. Raises ClickException."""
    if isinstance(of, ByAddress):
        return [of.ask(*question) for question in questions]
    return of.ask_all(questions)


def _password(name: str, file: TextIO | None) -> str:
    """Read the password from a file, or ask the user for it. Raises ClickException."""
    if file is None and not sys.stdin.isatty():
        raise click.ClickException("expected --password-file, as nobody can be asked for the password here")
    if file is None:
        password = click.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True)
    else:
        password = file.readline().rstrip("\r\n")
    if not password:
        raise click.ClickException("expected a password, but it is empty")
    return str(password)

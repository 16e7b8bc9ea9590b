"""Command `credentials`: the API keys of language models. No key is ever printed."""

import sys

import click

from hivepipe.cli.parameters import Choice
from hivepipe.cli.tables import Column, json_option, show_entries
from hivepipe.cli.terminal import ask, say, say_prose, short
from hivepipe.errors import CredentialsError
from hivepipe.settings import environment
from hivepipe.summaries.providers import (
    CODEX,
    KEPT,
    LIMIT_BYTES,
    credentials_path,
    find_offer,
    read_commands,
    read_credentials,
    write_credential,
)


@click.group()
def credentials() -> None:
    """Store, list and remove the API keys for summaries and embeddings."""


@credentials.command(name="set")
@click.argument("name", type=Choice(KEPT))
@click.option("--from-environment", is_flag=True, help="Read the key from the variable NAME.")
@click.option("--command", metavar="COMMAND", help="Run this for each call to print the key.")
def set_credential(name: str, from_environment: bool, command: str | None) -> None:
    """Store a key for the stack.

    The key is read from a prompt or from stdin, never from an argument.
    """
    if command is not None:
        if from_environment:
            raise click.UsageError("--command and --from-environment exclude each other")
        write_credential(name, command.strip(), by_command=True)
        say_prose(f"the command is stored, not tested: the next call runs it to read {name}", 2)
        return
    if from_environment:
        secret = environment(name) or ""
        if not secret:
            raise CredentialsError(f"{name} is not set in this environment")
    elif sys.stdin.isatty():
        secret = ask(name, hide_input=True)
    else:
        secret = sys.stdin.read(LIMIT_BYTES)
    write_credential(name, secret.strip())
    say_prose(
        f"{name} is stored in {short(str(credentials_path()))} (0600); the next call uses it", 2
    )


@credentials.command()
@click.argument("name", type=Choice(KEPT))
def remove(name: str) -> None:
    """Remove a key."""
    write_credential(name, None)
    say(f"{name} is removed")


@credentials.command(name="list")
@json_option
def list_credentials() -> None:
    """List the keys in order of precedence, and where each is set."""
    stored, commands = read_credentials(), read_commands()
    used = find_offer(with_environment=False)
    others = [used.name] if used and used.name not in KEPT else []  # such as Codex's login
    entries = [
        {
            "name": name,
            "file": name in stored or name == CODEX,
            "command": name in commands,
            "environment": name in KEPT and environment(name) is not None,
            "used": used is not None and used.name == name,
        }
        for name in (*KEPT, *others)
    ]
    columns: dict[str, Column] = {
        "name": "name",
        "file": lambda key: "stored" if key["file"] else "command" if key["command"] else "",
        "this shell": lambda key: "set" if key["environment"] else "",
        "by the stack": lambda key: "used" if key["used"] else "",
    }
    if not show_entries("credentials", entries, columns):
        path = short(str(credentials_path()))
        say_prose(f"The stack reads {path}, not the environment of a shell.", 0)

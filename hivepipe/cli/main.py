"""The command `hivepipe`: its list of commands and its error handling."""

import gc
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import click

from hivepipe.cli.command_table import COMMANDS, GROUPS, OLD_NAMES
from hivepipe.cli.default_home import announcing_home
from hivepipe.cli.examples import with_examples
from hivepipe.cli.terminal import (
    discard_buffered_output,
    flush,
    guard_streams,
    open_missing_streams,
    say,
    say_prose,
)
from hivepipe.config.config_file import compile_for_hooks, load_and_use
from hivepipe.errors import (
    INSTALL_AGAIN,
    NO_MEMORY,
    HivepipeError,
    SettingsError,
    is_out_of_memory,
)
from hivepipe.files.file_size import raise_limit, with_limit_if_hit
from hivepipe.home import locate, state_folder, user_folder
from hivepipe.redact.files_of_rules import use_rules_when_needed
from hivepipe.stack.root_user import refuse_root
from hivepipe.text.visible import printable

# Claude Code reads exit code 2 as "block" if a hook runs one of our commands.
click.UsageError.exit_code = 64

REPORTING_SETTINGS = ("config", "redact")  # commands that print problems of config.toml themselves

# Commands that write files for other users, or start the user's programs.
WITH_THE_USERS_UMASK = ("demo", "hive", "init", "team", "uninstall", "web")

OF_NO_HOME = ("completion", "demo", "redact")

FULL_BYTES = 1_000_000


class _Commands(click.Group):
    """Commands that are imported on first use. A HivepipeError prints one line and exits with 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command by its name or an old name."""
        cmd_name = OLD_NAMES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        module = _imported(f"hivepipe.cli.{COMMANDS[cmd_name].module}")
        found: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return announcing_home(with_examples(found, cmd_name), cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command. For a mistyped name, suggest similar names."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:  # click has searched only the imported commands
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            rows = [(f"{name:<{width}}", entry.summary) for name, entry in group.items()]
            with formatter.section(title):
                formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except HivepipeError as error:
            message = str(error)
        except click.exceptions.NoArgsIsHelpError:
            raise  # click's message is the help
        except click.ClickException as error:  # the message may quote control characters
            error.message = printable(error.message)  # type: ignore[misc]
            raise
        except UnicodeError as error:
            message = f"not UTF-8: {error}"
        except BrokenPipeError:
            raise  # click handles it
        except OSError as error:
            message = _reason(error)
            _drop_what_cannot_be_written()
        except (MemoryError, ImportError) as error:
            message = _why_not_loaded(error)
            if not message:
                raise
        say_prose(f"hivepipe: {with_limit_if_hit(message)}", 2, err=True)
        return ctx.exit(1)

    def main(self, *words: Any, **options: Any) -> Any:
        """Run a command line with stdout and stderr guarded against control characters."""
        open_missing_streams()
        guard_streams()
        try:
            return super().main(*words, **options)
        finally:
            _write_what_waits()


def _imported(name: str) -> ModuleType:
    """Import a module with garbage collection off, which saves a fifth of the import time."""
    if name in sys.modules:
        return import_module(name)
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()  # modules stay for the life of the process
        gc.enable()


def _reason(error: OSError) -> str:
    """Return the error text with its file name.

    The error of a write has no file name. If a disk with a folder of hivepipe is full, the text
    names this folder.
    """
    if error.filename:
        reason = f"{error.filename}: {error.strerror}"
        is_inside = f"{error.filename}/".startswith(f"{user_folder()}/")
        is_closed = is_inside and not os.access(user_folder(), os.X_OK)
        return f"{reason}; set HOME to a folder of your own" if is_closed else reason
    from hivepipe.files.disk_room import FULL, has_less  # noqa: PLC0415  of a fault only

    if error.errno in FULL:  # the error of a write has no file name
        for folder in (locate(".").home, state_folder()):
            if has_less(folder, FULL_BYTES):
                return f"the disk of {folder} is full"
    return str(error)


def _why_not_loaded(error: MemoryError | ImportError) -> str:
    """Return why an import failed, or "" for a bug of hivepipe, whose traceback Python prints."""
    if is_out_of_memory(error):
        return NO_MEMORY
    missing = (isinstance(error, ModuleNotFoundError) and error.name) or ""
    if not missing or missing.partition(".")[0] == "hivepipe":
        return ""
    # The upgrade did not install the packages of its lock.
    return f"{missing} is missing: {INSTALL_AGAIN}"


def _refuse_deleted_folder() -> None:
    """Refuse to run in a current folder that was deleted, even if its path exists again."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise HivepipeError(
            "the current folder was deleted: go to the project with `cd`, even to the same path"
        ) from None


def _write_what_waits() -> None:
    """Flush stdout. If that fails, exit with 1, and print the error unless the pipe is closed."""
    try:
        flush()
    except OSError as error:
        discard_buffered_output()
        if not isinstance(error, BrokenPipeError):
            say(f"hivepipe: {error}", err=True)
        sys.exit(1)


def _drop_what_cannot_be_written() -> None:
    """Flush stdout or drop its buffer, because a failed flush at exit prints a traceback."""
    try:
        flush()
    except OSError:
        discard_buffered_output()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="hivepipe")
def main() -> None:
    """Run the background pipeline behind Claude Code hooks.

    `hivepipe COMMAND -h` explains a command and shows an example.
    """
    command = click.get_current_context().invoked_subcommand
    raise_limit()
    before = os.umask(0o077)
    if command in WITH_THE_USERS_UMASK:
        os.umask(before & 0o077)  # the owner's bits are never masked: hivepipe reads its own files
    if command not in OF_NO_HOME:
        _refuse_deleted_folder()
    _, found = load_and_use()
    if command not in OF_NO_HOME:
        refuse_root(found.home)
    if command not in REPORTING_SETTINGS:
        # `Config` and the rules report an unreadable file in the same words, printed once.
        of_rules = use_rules_when_needed(found.home)
        for problem in filter(None, dict.fromkeys((*found.problems, of_rules))):
            say(f"hivepipe: {problem}; ignored", err=True)
    try:
        compile_for_hooks(found)
    except SettingsError as error:
        say(f"hivepipe: {error}", err=True)
    except OSError as error:
        reason = f"cannot write the hooks' settings of {found.home}: {error.strerror}"
        say(f"hivepipe: {reason}", err=True)


def commands() -> Mapping[str, click.Command]:
    """Import all commands; return name -> command."""
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


if __name__ == "__main__":
    main(prog_name="hivepipe")

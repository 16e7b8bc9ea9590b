"""Command `move-home`: moves a project's data out of its work tree, or into it."""

import os

import click

from hivepipe.cli.terminal import say_prose, short
from hivepipe.errors import TreeError
from hivepipe.home import (
    absolute,
    is_in_project,
    locate,
    main_checkout,
    project_of,
    read_record,
    real_path,
    tree_of,
)
from hivepipe.install.move_home import adopt_old_home
from hivepipe.install.move_home import move_home as move
from hivepipe.migration import record as records
from hivepipe.settings import variable
from hivepipe.stack import registration
from hivepipe.stack.runtime_folder import Stack


@click.command()
@click.option(
    "--in-tree", is_flag=True, help="Move the data into the project: .hive-mind and .claude-state."
)
@click.option(
    "--from",
    "old",
    metavar="FOLDER",
    help="Use the home that this project had in FOLDER.",
)
def move_home(in_tree: bool, old: str | None) -> None:
    """Move the recorded data out of the project's work tree, where git can delete it.

    The stack is stopped during the move; events wait on disk.
    """
    if old and in_tree:
        raise click.UsageError("--in-tree and --from exclude each other")
    if old:
        above, name = os.path.split(os.path.abspath(absolute(old)))
        # The last part is not resolved, because a link to the new place may have this path.
        old = os.path.join(os.path.realpath(above), name)
        project = main_checkout(real_path("."))
        home = adopt_old_home(project, old)
        records.follow_rename(old, project)
        say_prose(f"home     {short(home)} is now the home of this project")
        return
    place = locate(".")
    if not read_record(place.project):
        raise registration.unregistered(place.project)
    if project_of(place.home) != place.project or variable("HIVEPIPE_DB"):
        raise TreeError(
            f"{place.home} is not the home of this project alone, or HIVEPIPE_DB is set"
        )
    wanted = place.project if in_tree else ""
    if tree_of(place.home) == wanted and not is_in_project(place.home):
        say_prose(f"nothing to do: the data is in {short(wanted or place.home)}", 2)
        return
    move_and_show(place.project, Stack.of(place), wanted)


def move_and_show(project: str, stack: Stack, tree: str) -> None:
    """Move the data of a home; print its new folder and the files that stay."""
    left = move(project, stack, tree)
    say_prose(f"moved    database, archives and exports to {short(tree or locate(project).home)}")
    for path in left:
        say_prose(f"left     {short(path)}: it was not written by hivepipe, or was changed since")

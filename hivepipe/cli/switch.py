"""Commands `off` and `on`: whether this project is recorded at all."""

import click

from hivepipe.cli.terminal import say
from hivepipe.home import locate, read_record
from hivepipe.install import users_folder
from hivepipe.stack import registration


@click.command()
def off() -> None:
    """Record nothing of this project from now on, in any session, until `on`."""
    project = locate(".").project
    users_folder.make()
    registration.switch_off(project)
    say(f"off: hooks do nothing in {project} (`hivepipe on` takes it back)")
    say("what was recorded before stays; `hivepipe uninstall --purge` deletes it")


@click.command()
def on() -> None:
    """Record this project again."""
    project = locate(".").project
    if read_record(project).get("state") != "off":
        say(f"{project} is not switched off: nothing to do")
        return
    registration.switch_on(project)
    users_folder.tidy()
    say(f"on: hooks record {project} again")

"""Commands `off` and `on`: stop and resume the recording of a project."""

import click

from hivepipe.cli.terminal import say, short
from hivepipe.home import locate, read_record
from hivepipe.install import users_folder
from hivepipe.stack import registration


@click.command()
def off() -> None:
    """Stop recording this project, in all sessions, until `on`."""
    project = locate(".").project
    users_folder.make()
    registration.switch_off(project)
    say(f"off: hooks do nothing in {short(project)} (`hivepipe on` resumes)")
    say("recorded data stays; `hivepipe uninstall --purge` deletes it")


@click.command()
def on() -> None:
    """Resume recording this project."""
    project = locate(".").project
    if read_record(project).get("state") != "off":
        say(f"{short(project)} is not switched off: nothing to do")
        return
    registration.switch_on(project)
    users_folder.tidy()
    say(f"on: hooks record {short(project)} again")

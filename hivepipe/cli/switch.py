"""Commands `off` and `on`: whether this project is recorded at all."""

import click

from hivepipe.home import locate, read_record
from hivepipe.install import users_folder
from hivepipe.stack import registration


@click.command()
def off() -> None:
    """Record nothing of this project from now on, in any session, until `on`."""
    project = locate(".").project
    users_folder.make()
    registration.switch_off(project)
    click.echo(f"off: hooks do nothing in {project} (`hivepipe on` takes it back)")
    click.echo("what was recorded before stays; `hivepipe uninstall --purge` deletes it")


@click.command()
def on() -> None:
    """Record this project again."""
    project = locate(".").project
    if read_record(project).get("state") != "off":
        click.echo(f"{project} is not switched off: nothing to do")
        return
    registration.switch_on(project)
    users_folder.tidy()
    click.echo(f"on: hooks record {project} again")

"""The command `hivepipe`: the list of its commands, and how it fails."""

from typing import Any

import click

from hivepipe.cli import agents, install, sessions, stack
from hivepipe.cli.archive import archive
from hivepipe.cli.cleanup import cleanup
from hivepipe.cli.config import config
from hivepipe.cli.context import context
from hivepipe.cli.costs import costs
from hivepipe.cli.credentials import credentials
from hivepipe.cli.dashboard import dashboard
from hivepipe.cli.demo.command import demo
from hivepipe.cli.disk import disk
from hivepipe.cli.doctor import doctor
from hivepipe.cli.drain import drain
from hivepipe.cli.export import export
from hivepipe.cli.failed import failed
from hivepipe.cli.forget import forget
from hivepipe.cli.guard import guard
from hivepipe.cli.hive.commands import hive
from hivepipe.cli.logs import logs
from hivepipe.cli.redact import redact
from hivepipe.cli.rq import rq
from hivepipe.cli.search import search
from hivepipe.cli.skills import skills
from hivepipe.cli.stacks import stacks
from hivepipe.cli.status import status
from hivepipe.cli.summaries import summaries
from hivepipe.cli.switch import off, on
from hivepipe.cli.task import task
from hivepipe.cli.what import what
from hivepipe.config import compile_for_hooks, here
from hivepipe.errors import HivepipeError
from hivepipe.redaction_config import use_rules

# Exit code 2 means "block" to Claude Code, should a hook ever run a command of ours.
click.UsageError.exit_code = 64

SAYING_IT_THEMSELVES = ("config", "redact")  # what is wrong in a config.toml


class _Commands(click.Group):
    """A group that shows an error of ours as one line and exits with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except HivepipeError as error:
            click.echo(f"hivepipe: {error}", err=True)
            ctx.exit(1)


@click.group(cls=_Commands)
@click.version_option(package_name="hivepipe")
def main() -> None:
    """Run the background pipeline behind Claude Code hooks."""
    _, found = here()
    if click.get_current_context().invoked_subcommand not in SAYING_IT_THEMSELVES:
        for problem in filter(None, (*found.problems, use_rules(found.home))):
            click.echo(f"hivepipe: {problem}; left out", err=True)
    try:
        compile_for_hooks(found)
    except OSError as error:
        click.echo(f"hivepipe: the hooks are not told of {found.home}: {error.strerror}", err=True)


main.add_command(install.init)
main.add_command(install.uninstall)
main.add_command(what)
main.add_command(off)
main.add_command(on)
main.add_command(config)
main.add_command(stack.up)
main.add_command(stack.down)
main.add_command(stack.restart)
main.add_command(status)
main.add_command(dashboard)
main.add_command(doctor)
main.add_command(stacks)
main.add_command(logs)
main.add_command(stack.url)
main.add_command(stack.root)
main.add_command(sessions.sessions)
main.add_command(sessions.session)
main.add_command(agents.agents)
main.add_command(agents.agent)
main.add_command(skills)
main.add_command(costs)
main.add_command(redact)
main.add_command(archive)
main.add_command(search)
main.add_command(disk)
main.add_command(export)
main.add_command(summaries)
main.add_command(credentials)
main.add_command(forget)
main.add_command(failed)
main.add_command(task)
main.add_command(guard)
main.add_command(context)
main.add_command(hive)
main.add_command(rq)
main.add_command(drain)
main.add_command(cleanup)
main.add_command(demo)

if __name__ == "__main__":
    main(prog_name="hivepipe")

"""Command `team`: many machines, one PostgreSQL."""

import click

from hivepipe.cli.team import administration, archives, audit, member, page, retention


@click.group()
def team() -> None:
    """Share the recorded work of many machines in one PostgreSQL."""


for command in (
    administration.init,
    administration.invite,
    member.join,
    member.leave,
    member.status,
    member.policy,
    archives.store,
    archives.archive_key,
    retention.retention,
    audit.audit,
    page.page_login,
    page.page,
    administration.members,
    administration.revoke,
    administration.forget,
    administration.export,
):
    team.add_command(command)

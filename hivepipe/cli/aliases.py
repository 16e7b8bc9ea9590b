"""A command group that accepts the old names of renamed commands."""

import click


class GroupWithAliases(click.Group):
    """A group with `aliases`: old name -> name. The help does not list old names."""

    aliases: dict[str, str] = {}  # noqa: RUF012  each group sets its own

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command by its name or an old one."""
        return super().get_command(ctx, self.aliases.get(cmd_name, cmd_name))

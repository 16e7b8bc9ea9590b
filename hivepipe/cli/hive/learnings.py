"""Command `hive learnings`: the notes of workers for later workers."""

import click

from hivepipe.cli.hive.here import here_hive
from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.terminal import say, say_text
from hivepipe.errors import HiveError
from hivepipe.orchestrator.plain_file import read_end
from hivepipe.redact import redact_text

_LARGEST_BYTES = 1 << 20


@click.command()
@click.argument("project", default="")
@json_option
def learnings(project: str) -> None:
    """Show patterns.md and the insights of every project, or of one."""
    folder = here_hive().learnings_folder
    names = {path.name: path for path in sorted(folder.glob("*.md"))}
    wanted = ["patterns.md", *(name for name in names if name != "patterns.md")]
    if project:
        wanted = ["patterns.md", f"{project}-insights.md"]
        if wanted[1] not in names:
            known = [name.removesuffix("-insights.md") for name in names if name != "patterns.md"]
            others = ", ".join(known) or "none"
            raise HiveError(
                f"there are no insights of {project!r}; projects with insights: {others}"
            )
    texts = {
        name: redact_text(read_end(names[name], _LARGEST_BYTES)).strip()
        for name in wanted
        if name in names
    }
    if show_json(learnings=texts):
        return
    for name, text in texts.items():
        say(f"--- {name}")
        say_text(text)
        say()

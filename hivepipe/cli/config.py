"""Command `config`: every setting with its value and source."""

import os
import sys

import click

from hivepipe.cli.tables import json_option, show_json, show_table
from hivepipe.cli.terminal import say
from hivepipe.config.asking import in_a_line, waiting
from hivepipe.config.config_file import Config
from hivepipe.config.retention import fault
from hivepipe.config.setting_table import files
from hivepipe.home import locate
from hivepipe.redact.configured import use_rules


@click.command()
@json_option
def config() -> None:
    """Show every setting and its source; check the files and compile them for the hooks.

    Exits with 1 if a file has a problem.
    """
    place = locate(".")
    home = place.home
    found = Config(home, place.project)
    # Three readers report the same unreadable file; its text is shown once.
    problems = [*filter(None, dict.fromkeys((*found.problems, use_rules(home), fault(home))))]
    asking = waiting(home, place.project)
    rows = [*found.values()]
    values = [{"name": name, "value": value, "source": source} for name, value, source in rows]
    if not show_json(
        home=home,
        files=list(files(home)),
        values=values,
        problems=problems,
        asking=[file.name for file in asking],
    ):
        show_table(("setting", "value", "from"), rows)
        for path in files(home):
            say(f"{'read' if os.path.exists(path) else 'none'}  {path}")
        if asking:
            say(f"asks  {in_a_line(asking)}: see hivepipe trust")
    for problem in problems:
        say(f"hivepipe: {problem}", err=True)
    sys.exit(1 if problems else 0)

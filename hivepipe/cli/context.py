"""Command `context`: the text that hivepipe adds to a session or a prompt."""

import click

from hivepipe.cli.here import own_profile, own_swarm
from hivepipe.cli.parameters import Choice
from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.terminal import say, say_text
from hivepipe.config.config_file import Config
from hivepipe.db.location import database_path
from hivepipe.guard.client import task_of
from hivepipe.home import locate
from hivepipe.hook.greeting import MOST_CHARS, briefing
from hivepipe.hook.keywords import keyword_texts
from hivepipe.hook.recall import as_text, matching
from hivepipe.operations.briefing_files import BriefingFiles

_SOURCES = ("startup", "resume", "clear", "compact", "fork")


@click.command()
@click.option(
    "--source",
    type=Choice(_SOURCES),
    default="startup",
    show_default=True,
    help="How the session starts.",
)
@click.option("--session", metavar="ID", default="", help="Full id of the session.")
@click.option("--task", metavar="ID", default="", help="Id of the session's task.")
@click.option("--profile", metavar="ID", default="", help="Id of the session's profile.")
@click.option("--prompt", default="", help="Instead, show the text that is added to this prompt.")
@json_option
def context(source: str, session: str, task: str, profile: str, prompt: str) -> None:
    """Show the text that Claude is given at the start of a session here, or with a prompt."""
    place = locate(".")
    if prompt:
        found = matching(place.home, own_swarm(place), profile or own_profile(), prompt)
        rules = Config(place.home, place.project).all_keyword_rules()
        texts = [keyword_texts(rules, prompt), as_text(found)]
        text = "\n\n".join(part for part in texts if part)
    else:
        BriefingFiles(place.home).write(database_path(place.home))
        task = task or task_of(place.home, session)
        profile = profile or own_profile()
        text = briefing(place, source, session, own_swarm(place), task, profile)
    if show_json(characters=len(text), text=text):
        return
    if text:
        say_text(text)
        say(err=True)
        say(f"{len(text):,} of at most {MOST_CHARS:,} characters", err=True)
    else:
        say("nothing", err=True)

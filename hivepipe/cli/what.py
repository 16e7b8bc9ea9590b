"""Command `what`: what is recorded here, where, what leaves the machine, how to delete it."""

from pathlib import Path

import click

from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.terminal import say, say_prose, short
from hivepipe.config.asking import in_a_line, waiting
from hivepipe.db.listings import Listings, read_store
from hivepipe.doctor.facts import Facts
from hivepipe.home import Place, kept_folder, locate, tree_of
from hivepipe.install.data import Data, data_of
from hivepipe.queue import endpoint
from hivepipe.settings import switched_on, variable
from hivepipe.stack.runtime_folder import Stack
from hivepipe.summaries.consent import is_enabled
from hivepipe.team import membership
from hivepipe.text.sizes import size

# Table -> its name on the screen and its content. A test compares this with the schema.
KEPT = {
    "sessions": ("sessions", "id, folder, model, title, transcript path, times"),
    "prompts": ("prompts", "the first 2,000 characters"),
    "agents": ("subagents", "type, model, 100 characters of description, tokens"),
    "skill_uses": ("skills, commands", "name, 200 characters of arguments"),
    "imported_skill_sessions": ("imported skills", "which sessions used a skill"),
    "session_logs": ("log lines", "which tool on which file; the kind of an API error"),
    "usage": ("messages", "model and number of tokens"),
    "summaries": ("summaries", "what was done, learned, left open; files"),
    "retrievals": ("memories used", "name and text of memories added to a session"),
    "hive_statuses": ("hive workers", "project, cost, times; their messages in status.json"),
    "tasks": ("tasks", "what you gave with `hivepipe task`"),
    "identity_versions": ("profiles", "every version of a profile's own files"),
    "instances": ("processes", "pid, host and times of each Claude Code"),
}
TRANSCRIPTS = ("transcripts", "what you, Claude and the tools said, redacted")
_SECRETS = "keys, tokens and passwords are replaced; try it with `hivepipe redact FILE`"

_CONTROL = (
    "`hivepipe off` pauses; `hivepipe forget ID` or `hivepipe uninstall --purge` deletes data"
)


@click.command()
@json_option
def what() -> None:
    """Show what is recorded, where, what leaves the machine, and how to delete it."""
    place = locate(".")
    counts = read_store(place.home, Listings.counts, {})
    data = data_of(place)
    facts = Facts(place, Stack.of(place))
    hooks = facts.who_runs_hooks
    asking = waiting(place.home, place.project)
    transcripts, leaves = _transcripts(place), _leaves(place)
    if show_json(
        project=place.project,
        state=place.state,
        hooks=hooks,
        kept={**{name: counts.get(name) for name in KEPT}, "transcripts": transcripts},
        data=[{"path": entry.path, "bytes": entry.size_bytes} for entry in data],
        leaves=leaves,
        asking=[file.name for file in asking],
    ):
        return
    say_prose(f"{short(place.project)} {_state(place, facts)}", 2)
    say()
    say(f"stored            {'so far':>9}")
    rows = [(*row, counts.get(table, 0)) for table, row in KEPT.items()]
    for name, kept, count in [*rows, (*TRANSCRIPTS, transcripts)]:
        say_prose(f"  {name:<16}{count:>9,}  {kept}", 29)
    say_prose(f"secrets    {_SECRETS}", 11)
    _show_places(place, data, hooks)
    say_prose(f"sent       {leaves}", 11)
    if asking:
        text = f"{in_a_line(asking)}: no effect until you run `hivepipe trust`"
        say_prose(f"asks       {text}", 11)
    say_prose(f"control    {_CONTROL}", 11)


def _transcripts(place: Place) -> int:
    """Return the number of archived transcripts."""
    folder = Path(kept_folder(place.home))
    kinds = ("main-session", "subagent")
    return sum(1 for kind in kinds for _ in folder.glob(f"{kind}/**/*.jsonl*"))


def _state(place: Place, facts: Facts) -> str:
    if place.state == "off":
        return "is not recorded, because `hivepipe off` was run here"
    if not facts.who_runs_hooks:
        return "is not recorded, because no hook is registered: run `hivepipe init`"
    if facts.is_out_of_reach:
        return "is not recorded: sessions that start here run no hooks (see `hivepipe doctor`)"
    if not (place.python or facts.is_alive):
        return "is kept on disk only, until `hivepipe init` registers the project"
    if place.state == "down":
        return "is recorded on disk only, because the stack is stopped"
    return "is recorded"


def _show_places(place: Place, data: list[Data], hooks: list[str]) -> None:
    shown = [entry for entry in data if not entry.path.endswith("/.gitignore")]
    lines = [f"{short(entry.path)}  {size(entry.size_bytes)}" for entry in shown]
    lines = lines or [f"{short(place.home)}, which does not exist yet"]
    is_ignored = bool(tree_of(place.home))
    ignored = "; git ignores them" if is_ignored else ""
    lines.append(f"only you can read these files (modes 0700 and 0600){ignored}")
    for number, line in enumerate(lines):
        say_prose(f"{'' if number else 'folders':<10} {line}", 11)
    for path in hooks:
        say(f"hooks      {short(path)}")


def _leaves(place: Place) -> str:
    """Return a sentence about the data that leaves the machine if the user allowed it."""
    named = []
    if not place.socket.startswith("/") and not endpoint.is_local(place.socket):
        named.append(f"jobs are sent to the Redis that you named ({endpoint.shown(place.socket)})")
    if membership.is_joined():
        named.append("redacted rows are sent to the team that you joined")
    if variable("HIVEPIPE_ALERT_WEBHOOK"):
        named.append("alerts, without texts of sessions, are sent to the webhook that you named")
    if is_enabled(place.home, with_environment=False):
        named.append("redacted ends of transcripts are sent to the provider of summaries")
    if variable("HIVEPIPE_EMBEDDINGS_URL"):
        named.append("redacted memory files are sent to the embeddings endpoint that you named")
    if variable("HIVEPIPE_MEMORY_SERVER") and switched_on("HIVEPIPE_MEMORY_RATING"):
        named.append("names and ratings of memories are sent to the memory server that you named")
    if not named:
        return "nothing is sent: there is no telemetry and no network call"
    return f"{'; '.join(named)}; there is no telemetry"

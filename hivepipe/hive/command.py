"""How a worker's Claude Code is started: its command line and its environment.

The environment is built from a list (hivepipe.settings.inherited): no credentials but those that
the user's settings name, nothing of Claude Code's own (one that finds CLAUDECODE refuses to run),
and no HIVEPIPE_NESTED: a worker is an ordinary session, and its hooks run.
"""

import json
import os
from pathlib import Path

from hivepipe.errors import HiveError, SettingsError
from hivepipe.hive import prompts
from hivepipe.hive.folder import Hive
from hivepipe.hive.rights import rights_of
from hivepipe.hive.worker import Card, Worker
from hivepipe.home import absolute, locate, real_path, short_hash, user_folder, write_small
from hivepipe.install import claude_code, settings_text
from hivepipe.install.claude_code import Scope
from hivepipe.install.hook_entries import events_of, form_for
from hivepipe.install.installation import entries_of
from hivepipe.programs import find_program
from hivepipe.regular_file import read_text
from hivepipe.settings import inherited, variable
from hivepipe.stack import hook_copy


def claude() -> str:
    """Return the path of the `claude` to run; HiveError: there is none."""
    named = variable("HIVEPIPE_CLAUDE") or "claude"
    found = find_program(absolute(named) if "/" in named else named)
    if found is None:
        raise HiveError(
            f"there is no {named} to run: install Claude Code, or set `claude` in your config.toml"
        )
    return found


def command_line(worker: Worker, card: Card, learnings: Path, *, resume: bool) -> list[str]:
    """Return the command of a run; what it is told comes on stdin, where `ps` does not show it.

    Without asking it may write in its project, its folder and the learnings, as it is told to.

    A resumed session has none of its flags any more: they are given again.
    """
    which = "--resume" if resume else "--session-id"
    settings = worker.state / "settings.json"
    return [
        claude(),
        "-p",
        which,
        card.session,
        "--output-format",
        "stream-json",
        "--verbose",
        "--add-dir",
        str(worker.folder),
        str(learnings),
        *(["--settings", str(settings)] if settings.exists() else []),
        *card.flags,
    ]


def bring_hooks(worker: Worker, project: str) -> None:
    """Let the worker's session have our hooks, where no settings file that it reads has them."""
    path = worker.state / "settings.json"
    if any(map(_has_our_hooks, _settings_paths(project))):
        path.unlink(missing_ok=True)
        return
    hook_copy.refresh()
    entries = entries_of(events_of(claude_code.version()), form_for(hook_copy.launcher()))
    hooks = {event: [entry] for event, entry in entries.items()}
    write_small(str(path), json.dumps({"hooks": hooks}, indent=2) + "\n")


def _settings_paths(project: str) -> list[str]:
    own = [claude_code.settings_path(scope, project) for scope in (Scope.LOCAL, Scope.PROJECT)]
    folder = _named().get("CLAUDE_CONFIG_DIR") or f"{user_folder()}/.claude"
    return [*own, f"{folder}/settings.json"]


def _has_our_hooks(path: str) -> bool:
    try:
        return bool(settings_text.entries(read_text(path, "utf-8-sig")))
    except (OSError, UnicodeDecodeError, SettingsError):
        return False


def _named() -> dict[str, str]:
    """Return the variables that the user's settings let a worker have."""
    return {name: variable(name) or "" for name in (variable("HIVEPIPE_HIVE_ENV") or "").split()}


def unset_variables() -> list[str]:
    """Return what `hive_env` names and this process does not have: a worker would lack it."""
    return [name for name, value in _named().items() if not value]


def environment(hive: Hive, worker: Worker, card: Card) -> dict[bytes, bytes]:
    """Return the environment of a worker; it reports to the orchestrator's home."""
    project = real_path(str(hive.root.parent))
    own = {
        "HIVEPIPE_HOME": hive.home,
        "HIVEPIPE_WORKER_ID": worker.id,
        "HIVEPIPE_TASK_ID": card.task_id,
        "HIVEPIPE_AGENT_ID": card.profile,
        "HIVEPIPE_SWARM_ID": variable("HIVEPIPE_SWARM_ID")
        or f"swarm-{short_hash(locate(project).project)}",
    }
    both = {**_named(), **own}
    made = {os.fsencode(name): os.fsencode(value) for name, value in both.items() if value}
    return {**inherited(), **made}


def words(hive: Hive, worker: Worker, card: Card) -> dict[str, str]:
    """Return what the templates of prompts may name; every path is absolute."""
    named = {
        "worker_id": worker.id,
        "worker_folder": str(worker.folder),
        "learnings_folder": str(hive.learnings_folder),
        "project": card.project,
        "project_path": card.path,
        "task": worker.task().strip(),
    }
    return {**named, **prompts.of_rights(rights_of(card.flags), named)}

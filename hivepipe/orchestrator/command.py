"""The command line and the environment of a worker's Claude Code.

The environment is built from an allow list (hivepipe.settings.inherited). The environment contains
no credentials except the ones named in the user's settings. The environment contains no variables
of Claude Code, which refuses to run if CLAUDECODE is set. HIVEPIPE_NESTED is not set, because a
worker is an ordinary session whose hooks run.
"""

import json
import os
from pathlib import Path

from hivepipe.errors import HiveError
from hivepipe.home import absolute, locate, real_path, short_hash, user_folder, write_small
from hivepipe.install import claude_code, settings_text
from hivepipe.install.claude_code import Scope
from hivepipe.install.hook_entries import entries_of, events_of, form_for
from hivepipe.orchestrator import prompts
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.rights import rights_of
from hivepipe.orchestrator.worker import Card, Worker
from hivepipe.programs import find_program
from hivepipe.settings import inherited, variable
from hivepipe.stack import hook_copy


def claude() -> str:
    """Return the path of the `claude` program, or raise HiveError if it is not installed."""
    named = variable("HIVEPIPE_CLAUDE") or "claude"
    found = find_program(absolute(named) if "/" in named else named)
    if found is None:
        raise HiveError(
            f"there is no {named} to run: install Claude Code, or set `claude` in your config.toml"
        )
    return found


def command_line(worker: Worker, card: Card, learnings: Path, *, resume: bool) -> list[str]:
    """Return the command of a run.

    The prompt is passed on stdin, so that `ps` does not show it. The worker may write to its
    project, its folder and the learnings folder without asking. Claude Code does not keep the flags
    of a resumed session, so they are passed again. Raise HiveError if `claude` is not installed.
    """
    which = "--resume" if resume else "--session-id"
    settings = worker.state / "settings.json"
    return [
        *(claude(), "-p", which, card.session),
        *("--output-format", "stream-json", "--verbose"),
        *("--add-dir", str(worker.folder), str(learnings)),
        *(["--settings", str(settings)] if settings.exists() else []),
        *card.flags,
    ]


def write_hooks(worker: Worker, project: str) -> None:
    """Write a settings file with hivepipe's hooks, unless the session already reads such a file."""
    path = worker.state / "settings.json"
    if any(map(settings_text.file_has_entries, _settings_paths(project))):
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


def _named() -> dict[str, str]:
    """Return the variables that the setting `hive_env` passes to workers."""
    return {name: variable(name) or "" for name in (variable("HIVEPIPE_HIVE_ENV") or "").split()}


def unset_variables() -> list[str]:
    """Return the variables in `hive_env` that are not set in this process."""
    return [name for name, value in _named().items() if not value]


def environment(hive: Hive, worker: Worker, card: Card) -> dict[bytes, bytes]:
    """Return the environment of a worker, whose hooks report to the orchestrator's home."""
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
    """Return the values for the prompt templates. Every path is absolute."""
    named = {
        "worker_id": worker.id,
        "worker_folder": str(worker.folder),
        "learnings_folder": str(hive.learnings_folder),
        "project": card.project,
        "project_path": card.path,
        "task": worker.task().strip(),
    }
    return {**named, **prompts.of_rights(rights_of(card.flags), named)}

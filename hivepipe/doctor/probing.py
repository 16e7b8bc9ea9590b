"""The probe: send an event through every registered hook, and check that it is stored.

Each event has a token, which the hook uses as the id of its only job (hook/probe_event.py). The job
passes through all stages: launcher, hook, Redis or spool, writer, database. The database stores
only its id, in `applied`, and the probe deletes it at the end. So a probe appears in no session or
view. Only Redis' totals of jobs count it.
"""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from hivepipe import direct
from hivepipe.db.database import open_database
from hivepipe.db.listings import read_store
from hivepipe.db.location import database_path
from hivepipe.doctor.facts import Facts, SettingsFile
from hivepipe.doctor.probe_events import probe_event
from hivepipe.errors import HivepipeError
from hivepipe.events.claude_code import PROBE
from hivepipe.files.file_size import with_limit
from hivepipe.files.regular_file import read_bytes, read_text
from hivepipe.home import real_path
from hivepipe.install.claude_code import Scope
from hivepipe.install.known_entries import is_old, launcher_of, old_paths
from hivepipe.programs import end_group
from hivepipe.queue.raw_spool import convert_all
from hivepipe.queue.spooled import waiting_files
from hivepipe.settings import everything, means_no, means_yes, on_ephemeral_machine, variable
from hivepipe.stack import hook_copy, supervisor
from hivepipe.stack.processes import hooks_folder

LONGEST_HOOK_SECS = 10.0
STARTED_SECS = 30.0  # time limit for a stack that a hook starts on a busy machine
APPLIED_SECS = 10.0  # time limit for a stack that runs already
_LOOK_SECS = 0.1
_AT_ONCE = 4
_OF_TOKENS = "WHERE job_id IN (SELECT value FROM json_each(:tokens))"


@dataclass(frozen=True)
class Probe:
    """One hook command, and the result of its event.

    `trouble` says why the event was not recorded, or is "". `answered` means that the hook exited
    without an error. `by_hand` means that the probe applied the spooled event without a stack.
    """

    source: str
    event: str
    handler: dict[str, Any]
    plugin: str
    token: str
    fired: bool = True
    answered: bool = False
    recorded: bool = False
    by_hand: bool = False
    trouble: str = ""

    @property
    def verdict(self) -> str:
        """Return the result of the probe in one to three words."""
        if self.recorded:
            return "recorded"
        if not self.fired:
            return "not fired"
        return "answered, but not recorded" if self.answered else "failed"


def probe(facts: Facts, with_stack: bool) -> list[Probe]:
    """Send an event through each of hivepipe's hooks; return the results.

    With `with_stack`, hooks may start the stack, and the probe waits for it. Otherwise, without a
    running stack, the probe applies the events from the spool.
    """
    common = _common_trouble(facts)
    found = [_checked(each, common) for each in _registered(facts)]
    environment = _environment(facts, with_stack)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda each: _fire(each, environment, folder), found))
    tokens = {each.token for each in found if each.answered}
    home = facts.place.home
    try:
        seen = _wait(facts, tokens, environment)
        by_hand, trouble = _apply(home, tokens - seen)
        trouble = trouble or _reason(facts, environment)
        return [_judged(each, seen, by_hand, trouble) for each in found]
    finally:
        _leave_no_trace(home, tokens)


def _registered(facts: Facts) -> Iterator[Probe]:
    """Yield each of hivepipe's hook commands that Claude Code would run in this folder."""
    for file in facts.with_hooks:
        for event, entry in file.entries:
            yield Probe(file.path, event, entry["hooks"][0], "", token_hex(16))
    plugin = facts.plugin
    if plugin and plugin.is_usable:
        path = f"{plugin.folder}/hooks/hooks.json"
        for event, groups in json.loads(read_text(path))["hooks"].items():
            for group in groups:
                for handler in group["hooks"]:
                    yield Probe(path, event, handler, plugin.folder, token_hex(16))


def _common_trouble(facts: Facts) -> str:
    """Return the reason why no hook of this project would be run, or ""."""
    if facts.place.state == "off":
        return "this project is switched off"
    if supervisor.is_of_another_version(facts.stack):
        return "the running stack has another version: run `hivepipe restart`"
    return ""


def _checked(found: Probe, reason: str) -> Probe:
    """Return the probe of a hook; its `trouble` is set if the hook must not be run.

    A hook of version 1.0.0 would record the event as a session. A hook named by the settings of a
    cloned repository could be a program of that repository.
    """
    launcher = launcher_of(found.handler)
    if not reason and launcher and not hook_copy.is_in_place(launcher):
        reason = f"{launcher} is not a hook program of yours"
    elif not reason and is_old(found.handler) and not _is_of_this_package(found.handler):
        reason = "it belongs to another, older installation"
    elif not reason and found.plugin and not _has_probe(found.plugin):
        reason = "the plugin has an older version"
    return replace(found, fired=not reason, trouble=reason)


def _has_probe(plugin: str) -> bool:
    return Path(plugin, "hivepipe/hook/probe_event.py").is_file()


def _is_of_this_package(handler: dict[str, Any]) -> bool:
    paths = old_paths(handler)
    return not paths or (paths[0], os.path.dirname(paths[-1])) == (
        sys.executable,
        str(hooks_folder()),
    )


def _environment(facts: Facts, with_stack: bool) -> dict[str, str]:
    """Return the environment variables of a hook.

    They come from the shell, from `env` in the settings, and from Claude Code.
    Settings files in the project can set only hivepipe's variables. With other variables, a cloned
    repository could run a program of its own.
    """
    found = everything()
    for file in reversed(facts.by_precedence):
        is_of_project = isinstance(file, SettingsFile) and file.scope is not Scope.USER
        prefix = "HIVEPIPE_" if is_of_project else ""
        found |= {n: value for n, value in file.variables.items() if n.startswith(prefix)}
    found |= {
        "CLAUDE_PROJECT_DIR": real_path("."),
        "CLAUDECODE": "1",
        "CLAUDE_CODE_CHILD_SESSION": "1",
    }
    if not with_stack:
        found["HIVEPIPE_AUTOSTART"] = "0"
    return found


def _fire(found: Probe, environment: dict[str, str], folder: str) -> Probe:
    """Run one hook command; return its result."""
    if not found.fired:
        return found
    session = f"{PROBE}{found.token}"
    own = {"CLAUDE_CODE_SESSION_ID": session, "CLAUDE_ENV_FILE": f"{folder}/{found.token}"}
    if found.plugin:
        own |= {"CLAUDE_PLUGIN_ROOT": found.plugin, "CLAUDE_PLUGIN_DATA": folder}
    command = found.handler["command"]
    words = [command, *found.handler["args"]] if "args" in found.handler else ["sh", "-c", command]
    trouble = _run(words, probe_event(found.event, session), environment | own, found.handler)
    return replace(found, answered=not trouble, trouble=trouble)


def _run(
    words: list[str], event: dict[str, Any], environment: dict[str, str], handler: dict[str, Any]
) -> str:
    """Run a hook detached from the terminal, as Claude Code does; return an error or ""."""
    timeout = handler.get("timeout")
    limit = timeout if isinstance(timeout, (int, float)) else LONGEST_HOOK_SECS
    limit = min(limit, LONGEST_HOOK_SECS)
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
            text=True,
            errors="replace",
        )
    except (OSError, ValueError) as error:
        return f"cannot start {words[0]}: {getattr(error, 'strerror', None) or error}"
    with process:
        try:
            output, errors = process.communicate(json.dumps(event), timeout=limit)
        except subprocess.TimeoutExpired:
            end_group(process)
            return f"no answer within {limit:g} s"
        except OSError as error:  # the hook ended without reading the event
            errors, output = str(error), ""
    return _failure(process.returncode, output, errors)


def _failure(code: int, output: str, errors: str) -> str:
    """Return the error of a hook by its exit code and the last line of its output, or ""."""
    if code == 0:
        return ""
    words = (errors.strip() or output.strip()).splitlines()[-1:]
    return ": ".join([f"exit code {code}", *words])


def _wait(facts: Facts, tokens: set[str], environment: dict[str, str]) -> set[str]:
    """Wait until all tokens are recorded or a time limit is reached; return the recorded tokens."""
    secs = APPLIED_SECS if facts.is_alive else 0.0
    if _may_start_stack(facts, environment):
        secs = STARTED_SECS
    deadline = time.monotonic() + secs
    while True:
        seen = _recorded(facts.place.home, tokens)
        if seen == tokens or time.monotonic() > deadline:
            return seen
        time.sleep(_LOOK_SECS)


def _may_start_stack(facts: Facts, environment: dict[str, str]) -> bool:
    if facts.place.state != "on" or not facts.place.python or _disabled_by(environment):
        return False
    word = environment.get("HIVEPIPE_AUTOSTART") or variable("HIVEPIPE_AUTOSTART") or ""
    return not means_no(word) if word else not on_ephemeral_machine()


def _disabled_by(environment: dict[str, str]) -> str:
    """Return the name of the variable that switches hooks off, or ""."""
    names = ("HIVEPIPE_DISABLED", "HIVEPIPE_NESTED")
    return next((name for name in names if means_yes(environment.get(name, ""))), "")


def _recorded(home: str, tokens: set[str]) -> set[str]:
    sql = f"SELECT job_id FROM applied {_OF_TOKENS}"
    rows = read_store(home, lambda store: store.rows(sql, _bound(tokens)), [])
    return {row["job_id"] for row in rows}


def _bound(tokens: set[str]) -> dict[str, object]:
    return {"tokens": json.dumps(sorted(tokens))}


def _apply(home: str, tokens: set[str]) -> tuple[set[str], str]:
    """Apply the probe's spooled events; return the tokens that are recorded, and an error or ""."""
    convert_all(home)
    waiting = _spooled(home, tokens)
    if not waiting:
        return set(), ""
    try:
        with open_database(home) as db:
            report = direct.apply_files(home, db, waiting)
    except (HivepipeError, OSError, sqlite3.Error) as error:
        reason = with_limit(str(error))
        return set(), f"the event is on disk, but cannot be written to the database: {reason}"
    return _recorded(home, tokens), "; ".join(report.failed.values())


def _spooled(home: str, tokens: set[str]) -> list[Path]:
    """Return the spool files with the probe's jobs."""
    found = []
    for path in reversed(waiting_files(Path(home, "spool"))):
        try:
            text = read_bytes(path)
        except OSError:
            continue
        if any(token.encode() in text for token in tokens):
            found.append(path)
            if len(found) == len(tokens):
                break
    return found


def _reason(facts: Facts, environment: dict[str, str]) -> str:
    """Return the likely reason why an event was neither stored nor spooled."""
    if name := _disabled_by(environment):
        return f"{name} is set: hooks do nothing"
    spool = facts.home / "spool"
    folder = next(path for path in (spool, *spool.parents) if path.exists())
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"{folder} cannot be written"
    message = _logged(facts)
    if message:
        return f"the hook's log says: {message}"
    return f"it is neither in the database of {facts.home} nor on disk there"


def _logged(facts: Facts) -> str:
    """Return the last message in the hooks' log if it is from this probe, else ""."""
    log = Path(facts.place.logs, "hook-errors.log")
    try:
        if log.stat().st_mtime < facts.now:
            return ""
        return read_text(log, errors="replace").splitlines()[-1].rpartition("] ")[2]
    except (OSError, IndexError):
        return ""


def _judged(found: Probe, seen: set[str], by_hand: set[str], trouble: str) -> Probe:
    is_by_hand = found.token in by_hand
    recorded = found.token in seen or is_by_hand
    reason = found.trouble or ("" if recorded else trouble)
    return replace(found, recorded=recorded, by_hand=is_by_hand, trouble=reason)


def _leave_no_trace(home: str, tokens: set[str]) -> None:
    """Delete the probe's rows and spool files; a job that comes later leaves an id in `applied`."""
    for path in _spooled(home, tokens):
        path.unlink(missing_ok=True)
    if not tokens or not database_path(home).exists():
        return
    try:
        with open_database(home) as db, db.transaction():
            db.execute(f"DELETE FROM applied {_OF_TOKENS}", _bound(tokens))
    except (HivepipeError, OSError, sqlite3.Error):
        return

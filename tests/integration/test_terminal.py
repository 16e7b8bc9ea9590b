"""No text in a home can steer the terminal or begin a line of its own in any command's output."""

import json
import os
import pty
import re
import sqlite3
import subprocess
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import click
import pytest

from tests.archive_scene import line
from tests.conftest import CLI, Home, Process, Server, Writer, fire_all, is_drained, until
from tests.hive_scene import DONE, Scene, script
from tests.integration.test_failed import add_failed_job
from tests.payloads import AGENT, ALL, POST_EDIT, SESSION, changed
from tests.unit.test_cli_help import CALLABLE

FORGED = "FORGED"
STEERING = "\x1b[2J\x1b]0;x\x07\x9b31m\x85\x7f\r\b\u202e\u2066\u200b\u200d\ufeff\u2028\u2029\u3164"
HOSTILE = f"{STEERING}\n{FORGED} all is well\n\n\t{FORGED} too"
HOSTILE_NAME = HOSTILE.replace("/", "")[:120]  # part of a file name
TIMES = ("_at", "time", "day", "since", "until")
# Columns with fixed words that hivepipe writes and reads; every other text column is hostile.
FIXED_COLUMNS = {
    ("sessions", "status"),
    ("agents", "status"),
    ("tasks", "status"),
    ("summaries", "kind"),
    ("summaries", "key_learnings"),
    ("summaries", "files"),
    ("summaries", "open_ends"),
}
LISTED: list[list[str]] = [[], ["--json"]]
# Arguments of commands, several if a command prints several forms; of others they are LISTED.
CALLS: dict[str, list[list[str]]] = {
    "agent show": [[AGENT], [AGENT, "--json"], [HOSTILE]],
    "agents": [*LISTED, ["--session", SESSION]],
    "archive follow": [*LISTED, [HOSTILE]],
    "archive list": [["--agents"], ["--json"]],
    "archive show": [[SESSION], [SESSION, "--json"], [SESSION, "--lines"], [AGENT], [HOSTILE]],
    "backup": [["kept.hivepipe"], [f"no/{HOSTILE_NAME}"]],
    "cleanup": [["--dry-run"], []],
    "completion": [["bash"], ["zsh"], ["fish"]],
    "context": [*LISTED, ["--prompt", "the invisible word"], ["--session", SESSION]],
    "costs": [*LISTED, ["--by", "model"], ["--by", "session"], ["--by", "agent"]],
    "credentials remove": [[HOSTILE]],
    "credentials set": [[HOSTILE]],
    "team archive-key": [["--show"]],
    "team export": [[HOSTILE]],
    "team forget": [[HOSTILE, "--yes"]],
    "team init": [[HOSTILE]],
    "team invite": [[HOSTILE]],
    "team join": [[HOSTILE]],
    "team leave": [["--yes"]],
    "team page": [["--port", HOSTILE]],
    "team page-login": [[HOSTILE]],
    "team policy": [*LISTED, [HOSTILE, "metadata"]],
    "team retention": [[], [HOSTILE]],
    "team revoke": [[HOSTILE]],
    "team store": [[], [HOSTILE]],
    "web": [["--port", HOSTILE], ["--bind", HOSTILE]],
    "demo": [[HOSTILE]],
    "export": [["--jsonl"], ["--jsonl", "--session", HOSTILE]],
    "failed discard": [["none" + HOSTILE], ["evil", "--yes"]],
    "failed retry": [["none" + HOSTILE], ["evil"]],
    "failed show": [["evil"], ["evil", "--json"], [HOSTILE]],
    "forget": [[SESSION, "--dry-run"], [SESSION, "--dry-run", "--json"], [HOSTILE]],
    "guard explain": [["loop"], ["loop", "--json"], [HOSTILE]],
    "guard mode": [*LISTED, [HOSTILE]],
    "guard try": [["calls.jsonl"], ["calls.jsonl", "--json"], ["odd.txt"]],
    "hive answer": [[HOSTILE, "x"], ["WORKER", HOSTILE]],
    "hive archive": [[HOSTILE], ["WORKER"]],
    "hive check": [*LISTED, ["WORKER"], ["WORKER", "--json"], [HOSTILE]],
    "hive costs": [*LISTED, ["--by", "project"]],
    "hive delete": [[HOSTILE, "--yes"], ["WORKER"]],
    "hive learnings": [*LISTED, [HOSTILE]],
    "hive monitor": [["--once"]],
    "hive park": [[HOSTILE]],
    "hive projects add": [[HOSTILE, "."], ["odd", HOSTILE_NAME]],
    "hive projects remove": [[HOSTILE]],
    "hive resume": [[HOSTILE, "x"]],
    "hive rights": [[], [HOSTILE]],
    "hive spawn": [[HOSTILE, "x"], ["project-a", ""]],
    "hive transcript": [["WORKER"], ["WORKER", "--json"], [HOSTILE]],
    "import-db": [["old.db", "--dry-run"], ["old.db", "--dry-run", "--json"], ["odd.txt"]],
    "import-queue": [["queue", "--dry-run"], ["queue", "--dry-run", "--json"]],
    "init": [["--dry-run"], ["--local"]],
    "logs": [*LISTED, ["writer"], [HOSTILE]],
    "mcp": [[HOSTILE], []],
    "memory forget": [[HOSTILE], [f"memory/{HOSTILE_NAME}.md"]],
    "memory search": [["invisible"], ["invisible", "--json"], [HOSTILE]],
    "migrate": [["--dry-run"]],
    "profile add": [["p" + HOSTILE], ["ana", "--role", "lead"]],
    "profile history": [["ana"], ["ana", "--json"], [HOSTILE]],
    "profile put": [["ana", "SOUL.md", "odd.txt"], ["ana", "SOUL.md", HOSTILE]],
    "profile remove": [["ana"], [HOSTILE, "--yes"]],
    "profile show": [["ana"], ["ana", "SOUL.md"], ["ana", "--json"], [HOSTILE]],
    "redact": [[HOSTILE]],
    "restart": [[HOSTILE]],
    "restore": [["evil.hivepipe"], [HOSTILE_NAME]],
    "rq": [["--", "info"], ["--", HOSTILE]],
    "search": [["invisible"], ["invisible", "--json"], [HOSTILE]],
    "session log": [[SESSION], [SESSION, "--json"], [HOSTILE]],
    "session show": [[SESSION], [SESSION, "--json"], [HOSTILE]],
    "sessions": [["--all"], ["--all", "--json"], []],
    "skills": [*LISTED, ["--commands"]],
    "summaries enable": [["--yes"]],
    "summaries run": [[SESSION], [SESSION, "--dry-run"], [HOSTILE]],
    "summaries show": [[SESSION], [SESSION, "--json"], [HOSTILE]],
    "tail": [["--once"], ["--once", "--json"], ["--session", HOSTILE]],
    "task add": [[HOSTILE, "--id", "t2"], ["x", "--id", HOSTILE], ["x", "--session", HOSTILE]],
    "task assign": [["t1", HOSTILE]],
    "task cancel": [["t1", "--reason", HOSTILE], [HOSTILE]],
    "task done": [["t1"], [HOSTILE]],
    "task list": [["--all"], ["--all", "--json"]],
    "task progress": [["t1", HOSTILE], [HOSTILE, "x"]],
    "task reopen": [["t1"], [HOSTILE]],
    "task show": [["t1"], ["t1", "--json"], [HOSTILE]],
    "transcript": [[SESSION], [SESSION, "--json"], [HOSTILE]],
    "trust": [*LISTED, [HOSTILE], ["--yes"], ["--remove"]],
    "uninstall": [["--dry-run"], ["--purge"]],
    "up": [["--redis-url", HOSTILE]],
    "move-home": [["--from", HOSTILE]],
}
# Output for people at a terminal, with colours and wrapped lines.
ON_TERMINAL = (
    ["sessions", "--all"],
    ["session", "show", SESSION],
    ["search", "invisible"],
    ["memory", "search", "invisible"],
    ["archive", "show", SESSION],
    ["archive", "show", SESSION, "--lines"],
    ["redact", "odd.txt"],
    ["status"],
)


def test_every_call_is_of_a_command() -> None:
    assert set(CALLS) <= set(CALLABLE)


def test_every_command_with_an_argument_is_among_the_calls() -> None:
    """A call without it would be refused before the command runs."""
    unlisted = [path for path in CALLABLE if path not in CALLS]
    kinds = {path: [*map(type, CALLABLE[path].params)] for path in unlisted}
    assert [path for path in unlisted if click.Argument in kinds[path]] == []


@pytest.fixture
def hostile(
    private_home: Home, new_server: Callable[[Home], Server], writer: Writer, slow_worker: Process
) -> tuple[Scene, str]:
    """A home with every event and a worker, in which every text is then made hostile."""
    scene = Scene(private_home)
    home = private_home
    scene.hivepipe("init", "--local")
    redis_server = new_server(home)
    folder = home.root / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)
    lines = [line(n, f"an invisible word {HOSTILE}", cwd=str(home.project)) for n in range(3)]
    (folder / f"{SESSION}.jsonl").write_bytes(b"".join(lines))
    memory = folder / "memory"
    memory.mkdir()
    (memory / f"{HOSTILE_NAME}.md").write_text(f"# {HOSTILE}\nan invisible word {HOSTILE}")
    writer.start()
    slow_worker.start()
    transcript = str(folder / f"{SESSION}.jsonl")
    fire_all([changed(event, transcript_path=transcript) for event in ALL.values()], home.env)
    until(lambda: is_drained(home, redis_server, writer), "not drained")
    scene.begin()
    worker = scene.spawn(script([DONE]))
    scene.wait_for_state(worker, "done")
    scene.hivepipe("archive", "sweep")
    scene.hivepipe("task", "add", "pay", "--id", "t1")
    soul = home.root / "soul.md"
    soul.write_text("I am Ana. " * 20 + HOSTILE)
    scene.hivepipe("profile", "add", "ana")
    scene.hivepipe("profile", "put", "ana", "SOUL.md", str(soul))
    scene.hivepipe("summaries", "run", SESSION)
    until(lambda: is_drained(home, redis_server, writer), "not drained")
    for process in (slow_worker, writer):
        process.end()
    make_rows_hostile(home.database)
    make_files_hostile(scene, worker)
    add_failed_job(
        redis_server,
        "evil",
        b"\xff",
        description=HOSTILE,
        origin=HOSTILE,
        hp_operation=HOSTILE,
        hp_session=HOSTILE,
        exc_info=HOSTILE,
    )
    with redis_server.client() as client:
        client.zadd("rq:failed:high", {f"odd {HOSTILE}": -1})
        client.sadd("rq:queues", f"rq:queue:{HOSTILE}")
        client.rpush(f"rq:queue:{HOSTILE}", "evil", HOSTILE)
    return scene, worker


def make_rows_hostile(database: Path) -> None:
    """Append hostile text to every text of every table; references between ids still match."""
    with closing(sqlite3.connect(database)) as db:
        found = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in found:
            if table.startswith("sqlite_") or table in ("schema_migrations", "applied"):
                continue
            for _, name, kind, *_ in db.execute(f"PRAGMA table_info({table})").fetchall():
                if "TEXT" not in kind or name.endswith(TIMES) or (table, name) in FIXED_COLUMNS:
                    continue
                try:
                    db.execute(
                        f"UPDATE {table} SET {name} = {name} || ? WHERE {name} IS NOT NULL",
                        (HOSTILE,),
                    )
                except sqlite3.IntegrityError:  # the column has a list of allowed values
                    continue
        listed = json.dumps([HOSTILE])
        db.execute("UPDATE summaries SET key_learnings = ?1, files = ?1, open_ends = ?1", (listed,))
        db.commit()


def make_files_hostile(scene: Scene, worker: str) -> None:
    """Make all other files hostile that commands read."""
    home = scene.home
    logs = home.kept
    for path in logs.rglob("*.meta.json"):
        path.chmod(0o600)
        path.write_text(json.dumps(with_hostile_texts(json.loads(path.read_text()))))
    folder = scene.folder(worker)
    status = {"status": "need_input", "question": HOSTILE, "options": [HOSTILE], HOSTILE: HOSTILE}
    (folder / "status.json").write_text(json.dumps(status))
    (folder / "run-report.md").write_text(f"done\n{HOSTILE}")
    (folder / "stderr.log").write_text(HOSTILE)
    (scene.hive / "learnings" / f"{HOSTILE_NAME}-insights.md").write_text(HOSTILE)
    (scene.hive / "learnings" / "patterns.md").write_text(HOSTILE)
    (scene.records / "projects.json").write_text(json.dumps({HOSTILE: f"/x{HOSTILE}"}))
    spool = home.path / "spool"
    spool.mkdir(exist_ok=True)
    (spool / f"1_{HOSTILE_NAME}.json").write_text(HOSTILE)
    (spool / "1_2.json").write_text(json.dumps({"v": 1, "jobs": [HOSTILE]}))
    for name in ("writer", "supervisord"):
        (home.path / "logs").mkdir(exist_ok=True)
        (home.path / "logs" / f"{name}.log").write_text(f"one {HOSTILE}\n")
    (home.logs / "hook-errors.log").write_text(
        f"[2026-01-10T00:00:00Z] [stop] [ERROR] x {HOSTILE}\n"
    )
    (home.project / "calls.jsonl").write_text(
        "".join(
            f"{json.dumps(changed(POST_EDIT, tool_name=HOSTILE, tool_use_id=str(number)))}\n"
            for number in range(20)
        )
    )
    (home.project / "odd.txt").write_text(HOSTILE)
    settings = home.project / ".claude" / "settings.json"
    hook = {"type": "command", "command": f"x.sh {HOSTILE}"}
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"hooks": {HOSTILE: [{"hooks": [hook]}], "Stop": HOSTILE}}))
    with closing(sqlite3.connect(home.project / "old.db")) as db:
        db.execute('CREATE TABLE "odd\x1b[2J\nFORGED" (x TEXT)')
        db.commit()
    (home.project / "queue").mkdir()
    (home.project / "queue" / f"1-{HOSTILE_NAME}.json").write_text(HOSTILE)
    with tarfile.open(home.project / "evil.hivepipe", "w:gz") as tar:
        tar.addfile(tarfile.TarInfo(HOSTILE))
    config = scene.config.read_text() + f"{json.dumps('odd' + HOSTILE)} = 1\n"
    scene.config.write_text(config)
    prices = home.root / ".config" / "hivepipe" / "prices.toml"
    prices.write_text(f"source = {json.dumps(HOSTILE)}\n")


def with_hostile_texts(value: Any, name: str = "") -> Any:
    """Append hostile text to every key and text, except times and the fields in KEPT_KEYS."""
    if isinstance(value, dict):
        return {
            key if key in KEPT_KEYS else key + HOSTILE: with_hostile_texts(inner, key)
            for key, inner in value.items()
        } | {f"tokens{HOSTILE}": 1}
    if isinstance(value, list):
        return [with_hostile_texts(inner) for inner in value]
    is_kept = not isinstance(value, str) or name.endswith(TIMES) or name in KEPT_KEYS - {"title"}
    return value if is_kept else value + HOSTILE


KEPT_KEYS = {"schema", "archive", "tokens", "tools", "calls", "failed", "path", "sha256", "title"}
KEPT_KEYS |= {"session_id", "agent_id", "started_at", "ended_at", "message_count", "bytes", "lines"}


def terminal_faults(output: str) -> list[str]:
    """Return the control characters in an output, and the lines that recorded data began."""
    steering = {char for char in output if not char.isprintable() and char != "\n"}
    steering |= {char for char in output if not char.isascii() and char in STEERING}
    forged = [each for each in output.split("\n") if each.lstrip().startswith(FORGED)]
    return [*map(ascii, steering), *forged]


def json_faults(output: str) -> list[str]:
    """Return the error of the first line that is not JSON, or an empty list."""
    try:
        for each in output.splitlines():
            json.loads(each)
    except ValueError as error:
        return [f"no JSON: {error}"]
    return []


def test_no_command_lets_data_steer_the_terminal(hostile: tuple[Scene, str]) -> None:
    scene, worker = hostile
    assert_archived_lines_are_json_with_unchanged_texts(scene)
    assert_no_data_steers_coloured_output(scene)
    trouble = []
    shown = 0
    late = ("hive archive", "failed retry", "failed discard", "init", "up", "off", "on", "down")
    for path in sorted(CALLABLE, key=lambda each: (each in late, each)):
        for more in CALLS.get(path, LISTED):
            words = [*path.split(), *(worker if it == "WORKER" else it for it in more)]
            done = scene.invoke(*words)
            shown += FORGED in done.stdout + done.stderr
            wrong = terminal_faults(done.stdout) + terminal_faults(done.stderr)
            if done.exception and not isinstance(done.exception, SystemExit):
                wrong.append(repr(done.exception))
            if "--json" in words and done.exit_code == 0:
                wrong += json_faults(done.stdout)
            trouble += [(words, each) for each in wrong]
    assert not trouble
    assert shown > 60  # hostile texts are in the output


def assert_archived_lines_are_json_with_unchanged_texts(scene: Scene) -> None:
    lines = scene.hivepipe("archive", "show", SESSION, "--lines").stdout.splitlines()
    texts = [json.loads(each)["message"]["content"][0]["text"] for each in lines]
    assert texts == [f"an invisible word {HOSTILE}"] * 3


def assert_no_data_steers_coloured_output(scene: Scene) -> None:
    for words in ON_TERMINAL:
        output = output_on_terminal(scene, *words)
        assert FORGED in output or words[0] == "status"
        wrong = terminal_faults(without_styles(output))
        if words[0] == "redact":  # lines of a redacted file are unchanged
            wrong = [each for each in wrong if FORGED not in each]
        assert not wrong, words


def without_styles(output: str) -> str:
    """Remove rich's colours and a terminal's line ends, and nothing else."""
    return re.sub(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]", "", output).replace("\r\n", "\n")


def output_on_terminal(scene: Scene, *words: str) -> str:
    """Run a command on a new terminal and return its output."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [*CLI, *words],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**scene.env, "TERM": "xterm-256color", "COLUMNS": "80"},
        cwd=scene.home.project,
    )
    os.close(terminal)
    output = b""
    while True:
        try:
            data = os.read(controller, 1 << 16)
        except OSError:
            break
        if not data:
            break
        output += data
    process.wait(60)
    os.close(controller)
    return output.decode()

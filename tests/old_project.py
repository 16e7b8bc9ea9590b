"""A project as the predecessor leaves it, made after its documents: hooks, database and queue."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

LONG_AGO = 1_736_500_000  # January 2025

TABLES = """
CREATE TABLE swarms (id TEXT PRIMARY KEY, name TEXT, objective TEXT, status TEXT, created_at TEXT);
CREATE TABLE sessions (id TEXT PRIMARY KEY, swarm_id TEXT, swarm_name TEXT, status TEXT,
  checkpoint_data TEXT, created_at TEXT, updated_at TEXT);
CREATE TABLE instance_sessions (id INTEGER PRIMARY KEY, session_id TEXT, instance_id TEXT,
  pid INTEGER, status TEXT, checkpoint_count INTEGER, operation_count INTEGER);
"""
BASE = """
INSERT INTO swarms VALUES ('swarm-1', 'shop', 'sell', 'active', '2025-01-10 09:00:00');
INSERT INTO sessions VALUES ('session-1736500000000-o7bqr170y', 'swarm-1', 'shop', 'active',
  '{"operationCount": 4}', '2025-01-10 09:00:00', '2025-01-10 10:00:00');
INSERT INTO instance_sessions VALUES (1, 'session-1736500000000-o7bqr170y', 'instance-1-a', 77,
  'active', 5, 11);
"""
SESSION = "session-1736500000000-o7bqr170y"
_METADATA = json.dumps({"sessionId": SESSION, "lifecycle": {"type": "ephemeral", "ttl": 3600}})
SHAPES = {
    "seed": f"""
CREATE TABLE agents (id TEXT PRIMARY KEY, swarm_id TEXT, name TEXT, type TEXT, role TEXT,
  metadata TEXT, status TEXT, created_at TEXT);
INSERT INTO agents VALUES ('task-agent-1736500100-77', 'swarm-1', 'find it', 'Explore',
  'task-agent', '{_METADATA}', 'spawned', '2025-01-10 09:10:00');
CREATE TABLE session_logs (id INTEGER PRIMARY KEY, session_id TEXT, log_level TEXT, message TEXT,
  data TEXT, created_at TEXT);
INSERT INTO session_logs VALUES (1, '{SESSION}', 'INFO', 'first', NULL, '2025-01-10 09:30:00');
""",
    "claude-flow": f"""
CREATE TABLE agents (id TEXT PRIMARY KEY, swarm_id TEXT, name TEXT, type TEXT, role TEXT,
  capabilities TEXT, status TEXT, performance_score REAL, task_count INTEGER, metadata TEXT,
  created_at TEXT);
INSERT INTO agents VALUES ('task-agent-1736500100-77', 'swarm-1', 'find it', 'Explore',
  'task-agent', '[]', 'idle', 0.5, 3, '{_METADATA}', '2025-01-10 09:10:00');
CREATE TABLE session_logs (id INTEGER PRIMARY KEY, session_id TEXT, timestamp TEXT,
  log_level TEXT, message TEXT, data TEXT);
INSERT INTO session_logs VALUES (1, '{SESSION}', '2025-01-10 09:30:00', 'INFO', 'first', NULL);
CREATE TABLE tasks (id TEXT PRIMARY KEY, swarm_id TEXT, description TEXT, status TEXT,
  created_at TEXT);
INSERT INTO tasks VALUES ('task-1', 'swarm-1', 'fix the login', 'pending', '2025-01-10 09:00:00');
CREATE TABLE collective_memory (id TEXT, key TEXT, value TEXT);
INSERT INTO collective_memory VALUES ('m-1', 'style', 'tabs'), ('m-2', 'db', 'sqlite');
""",
}
_LIBRARY = 'QUEUE=.hive-mind/queue\nqueue_db_write() { mv "$1" "$QUEUE/pending/"; }\n'
_BASH = '#!/bin/bash\n. "$(dirname "$0")/queue-lib.sh"\nqueue_db_write "INSERT ..." {name} 5\n'
_PYTHON = "#!/usr/bin/env python3\nfrom lib.skill_tracker import SkillTracker\n"
BASH_SCRIPTS = (
    "task-agent-tracker.sh",
    "auto-checkpoint.sh",
    "session-start.sh",
    "session-checkpoint.sh",
    "agent-lifecycle-cleanup.sh",
    "queue-worker.sh",
)
PYTHON_SCRIPTS = ("post-tool-use", "subagent-stop", "stop")
SHARED_SETTINGS = """{
  "model": "opus",
  "hooks": {
    "PostToolUse": [
      { "matcher": "Task", "hooks": [
        { "type": "command", "command": ".claude/hooks/task-agent-tracker.sh" },
        { "type": "command", "command": "\\"$CLAUDE_PROJECT_DIR\\"/.claude/hooks/auto-checkpoint.sh" }
      ] },
      { "matcher": "Write|Edit|MultiEdit", "hooks": [
        { "type": "command", "command": "bash .claude/hooks/auto-checkpoint.sh 2>/dev/null || true" },
        { "type": "command", "command": "npm run lint" }
      ] }
    ]
  }
}
"""  # noqa: E501
LOCAL_SETTINGS = """{
\t"hooks": {
\t\t"SessionStart": [{"hooks": [{"type": "command", "command": ".claude/hooks/session-start.sh"}]}],
\t\t"Stop": [{"hooks": [
\t\t\t{"type": "command", "command": ".claude/hooks/session-checkpoint.sh"},
\t\t\t{"type": "command", "command": "python3 .claude/hooks/stop"}]}],
\t\t"SubagentStop": [{"hooks": [{"type": "command", "command": ".claude/hooks/subagent-stop"}]}]
\t},
\t"permissions": {"allow": ["Bash(ls:*)"]}}"""


class OldProject:
    """A project of the predecessor, with only those parts whose methods were called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / ".hive-mind"
        self.queue = self.home / "queue"
        self.number = 0

    def whole(self, shape: str = "seed") -> "OldProject":
        """Make everything that the predecessor leaves."""
        self.database(shape)
        self.entries()
        self.markers()
        self.hooks()
        self.archives()
        self.workers()
        self.age()
        return self

    # ---- the home

    def database(self, shape: str = "seed", more: str = "") -> Path:
        self.home.mkdir(exist_ok=True)
        with closing(sqlite3.connect(self.home / "hive.db")) as db:
            db.executescript(TABLES + BASE + SHAPES[shape] + more)
        return self.home / "hive.db"

    def entries(self) -> None:
        """Fill the queue with entries of every state, some of them damaged."""
        for name in ("pending", "processing", "failed", "completed", ".tmp"):
            (self.queue / name).mkdir(parents=True, exist_ok=True)
        self.entry(agent("queued-1"))
        self.entry(
            "UPDATE instance_sessions SET checkpoint_count = checkpoint_count + 1, "
            f"operation_count = operation_count + 1 WHERE session_id = '{SESSION}'"
        )
        self.entry(checkpoint("instance-2"), priority=3)
        self.entry(log("second"), priority=7)
        torn = self.entry(agent("retrying-1"))
        torn = torn.rename(torn.with_name("6_.json"))
        torn.write_text(torn.read_text().replace('"retries": 0', '"retries":1 0'))
        self.entry(agent("claimed-1"), part="processing")
        failed = self.entry(agent("failed-1"), part="failed")
        failed.write_text(failed.read_text()[:-1] + ',"error":"near "x": syntax error"}')
        self.entry("x", part="failed").write_text('{"sql": "INSERT INTO age')
        self.entry("DROP TABLE agents", part="failed")
        for _ in range(3):
            self.entry(agent("done-1"), part="completed")
        self.entry(agent("never-1"), part=".tmp")
        for name, text in {
            "worker.pid": "999999\n",
            ".seq": "12\n",
            "stats.json": '{"processed": 3, "failed": 2, "retried": 1}\n',
            ".heartbeat": '{"time": 1736500000}\n',
        }.items():
            (self.queue / name).write_text(text)

    def entry(self, sql: str, *, priority: int = 5, part: str = "pending", **more: Any) -> Path:
        """Add an entry to the queue."""
        self.number += 1
        (self.queue / part).mkdir(parents=True, exist_ok=True)
        sequence = f"17365001{self.number:02}N_{self.number}"
        path = self.queue / part / f"{priority}_{sequence}.json"
        said = {
            "seq": sequence,
            "priority": priority,
            "operation": "write",
            "sql": sql,
            "metadata": {},
            "created_at": f"2025-01-10T11:00:{self.number:02}Z",
            "retries": 0,
            **more,
        }
        path.write_text(json.dumps(said))
        return path

    def markers(self) -> None:
        """Make the small files of sessions and instances, a log, and a file of another program."""
        for name, text in {
            ".active_session": f"{SESSION}\n",
            "sessions/.session_4711": f"{SESSION}\n",
            "instances/.instance_pts_1": "instance-1-a\n",
            "instances/.session_instance-1-a": f"{SESSION}\n",
            "instances/.last_checkpoint_instance-1-a": "1736500000\n",
            "instances/.cleanup_checkpoint_instance-1-a": "7\n",
            "logs/cleanup.log": "deleted 0\n",
            "config.json": '{"queen": true}\n',
        }.items():
            self.write(f".hive-mind/{name}", text)

    # ---- the project

    def hooks(self) -> None:
        """Register the old hooks in both settings files, with their scripts."""
        self.scripts()
        self.write(".claude/settings.json", SHARED_SETTINGS)
        self.write(".claude/settings.local.json", LOCAL_SETTINGS)

    def scripts(self) -> None:
        """Make the scripts of the old hooks."""
        self.write(".claude/hooks/queue-lib.sh", _LIBRARY)
        for name in BASH_SCRIPTS:
            self.write(f".claude/hooks/{name}", _BASH.format(name=name)).chmod(0o755)
        for name in PYTHON_SCRIPTS:
            self.write(f".claude/hooks/{name}", _PYTHON).chmod(0o755)

    def archives(self) -> None:
        """Make archives of January 2025, their index and the counts of skills."""
        logs = ".claude-state/logs"
        main = {"session_id": "abc123"}
        self.archive("oldword", f"{logs}/main-session/2025-01/2025-01-10_14-30-00_abc123", main)
        architect = {
            "task_id": "task-xyz",
            "agent_type": "architect",
            "parent_session_id": "abc123",
            "outcome": "success",
            "message_count": 12,
            "duration_seconds": 420,
        }
        agents = f"{logs}/subagent/architect/2025-01"
        self.archive("designword", f"{agents}/2025-01-10_14-35-00_task-xyz", architect)
        at = "2025-01-10T14:30:00Z"
        use = {"timestamp": at, "session_id": "abc123", "context": "Fix auth bug", "success": True}
        skill = {"count": 42, "last_used": at, "invocations": [use], "sessions": ["abc123"]}
        skill["success_rate"] = 0.95
        usage = {"skills": {"systematic-debugging": skill}}
        self.write(f"{logs}/skill-usage.json", json.dumps(usage))
        self.write(f"{logs}/skill-usage-index.json", '{"by_skill": {}}')
        self.write(f"{logs}/archive-index.json", '{"total_sessions": 1}')
        self.write(f"{logs}/hook-errors.log", "[2025-01-10T14:30:00Z] [stop] [ERROR] old\n")
        self.write(".claude-state/preferences.md", "tabs\n")

    def archive(self, word: str, path: str, meta: dict[str, Any]) -> None:
        line = {"type": "user", "message": {"role": "user", "content": word}}
        self.write(f"{path}.jsonl", json.dumps(line) + "\n")
        self.write(f"{path}.meta.json", json.dumps(meta))

    def workers(self) -> None:
        """Make a hive with a worker."""
        worker = ".hive/workers/shop-11111111-2222-3333-4444-555555555555"
        status = {"status": "done", "result": "fixed", "committed": True, "parked": True}
        self.write(f"{worker}/status.json", json.dumps(status))
        self.write(f"{worker}/task.md", "Fix the login\n")
        self.write(f"{worker}/session-id", "11111111-2222-3333-4444-555555555555\n")
        result = {"type": "result", "total_cost_usd": 0.07}
        self.write(f"{worker}/transcript.jsonl", json.dumps(result) + "\n")
        self.write(".hive/projects.json", json.dumps({"shop": str(self.folder)}))
        self.write(".hive/learnings/patterns.md", "# Patterns\n")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def age(self) -> None:
        for path in sorted(self.folder.rglob("*"), reverse=True):
            os.utime(path, (LONG_AGO, LONG_AGO), follow_symlinks=False)


def agent(id: str, swarm: str = "swarm-1") -> str:
    return f"""INSERT OR REPLACE INTO agents
      (id, swarm_id, name, type, role, metadata, status, created_at) VALUES
      ('{id}', '{swarm}', 'it''s {id}', 'Explore', 'task-agent', '{_METADATA}', 'spawned',
      '2025-01-10 11:00:00');"""


def checkpoint(instance: str) -> str:
    return f"""UPDATE sessions SET checkpoint_data =
      json_set(coalesce(checkpoint_data, '{{}}'), '$.savedBy', '{instance}'),
      updated_at = datetime('now') WHERE id = '{SESSION}'"""


def log(message: str) -> str:
    return f"""INSERT INTO session_logs (session_id, log_level, message, data)
      SELECT '{SESSION}', 'INFO', '{message}', json_object('tool', 'Edit')
      WHERE EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'session_logs')"""


def states(folder: Path) -> dict[str, tuple[str, int, int, bytes]]:
    """Return kind, mode, time and content of everything below a folder."""
    return {str(path.relative_to(folder)): _state(path) for path in sorted(folder.rglob("*"))}


def _state(path: Path) -> tuple[str, int, int, bytes]:
    status = path.lstat()
    if path.is_symlink():
        return "link", 0, 0, os.fsencode(os.readlink(path))
    if path.is_dir():
        return "folder", status.st_mode, 0, b""
    return "file", status.st_mode, status.st_mtime_ns, path.read_bytes()

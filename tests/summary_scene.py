"""Helpers for tests of summaries: a user who has agreed to them, a key, transcripts and workers."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from hivepipe.jobs.envelope import read_envelope
from hivepipe.jobs.schedule_table import Periodic, job_of, tick_of
from hivepipe.queue import client
from tests.conftest import ROOT, Home, Process, Server, Writer, fire, hook_answer, until
from tests.llm_server import Provider
from tests.payloads import SESSION_END, SESSION_START, changed

SESSION = "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111"
CANARY = "sk-canary-" + "Zq7" * 16
SECRET_IN_WORDS = "ghp_" + "a1B2" * 9


def processes_with(secret: str) -> set[int]:
    """Return the processes with a secret in their arguments or environment."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        for file in ("cmdline", "environ"):
            try:
                if secret.encode() in Path("/proc", name, file).read_bytes():
                    found.add(int(name))
            except OSError:
                continue
    return found


def message_line(number: int, who: str, words: str, session: str = SESSION, **more: Any) -> bytes:
    """Return a line of a transcript."""
    message: dict[str, Any] = {"role": who, "content": [{"type": "text", "text": words}]}
    if who == "assistant":
        usage = {"input_tokens": 3, "output_tokens": 5}
        message |= {"id": f"msg-{number}", "model": "claude-opus-4-5-20251101", "usage": usage}
        message["stop_reason"] = "end_turn"
    line = {
        "type": who,
        "uuid": f"uuid-{number}",
        "requestId": f"req-{number}",
        "sessionId": session,
        "timestamp": f"2026-01-10T10:{number % 60:02d}:00.000Z",
        "cwd": "/home/ana/shop",
        "message": message,
        **more,
    }
    return json.dumps(line).encode() + b"\n"


def conversation(session: str = SESSION, turns: int = 3) -> bytes:
    """Return a transcript that is long enough for a summary and contains a secret."""
    lines = [
        message_line(
            2 * n + who, name, f"{words} {n}: {'the parser drops its last line ' * 5}", session
        )
        for n in range(turns)
        for who, (name, words) in enumerate((("user", "Mend"), ("assistant", "Mended")))
    ]
    return b"".join(lines) + message_line(50, "user", f"the token is {SECRET_IN_WORDS}", session)


class Scene:
    """The user's folders and running processes."""

    def __init__(self, home: Home, server: Server, **of_llm: str) -> None:
        """Define the workers; `of_llm` has additional variables of the LLM worker."""
        self.home = home
        self.server = server
        self.redis = server.client()
        self.writer = Writer(home)
        self.processes: list[Process] = [self.writer]
        self.slow, self.llm = self._worker("slow"), self._worker("llm", **of_llm)
        self._ends = 0
        self._executed: set[bytes] = set()
        self.config = home.root / ".config" / "hivepipe"
        self.config.mkdir(parents=True, exist_ok=True)
        self.transcripts = home.root / ".claude" / "projects" / "-shop"
        self.transcripts.mkdir(parents=True, exist_ok=True)

    def _worker(self, role: str, **more: str) -> Process:
        script = str(ROOT / "workers" / f"{role}.py")
        log = self.home.root / f"{role}{self.home.path.name}.log"
        made = Process([sys.executable, "-I", script], log, self.home.env | more, self.home.root)
        self.processes.append(made)
        return made

    def close(self) -> None:
        for process in self.processes:
            if process.is_running:
                process.end()
        self.redis.close()

    def start(self) -> None:
        for process in self.processes:
            process.start()

    # ---- settings

    def use(self, provider: Provider, **settings: str | float | bool) -> None:
        """Configure OpenAI as the provider, store its key and agree to summaries."""
        self.configure(openai_url=f"{provider.url}/v1", anthropic_url=provider.url, **settings)
        self.keep("OPENAI_API_KEY")
        self.command("summaries", "enable", "--yes")

    def configure(self, **settings: str | float | bool) -> None:
        lines = (f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
        (self.config / "config.toml").write_text("".join(lines))

    def keep(self, name: str, secret: str = CANARY) -> None:
        self.command("credentials", "set", name, data=f"{secret}\n")

    def command(self, *words: str, data: str = "", expect: int = 0, **env: str) -> str:
        return self.home.command(*words, data=data, expect=expect, **env)

    # ---- sessions

    def write(self, session: str = SESSION, lines: bytes | None = None) -> Path:
        path = self.transcripts / f"{session}.jsonl"
        path.write_bytes(conversation(session) if lines is None else lines)
        return path

    def end(self, session: str = SESSION, **more: Any) -> None:
        where = self.begin(session)
        env = self.home.with_env(INSTANCE_ID=f"inst-{session[:8]}")
        fire("SessionEnd", changed(SESSION_END, **where, **more), env)

    def begin(self, session: str = SESSION, **more: Any) -> dict[str, Any]:
        """Start or resume a session and return the common fields of its events."""
        self._ends += 1  # Otherwise two equal events within 2 s would count as one.
        where = {
            "number": self._ends,
            "session_id": session,
            "transcript_path": str(self.write_if_missing(session)),
        }
        env = self.home.with_env(INSTANCE_ID=f"inst-{session[:8]}")
        # The answer may be a briefing.
        hook_answer("SessionStart", changed(SESSION_START, **where, **more), env)
        return where

    def write_if_missing(self, session: str) -> Path:
        path = self.transcripts / f"{session}.jsonl"
        return path if path.exists() else self.write(session)

    def tick(self, row: Periodic, slot: int) -> None:
        """Enqueue the job of a periodic slot and wait until it is done."""
        tick = read_envelope(tick_of(row, slot, time.time_ns()).envelope)
        client.push(self.server.address, [job_of(tick)], 5.0)
        sql = f"SELECT 1 FROM slots WHERE name = '{row.name}' AND slot = {slot}"
        until(lambda: self.home.rows(sql), "the periodic job was not done")

    def archived(self) -> int:
        return len(list(self.home.kept.rglob("main-session/*/*.meta.json")))

    def make_due(self, *queues: str) -> None:
        for queue in queues or ("slow", "llm"):
            for job, _ in self.redis.zscan_iter(f"rq:scheduled:{queue}"):
                self.redis.zadd(f"rq:scheduled:{queue}", {job: int(time.time()) - 1}, xx=True)

    def executed(self) -> int:
        """Make jobs due; return how many jobs of the queue llm were seen as executed so far."""
        self.make_due()
        self._executed |= set(self.redis.zrange("rq:finished:llm", 0, -1))
        return len(self._executed)

    def summaries(self, session: str = "") -> list[dict[str, Any]]:
        rows = self.home.rows("SELECT * FROM summaries ORDER BY session_id, made_at")
        return [row for row in rows if session in ("", row["session_id"])]

    def wait_for_summary(self, session: str = SESSION, number: int = 1) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            self.make_due()
            rows = self.summaries(session)
            return rows if len(rows) >= number else []

        try:
            rows = until(found, "no summary")
        except BaseException:
            sys.stderr.write(self.slow.text + self.llm.text + self.writer.text)
            raise
        last: dict[str, Any] = rows[-1]
        return last

    def spent(self) -> dict[str, Any]:
        own: dict[str, Any] = json.loads(self.command("costs", "--json"))["own"]
        return own

    def everything(self) -> dict[str, bytes]:
        """Return all files of the user and all values in Redis, except key and transcripts."""
        found = {}
        for folder, _, names in os.walk(self.home.root):
            for name in names:
                path = Path(folder, name)
                if (
                    path.is_file()
                    and path.name != "credentials.env"
                    and ".claude/" not in str(path)
                ):
                    found[str(path)] = path.read_bytes()
        return found

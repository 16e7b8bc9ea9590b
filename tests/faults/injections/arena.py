"""One home, one Redis and one process of each kind for many rounds, with the final checks."""

import json
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hivepipe.queue import client as wire
from hivepipe.queue.endpoint import is_local, wake_up
from hivepipe.queue.spool import write_spool
from tests.archive_scene import TOKEN, line
from tests.conftest import ALL_QUEUES, ROOT, Home, Process, Server, until
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.faults.injections.damage import Damage
from tests.faults.injections.marks import LINGER_SECS, Watch
from tests.faults.injections.wave import Wave, events_of, session_of, wave
from tests.faults.oracle import Rows

LAUNCHER = Path(__file__).with_name("launch_marked.py")
BALANCE_SECS = 10.0
BY_SPOOL = 0.3  # share of the events


class Arena(Bench):
    """A bench whose processes record their current step."""

    def __init__(self, home: Home, server: Server) -> None:
        super().__init__(home, server)
        self.watch = Watch(home.root / "marks")
        self.waves: list[Wave] = []
        self.runtime = str(Path(server.address).parent)
        self.first_ns = oracle.FIRST_NS  # time of the first event of the first wave
        self._made = 0
        self._late_lines = b""  # lines of the last wave's transcript that are written later
        # additional checks of a fault, run after each wave
        self.checks: list[Callable[[Wave, Arena, Damage], None]] = []
        self.has_exact_times = True  # real hooks use the current time
        self.processes: dict[str, Process] = {}
        self.transcripts = home.root / ".claude" / "projects" / "-home-ana-shop"
        self.transcripts.mkdir(parents=True)

    # ---- processes

    def keep(self, role: str) -> Process:
        """Return the process of a role; start it if it does not run, as a supervisor does."""
        process = self.processes.get(role)
        if process is None:
            script = str(ROOT / "workers" / f"{role}.py")
            command = [sys.executable, "-I", str(LAUNCHER), script, str(self.watch.folder)]
            log = self.home.root / f"{role}.log"
            process = Process(command, log, self.home.env, self.home.root)
            self.processes[role] = process
            self.writers.append(process)
            self.has_slow_worker |= role == "slow"
        if not process.is_running:
            process.start()
        return process

    def end_all(self) -> None:
        for process in [*self.processes.values(), self.server]:
            process.end(signal.SIGKILL)

    def start_over(self) -> None:
        """Keep only the last wave: empty Redis, delete the database, end all processes."""
        for process in self.processes.values():
            process.end(signal.SIGKILL)
        self.forget()
        shutil.rmtree(self.home.database.parent / "backups", ignore_errors=True)
        self.waves = self.waves[-1:]

    @property
    def archive(self) -> Path:
        """The folder in which the slow worker archives transcripts."""
        return self.home.kept

    def phase(self, role: str) -> str:
        return self.watch.phase(self.processes[role].pid)

    def wait_at(self, phase: Callable[[], str], step: str) -> None:
        """Wait until a process is at a step; check more often than the process lingers there."""
        until(lambda: phase() == step, f"never came to {step!r}", longest_pause=LINGER_SECS / 2)

    # ---- events

    def new_wave(self, rng: random.Random) -> Wave:
        """Make the next wave and the first lines of its session's transcript."""
        made = wave(self._made, rng, str(self.transcripts), self.first_ns)
        self._made += 1
        self.waves.append(made)
        session = session_of(made.number)
        count = rng.randrange(3, 8)
        said = [line(n, sessionId=session) for n in range(count)]
        said.insert(rng.randrange(count), line(count, f"the key is {TOKEN}", sessionId=session))
        half = rng.randrange(1, len(said))
        self.transcript(made).write_bytes(b"".join(said[:half]))
        self._late_lines = b"".join(said[half:])
        return made

    def transcript(self, one: Wave) -> Path:
        return self.transcripts / f"{session_of(one.number)}.jsonl"

    def finish_transcript(self, one: Wave) -> None:
        with self.transcript(one).open("ab") as file:
            file.write(self._late_lines)
        self._late_lines = b""

    def hand_over(self, one: Wave, rng: random.Random, pause_secs: float = 0.0) -> None:
        """Push jobs as hooks do, without their processes; some go to the spool and come late."""
        late = []
        all_sent = oracle.messages(one.events, self.project, self.swarm)
        for number, sent in enumerate(all_sent):
            if number == len(all_sent) * 2 // 3:
                self.finish_transcript(one)
            if not sent:
                continue
            at = one.events[0].time_ns + number
            if rng.random() < BY_SPOOL or not self._takes(at, sent):
                late.append((at, sent))
            time.sleep(pause_secs * rng.random())
        rng.shuffle(late)
        for at, sent in late:
            write_spool(f"{self.home.path}/spool", at, sent)

    def _takes(self, at: int, sent: list[Any]) -> bool:
        """Return whether Redis takes the jobs, or the forwarder for a remote Redis."""
        if not is_local(self.server.address):
            write_spool(f"{self.home.path}/spool", at, sent)
            return wake_up(self.runtime)
        try:
            wire.push(self.server.address, sent)
        except wire.RefusedError:
            return False
        return True

    # ---- looking

    def handed_on(self) -> dict[str, int]:
        """Count the jobs that wait for workers that do not run."""
        left = super().handed_on()
        if "llm" not in self.processes:
            left["waiting"] += self.redis.llen("rq:queue:llm")
        return left

    def make_due(self) -> bool:
        """Restart ended processes and make scheduled jobs due."""
        for role in self.processes:
            self.keep(role)
        for queue in ("slow", "llm"):
            for member in self.redis.zrange(f"rq:scheduled:{queue}", 0, -1):
                self.redis.zadd(f"rq:scheduled:{queue}", {member: 1}, xx=True)
        return True

    def settle_all(self) -> None:
        """Wait until everything is done; transcripts need not settle first."""
        self.watch.aim("")
        try:
            until(lambda: self.make_due() and self.is_settled(), "not settled")
        except pytest.fail.Exception:
            logs = [process.log for process in self.processes.values()]
            logs += (self.home.path / "logs").glob("*.log")  # logs of a whole stack
            said = "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in logs)
            pytest.fail(f"not settled: {self.accounts}\n{self._unsettled()}\n{said}")

    def _unsettled(self) -> str:
        """Describe each job that runs or is scheduled, with its remaining time."""
        return "\n".join(
            f"{key}: {self._about(member)}, in {score - time.time():.1f} s"
            for queue in ALL_QUEUES
            for key in (f"rq:wip:{queue}", f"rq:scheduled:{queue}")
            for member, score in self.redis.zrange(key, 0, -1, withscores=True)
        )

    def _about(self, member: bytes) -> str:
        job = member.partition(b":")[0]
        description, attempts = self.redis.hmget(b"rq:job:" + job, "description", "hp_attempts")
        return f"{job!r} {description!r}, attempts {attempts!r}"

    def rows_of(self, one: Wave) -> Rows:
        """Return the rows of a wave's sessions and instances, and the counters of all waves."""
        found = oracle.comparable(self.tables())
        of_sessions = {
            name: [row for row in rows if row.get("session_id") in one.sessions]
            for name, rows in found.items()
        }
        return of_sessions | {
            "instances": [r for r in found["instances"] if r["id"] in one.instances],
            "sessions": [r for r in found["sessions"] if r["id"] in one.sessions],
            "counters": found["counters"],
        }

    def without_lost_doubtful(self) -> Wave:
        """Return the last wave without doubtful events that left no trace."""
        one = self.waves[-1]
        logged = {row["session_id"] for row in self.home.rows("SELECT * FROM session_logs")}
        happened = one.without([event for event in one.doubtful if event.session not in logged])
        self.waves[-1] = happened
        return happened

    def executed_slots(self) -> int:
        """Count the executed slots; after the clock was set back, slot numbers are lower."""
        return self.home.count("slots")

    def check(self) -> Damage:
        """Compare the rows of the last wave, and all accounts, with the expected ones."""
        one = self.without_lost_doubtful()
        wanted = oracle.expected(one.events, self.project, self.swarm)
        found = self.rows_of(one)
        wanted["swarms"] = found["swarms"] = []
        every = oracle.expected(events_of(self.waves), self.project, self.swarm)
        wanted["counters"] = every["counters"]
        damage = self._damage(wanted, found)
        missing, figures = self._missing()
        again = self.home.rows("SELECT * FROM slots WHERE executions > 1")
        damage.count("double", len(again), f"{again}")
        damage.count("lost", max(missing, 0) + len(self.dead()), f"{figures}")
        damage.count("double", max(-missing, 0), f"{figures}")
        # The slow worker makes jobs of its own.
        if self.has_exact_times and not self.has_slow_worker:
            more = figures["accepted"] - oracle.job_count(events_of(self.waves))
            damage.count("lost", max(-more, 0), f"{figures}")
            damage.count("double", max(more, 0), f"{figures}")
        for check in self.checks:
            check(one, self, damage)
        return damage

    def _missing(self) -> tuple[int, dict[str, int]]:
        """Return how many jobs are neither done nor handed on; wait for periodic ones."""
        end = time.monotonic() + BALANCE_SECS
        while True:
            figures = self.accounts
            missing = figures["accepted"] - figures["done"] - sum(self.handed_on().values())
            if not missing or time.monotonic() > end:
                return missing, figures
            time.sleep(0.02)

    def check_all(self) -> Damage:
        """Compare the whole database and all files with an undisturbed run of the same events."""
        wanted = oracle.expected(events_of(self.waves), self.project, self.swarm)
        damage = self._damage(wanted, oracle.comparable(self.tables()))
        found = [row["integrity_check"] for row in self.home.rows("PRAGMA integrity_check")]
        damage.count("corrupt", found != ["ok"], f"integrity_check: {found}")
        if "slow" in self.processes:
            files = self._end_and_read_files()
            for one in self.waves:
                self._check_lines(one, files, damage)
            said = b"".join(self.transcript(one).read_bytes() for one in self.waves)
            messages = {json.loads(text)["message"]["id"] for text in said.splitlines()}
            counted = {row["message_id"] for row in self.home.rows("SELECT message_id FROM usage")}
            damage.count("lost", len(messages - counted), f"usage of {messages - counted}")
            self._repeat_undisturbed()
            compare_files(self._end_and_read_files(), files, damage)
        return damage

    def _check_lines(self, one: Wave, files: dict[str, bytes], damage: Damage) -> None:
        """Compare an archive with its transcript, because the undisturbed run may be wrong too."""
        session = session_of(one.number)
        (kept,) = [data for name, data in files.items() if name.endswith(f"_{session}.jsonl")]
        said, found = self.transcript(one).read_bytes().splitlines(), kept.splitlines()
        secret = TOKEN.encode()
        damage.count("lost", max(len(said) - len(found), 0), f"lines of {session}")
        damage.count("double", max(len(found) - len(said), 0), f"lines of {session}")
        other = [line for line in said if secret not in line and line not in found]
        damage.count("corrupt", len(other) + kept.count(secret), f"lines of {session}: {other}")

    def _damage(self, wanted: Any, found: Any) -> Damage:
        if not self.has_exact_times:
            wanted, found = oracle.without_times(wanted), oracle.without_times(found)
        return Damage.of_rows(oracle.differences(wanted, found))

    def _end_and_read_files(self) -> dict[str, bytes]:
        for process in self.processes.values():
            process.end()
        return {
            str(path.relative_to(self.archive)): path.read_bytes()
            for path in sorted(self.archive.rglob("*"))
            if path.suffix in (".jsonl", ".json")
        }

    def _repeat_undisturbed(self) -> None:
        self.forget()
        for path in self.archive.iterdir():  # the folder itself may be a mount
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for one in self.waves:
            for sent in oracle.messages(one.events, self.project, self.swarm):
                self.send(sent)
        self.settle_all()


def compare_files(wanted: dict[str, bytes], found: dict[str, bytes], damage: Damage) -> None:
    """Count the files that are missing, unexpected or different."""
    damage.count("lost", len(wanted.keys() - found.keys()), f"{wanted.keys() - found.keys()}")
    damage.count("double", len(found.keys() - wanted.keys()), f"{found.keys() - wanted.keys()}")
    other = [name for name in wanted.keys() & found.keys() if wanted[name] != found[name]]
    damage.count("corrupt", len(other), f"{other}")

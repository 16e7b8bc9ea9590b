"""Many homes, one team, and every fault between them, in seeded rounds.

At the end the team has the sum of the homes: no row is lost, doubled or withheld by policy.
HIVEPIPE_TEST_ROUNDS sets the number of rounds, at least 60, over 100 homes.
"""

import inspect
import json
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hivepipe.db.changes import raise_version
from hivepipe.db.database import Database
from hivepipe.db.forget import remove_rows
from hivepipe.db.listings import listings
from hivepipe.errors import TeamError
from hivepipe.team.address import Address
from tests.faults.injections.disks import mounted
from tests.faults.lossy_proxy import LossyProxy
from tests.postgres import serving
from tests.rounds import ASKED_ROUNDS, SEED
from tests.team_scene import HomeOfTeam, Team

HOMES = 100 if ASKED_ROUNDS else 12
STEPS = max(60, ASKED_ROUNDS)
EFFECTS = (
    *("kill_an_uplink: while it ran", "crash_the_server: TeamAwayError"),
    *("kill_a_connection: while it was connected", "cut_the_connection: TeamAwayError"),
    *("change_the_policy: stricter", "change_the_policy: looser"),
)
DISK = "size=600m"
SMALL_LOG = ("-c", "max_wal_size=64MB", "-c", "min_wal_size=32MB")
SECRET = "/p/secret"  # pragma: allowlist secret


class Scene:
    """The team, its homes, and the expected state."""

    def __init__(self, team: Team, folder: Path, dice: random.Random, disk: Path | None) -> None:
        self.team, self.folder, self.dice, self.disk = team, folder, dice, disk
        self.proxy = LossyProxy(team.server.port)
        self.hits: Counter[str] = Counter()
        self.homes: list[HomeOfTeam] = []
        self.machines: dict[int, str] = {}
        # home -> prompts and messages that only the team has after a restore
        self.kept: dict[str, set[str]] = {}
        share = {"*": "everything", "secret": "nothing"}
        for number in range(HOMES):
            self.homes.append(
                HomeOfTeam(folder / str(number) / "hive.db", self.joined(number), share)
            )
        self.sessions = 0
        self.green = "everything"

    def joined(self, number: int) -> Address:
        """Let a machine join, which connects through the proxy."""
        joined = self.team.joined(f"member{number % 4}", f"machine{number}")
        self.machines[number] = f"{joined.member}/{joined.machine}"
        return joined.writes._replace(host="127.0.0.1", port=self.proxy.port)

    def steps(self) -> None:
        """Do each action once and check its home, then random ones, each with a random home.

        A later change of the policy sends all rows again, so it would hide a lost row.
        """
        actions = {
            self.work: 10,
            self.ship: 6,
            self.kill_an_uplink: 4,
            self.crash_the_server: 1,
            self.kill_a_connection: 2,
            self.fill_the_disk: 1 if self.disk else 0,
            self.cut_the_connection: 4,
            self.slow_the_connection: 1,
            self.delete_rows: 2,
            self.forget: 1,
            self.set_a_clock_ahead: 1,
            self.restore_a_home: 2,
            self.restore_the_server: 1,
            self.revoke_a_machine: 2,
            self.change_the_policy: 2,
            self.rewrite: 2,
        }
        once = [act for act, weight in actions.items() if weight]
        more = self.dice.choices([*actions], [*actions.values()], k=STEPS - len(once))
        for number, act in enumerate((*self.dice.sample(once, len(once)), *more)):
            home = self.dice.choice(self.homes)
            act(home)
            self.hits[act.__name__] += 1
            if number < len(once):
                self.check(home)

    def work(self, home: HomeOfTeam) -> None:
        self.sessions += 1
        project = self.dice.choice(["/p/blue", "/p/green", SECRET])
        home.work(f"session-{self.sessions}", self.dice.randrange(1, 40), project)

    def ship_work(self, home: HomeOfTeam) -> None:
        """Write rows that the team has too, so that a change of them must arrive there."""
        self.work(home)
        self.until_shipped(home)

    def rewrite(self, home: HomeOfTeam) -> None:
        self.ship_work(home)
        home.sql(f"UPDATE usage SET output = output + {self.dice.randrange(1, 9)}")

    def ship(self, home: HomeOfTeam) -> str:
        """Ship; return the name of the error, or ""."""
        try:
            home.ship()
        except TeamError as error:
            return type(error).__name__
        return ""

    def note(self, error: str) -> None:
        """Count a fault that had an effect."""
        if error:
            self.hits[f"{inspect.stack()[1].function}: {error}"] += 1

    def kill_an_uplink(self, home: HomeOfTeam) -> None:
        self.work(home)
        child = multiprocessing.get_context("fork").Process(target=home.ship)
        child.start()
        time.sleep(self.dice.random() * 0.25)
        if child.pid and child.is_alive():
            os.kill(child.pid, signal.SIGKILL)
            self.note("while it ran")
        child.join()

    def crash_the_server(self, home: HomeOfTeam) -> None:
        with self.shipping(home):
            time.sleep(self.dice.random() * 0.1)
            self.team.server.stop(signal.SIGQUIT)
        self.note(self.ship(home))
        self.team.server.start()

    def kill_a_connection(self, home: HomeOfTeam) -> None:
        """Kill a backend with SIGKILL: the server restarts all others and recovers."""
        machines = "SELECT pid FROM pg_stat_activity WHERE application_name = 'hivepipe'"
        with self.shipping(home):
            time.sleep(self.dice.random() * 0.1)
            for pid in self.team.server.psql(machines).split()[:1]:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
                    self.note("while it was connected")
        self.team.server.wait()

    @contextmanager
    def shipping(self, home: HomeOfTeam) -> Iterator[None]:
        """Ship new rows while the context lasts."""
        self.work(home)
        thread = threading.Thread(target=self.ship, args=(home,))
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def fill_the_disk(self, _home: HomeOfTeam) -> None:
        assert self.disk
        filler = self.disk / "filler"
        with open(filler, "wb") as file, suppress(OSError):
            while True:
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), 65536)
                file.truncate(os.fstat(file.fileno()).st_size)
        for home in self.dice.choices(self.homes, k=20):
            self.sessions += 1
            home.work(f"session-{self.sessions}", 150, "/p/blue")
            if error := self.ship(home):
                self.note(error)
                break
        filler.unlink()
        self.team.server.stop(signal.SIGQUIT)
        self.team.server.start()

    def revoke_a_machine(self, home: HomeOfTeam) -> None:
        """Revoke a machine while it ships, and invite it again."""
        number = self.homes.index(home)
        with self.shipping(home):
            time.sleep(self.dice.random() * 0.1)
            name = self.machines[number]
            assert self.team.query("SELECT hivepipe.revoke(%s)", name) == f"machine {name}"
        error = self.ship(home)
        assert error == "TeamRefusedError"
        self.note(error)
        home.login = self.joined(number)

    def change_the_policy(self, _home: HomeOfTeam) -> None:
        levels = ["nothing", "metadata", "everything"]
        before = levels.index(self.green)
        self.green = self.dice.choice([level for level in levels if level != self.green])
        self.note("stricter" if levels.index(self.green) < before else "looser")
        self.team.query("SELECT hivepipe.set_policy('green', %s)", self.green)

    def cut_the_connection(self, home: HomeOfTeam) -> None:
        self.work(home)
        self.proxy.cut_after = self.dice.randrange(200, 9_000)
        self.note(self.ship(home))
        self.proxy.cut_after = None

    def slow_the_connection(self, home: HomeOfTeam) -> None:
        self.work(home)
        self.proxy.delay = 0.05
        self.note(self.ship(home) or "slow")
        self.proxy.delay = 0.0

    def delete_rows(self, home: HomeOfTeam) -> None:
        self.ship_work(home)
        home.sql("DELETE FROM prompts WHERE id IN (SELECT id FROM prompts ORDER BY id LIMIT 3)")

    def forget(self, home: HomeOfTeam) -> None:
        self.ship_work(home)
        with closing(Database(home.path)) as db:
            row = db.row("SELECT id FROM sessions ORDER BY random()", {})
            if row:
                remove_rows(db, [row["id"]])
                self.kept[home.path.parent.name] = {
                    job
                    for job in self.kept.get(home.path.parent.name, set())
                    if not job.startswith(f"job-{row['id']}-")
                }

    def set_a_clock_ahead(self, home: HomeOfTeam) -> None:
        """Raise the versions here and on the server, as if a clock had been a year ahead."""
        self.ship_work(home)
        with closing(Database(home.path)) as db:
            raise_version(db, int((time.time() + 31_536_000) * 1e6))
        self.until_shipped(home)
        self.work(home)

    def restore_a_home(self, home: HomeOfTeam) -> None:
        stale = home.path.with_name("stale.db")
        stale.unlink(missing_ok=True)
        self.until_shipped(home)
        with closing(sqlite3.connect(home.path)) as db:
            db.execute("VACUUM INTO ?", (str(stale),))
        self.delete_rows(home)
        self.set_a_clock_ahead(home)
        self.until_shipped(home)
        name = home.path.parent.name
        kept = self.kept.setdefault(name, set())
        kept |= self.shared_prompts(home) | {message for message, _ in self.shared_usage(home)}
        for suffix in ("-wal", "-shm"):
            Path(f"{home.path}{suffix}").unlink(missing_ok=True)
        shutil.copy(stale, home.path)
        self.ship_work(home)
        self.work(home)

    def restore_the_server(self, _home: HomeOfTeam) -> None:
        backup = self.folder / "backup"
        self.team.server.dump(self.team.database, backup)
        for home in self.homes:
            self.dice.choice([self.work, self.rewrite, self.delete_rows, self.forget])(home)
            self.ship(home)
        self.team.server.restore(self.team.database, backup)

    def until_shipped(self, home: HomeOfTeam) -> None:
        for _ in range(3):
            with suppress(TeamError):
                home.ship()
                return
        home.ship()

    def check(self, home: HomeOfTeam) -> int:
        """Ship, and compare the team's rows of a home; return their number."""
        self.until_shipped(home)
        kept = self.kept.get(home.path.parent.name, set())
        prompts = [row[0] for row in self.of_team(home, "t.job_id FROM hivepipe.prompts t")]
        assert len(prompts) == len({*prompts}), "twice"
        mine = self.shared_prompts(home)
        assert mine <= {*prompts}, "lost"
        assert {*prompts} <= mine | kept, "more than there was"
        usage = self.of_team(home, "t.message_id, t.output FROM hivepipe.usage t")
        found = {(message, int(output)) for message, output in usage}
        assert len(found) == len(usage), "twice"
        assert self.shared_usage(home) <= found, "lost"
        more = {row for row in found - self.shared_usage(home) if row[0] not in kept}
        assert not more, "more than there was"
        return len(prompts) + len(usage)

    def hidden(self, *levels: str) -> str:
        """Return the hidden projects as JSON; green is hidden if its level is one of `levels`."""
        return json.dumps([SECRET, *(["/p/green"] if self.green in levels else [])])

    def shared_prompts(self, home: HomeOfTeam) -> set[str]:
        sql = """
            SELECT job_id FROM prompts JOIN sessions ON sessions.id = prompts.session_id
            WHERE sessions.project NOT IN (SELECT value FROM json_each(:hidden))
        """
        with listings(home.path) as store:
            rows = store.rows(sql, {"hidden": self.hidden("nothing", "metadata")})
            return {row["job_id"] for row in rows}

    def shared_usage(self, home: HomeOfTeam) -> set[tuple[str, int]]:
        sql = """
            SELECT message_id, output FROM usage JOIN sessions ON sessions.id = usage.session_id
            WHERE sessions.project NOT IN (SELECT value FROM json_each(:hidden))
        """
        with listings(home.path) as store:
            rows = store.rows(sql, {"hidden": self.hidden("nothing")})
            return {(row["message_id"], row["output"]) for row in rows}

    def secret_sessions(self) -> list[str]:
        """Return all sessions that the team must not have."""
        sql = """
            SELECT id FROM sessions
            WHERE project IN (SELECT value FROM json_each(:hidden)) ORDER BY id
        """
        found = []
        for home in self.homes:
            with listings(home.path) as store:
                rows = store.rows(sql, {"hidden": self.hidden("nothing")})
                found += [row["id"] for row in rows]
        return found

    def of_team(self, home: HomeOfTeam, sql: str) -> list[list[str]]:
        return self.team.rows(
            f"SELECT {sql} JOIN hivepipe.homes h ON h.id = t.home WHERE h.uuid = '{home.id()}'"
        )


@pytest.fixture
def disk() -> Iterator[Path | None]:
    """A small disk for the server, or None if this machine forbids mounts."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hp-disk-", dir="/tmp")))
        try:
            stack.enter_context(mounted(folder, "-t", "tmpfs", "-o", DISK, "tmpfs"))
        except pytest.skip.Exception:
            yield None
            return
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def scene(tmp_path: Path, disk: Path | None) -> Iterator[Scene]:
    with serving(None, *SMALL_LOG, within=disk) as server:
        team = Team.on(server)
        team.query("SELECT hivepipe.set_policy('*', 'everything')")
        made = Scene(team, tmp_path, random.Random(SEED), disk)
        yield made
        made.proxy.close()


@pytest.mark.long
def test_the_team_has_the_sum_of_the_homes(scene: Scene) -> None:
    scene.steps()
    rows = 0
    for home in scene.homes:
        rows += scene.check(home)
    assert min(scene.hits[effect] for effect in EFFECTS) > 0, scene.hits
    secret = "', '".join(scene.secret_sessions())
    for table, column in (("sessions", "id"), ("prompts", "session_id"), ("usage", "session_id")):
        assert scene.team.count(table, f"{column} IN ('{secret}')") == 0
    print(f"seed {SEED}: {rows} rows, {len(scene.homes)} homes, {dict(sorted(scene.hits.items()))}")

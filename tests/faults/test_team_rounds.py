"""Many homes, one team, and everything that can break between them, in seeded rounds.

In the end the team has the sum of the homes: no row lost, none twice, nothing of a secret project.
HIVEPIPE_TEST_ROUNDS asks for more rounds.
"""

import multiprocessing
import os
import random
import shutil
import signal
import socket
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hivepipe.db.changes import raise_version
from hivepipe.db.database import Database
from hivepipe.db.forget import remove_rows
from hivepipe.db.listings import listings
from hivepipe.errors import TeamError
from tests.postgres import serving
from tests.rounds import ASKED_ROUNDS
from tests.team_scene import HomeOfTeam, Team

HOMES = 12
STEPS = 60
SECRET = "/p/secret"  # pragma: allowlist secret


class Wire:
    """A proxy in front of the server that cuts connections after some bytes, or is slow."""

    def __init__(self, port: int, dice: random.Random) -> None:
        self.target, self.dice = port, dice
        self.cut_after: int | None = None
        self.delay = 0.0
        self.cuts = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                inner, _ = self._server.accept()
            except OSError:
                return
            try:
                outer = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                inner.close()
                continue
            budget = [self.cut_after if self.cut_after is not None else -1]
            for one, other in ((inner, outer), (outer, inner)):
                threading.Thread(target=self._pump, args=(one, other, budget), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket, budget: list[int]) -> None:
        with suppress(OSError):
            while data := one.recv(4096):
                time.sleep(self.delay)
                if 0 <= budget[0] < len(data):
                    self.cuts += 1
                    break
                budget[0] -= len(data) if budget[0] >= 0 else 0
                other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class Scene:
    """The team, its homes, and what is expected of them."""

    def __init__(self, team: Team, folder: Path, dice: random.Random) -> None:
        self.team, self.folder, self.dice = team, folder, dice
        self.wire = Wire(team.server.port, dice)
        self.hits: Counter[str] = Counter()
        self.homes: list[HomeOfTeam] = []
        self.kept: dict[str, set[str]] = {}  # home -> prompts that only the team has, by a restore
        share = {"*": "everything", "secret": "nothing"}
        for number in range(HOMES):
            login = team.joined(f"member{number % 4}", f"machine{number}").writes
            login = login._replace(host="127.0.0.1", port=self.wire.port)
            self.homes.append(HomeOfTeam(folder / str(number) / "hive.db", login, share))
        self.revoked: set[str] = set()
        self.sessions = 0

    def step(self) -> None:
        """Do one thing to one of them."""
        actions = {
            self.work: 10,
            self.ship: 6,
            self.kill_an_uplink: 4,
            self.crash_the_server: 1,
            self.cut_the_wire: 4,
            self.slow_the_wire: 1,
            self.delete_rows: 2,
            self.forget: 1,
            self.set_a_clock_ahead: 1,
            self.restore_a_home: 1,
            self.restore_the_server: 1,
            self.rewrite: 2,
        }
        act = self.dice.choices([*actions], [*actions.values()])[0]
        act(self.dice.choice(self.homes))
        self.hits[act.__name__] += 1

    def work(self, home: HomeOfTeam) -> None:
        self.sessions += 1
        project = self.dice.choice(["/p/blue", "/p/green", SECRET])
        home.work(f"session-{self.sessions}", self.dice.randrange(1, 40), project)

    def rewrite(self, home: HomeOfTeam) -> None:
        home.sql(f"UPDATE usage SET output = output + {self.dice.randrange(1, 9)}")

    def ship(self, home: HomeOfTeam) -> None:
        with suppress(TeamError):
            home.ship()

    def kill_an_uplink(self, home: HomeOfTeam) -> None:
        self.work(home)
        child = multiprocessing.get_context("fork").Process(target=home.ship)
        child.start()
        time.sleep(self.dice.random() * 0.25)
        if child.pid and child.is_alive():
            os.kill(child.pid, signal.SIGKILL)
            self.hits["... while it ran"] += 1
        child.join()

    def crash_the_server(self, home: HomeOfTeam) -> None:
        self.work(home)
        shipping = threading.Thread(target=self.ship, args=(home,))
        shipping.start()
        time.sleep(self.dice.random() * 0.1)
        self.team.server.stop(signal.SIGQUIT)
        shipping.join()
        with pytest.raises(TeamError):
            home.ship()
        self.team.server.start()

    def cut_the_wire(self, home: HomeOfTeam) -> None:
        self.work(home)
        self.wire.cut_after = self.dice.randrange(200, 9_000)
        self.ship(home)
        self.wire.cut_after = None

    def slow_the_wire(self, home: HomeOfTeam) -> None:
        self.wire.delay = 0.02
        self.ship(home)
        self.wire.delay = 0.0

    def delete_rows(self, home: HomeOfTeam) -> None:
        home.sql("DELETE FROM prompts WHERE id IN (SELECT id FROM prompts ORDER BY id LIMIT 3)")

    def forget(self, home: HomeOfTeam) -> None:
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
        """Its next versions are those of a clock that was a year ahead."""
        self.ship(home)
        with closing(Database(home.path)) as db:
            if db.row("SELECT 1 FROM sqlite_master WHERE name = 'team_changes'", {}):
                raise_version(db, int((time.time() + 31_536_000) * 1e6))

    def restore_a_home(self, home: HomeOfTeam) -> None:
        stale = home.path.with_name("stale.db")
        stale.unlink(missing_ok=True)
        self.until_shipped(home)
        with closing(sqlite3.connect(home.path)) as db:
            db.execute("VACUUM INTO ?", (str(stale),))
        self.work(home)
        self.until_shipped(home)
        name = home.path.parent.name
        self.kept.setdefault(name, set()).update(self.shared_prompts(home))
        for suffix in ("-wal", "-shm"):
            Path(f"{home.path}{suffix}").unlink(missing_ok=True)
        shutil.copy(stale, home.path)
        self.until_shipped(home)

    def restore_the_server(self, _home: HomeOfTeam) -> None:
        backup = self.folder / "backup"
        self.team.server.dump(self.team.database, backup)
        for home in self.homes:
            self.work(home)
            self.ship(home)
        self.team.server.restore(self.team.database, backup)

    def until_shipped(self, home: HomeOfTeam) -> None:
        for _ in range(3):
            with suppress(TeamError):
                home.ship()
                return
        home.ship()

    @staticmethod
    def shared_prompts(home: HomeOfTeam) -> set[str]:
        sql = """
            SELECT job_id FROM prompts JOIN sessions ON sessions.id = prompts.session_id
            WHERE sessions.project <> :secret
        """
        with listings(home.path) as store:
            return {row["job_id"] for row in store.rows(sql, {"secret": SECRET})}

    @staticmethod
    def shared_usage(home: HomeOfTeam) -> set[tuple[str, int]]:
        sql = """
            SELECT message_id, output FROM usage JOIN sessions ON sessions.id = usage.session_id
            WHERE sessions.project <> :secret
        """
        with listings(home.path) as store:
            rows = store.rows(sql, {"secret": SECRET})
            return {(row["message_id"], row["output"]) for row in rows}

    def of_team(self, home: HomeOfTeam, sql: str) -> list[list[str]]:
        return self.team.rows(
            f"SELECT {sql} JOIN hivepipe.homes h ON h.id = t.home WHERE h.uuid = '{home.id()}'"
        )


@pytest.fixture
def scene(tmp_path: Path, seed: int) -> Iterator[Scene]:
    with serving() as server:
        team = Team.on(server)
        team.asks("SELECT hivepipe.set_policy('*', 'everything')")
        made = Scene(team, tmp_path, random.Random(seed))
        yield made
        made.wire.close()


@pytest.mark.parametrize("seed", range(ASKED_ROUNDS or 2))
def test_the_team_has_the_sum_of_the_homes(scene: Scene, seed: int) -> None:
    for _ in range(STEPS):
        scene.step()
    for home in scene.homes:
        scene.until_shipped(home)
        kept = scene.kept.get(home.path.parent.name, set())
        prompts = [row[0] for row in scene.of_team(home, "t.job_id FROM hivepipe.prompts t")]
        assert len(prompts) == len({*prompts}), "twice"
        mine = scene.shared_prompts(home)
        assert mine <= {*prompts}, "lost"
        assert {*prompts} <= mine | kept, "more than there was"
        usage = scene.of_team(home, "t.message_id, t.output FROM hivepipe.usage t")
        found = {(message, int(output)) for message, output in usage}
        if not kept:
            assert found == scene.shared_usage(home)
    assert scene.team.count("sessions", "project = 'secret'") == 0
    print(f"seed {seed}: {dict(scene.hits)}, {scene.wire.cuts} cuts")

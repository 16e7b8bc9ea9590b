"""A team on a real PostgreSQL: an administrator, members, and homes with rows."""

import itertools
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from hivepipe.db.changes import CAPTURED, home_of
from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.team import address, invites, schema_steps
from hivepipe.team.address import Address
from hivepipe.team.connection import connected, one
from hivepipe.team.invites import Joined
from hivepipe.team.shared_rows import SHARED
from hivepipe.team.shipment import Shipment
from tests.postgres import Server
from tests.store_scene import new_database

ADMIN = "chief"
SECRET = "of-the-chief"  # pragma: allowlist secret
_numbers = itertools.count(1)
TABLES = tuple(SHARED)


@dataclass
class Team:
    """A database of a server, prepared by `team init`."""

    server: Server
    database: str

    @classmethod
    def on(cls, server: Server, how: str = "") -> "Team":
        """Make a database whose owner is an administrator without superuser rights."""
        team = cls(server, f"team{next(_numbers)}")
        known = "SELECT 1 FROM pg_roles WHERE rolname = '" + ADMIN + "'"
        if not server.psql(known):
            server.psql(f"CREATE ROLE {ADMIN} LOGIN CREATEROLE PASSWORD '{SECRET}'")
        server.psql(f"CREATE DATABASE {team.database} OWNER {ADMIN} {how}")
        with connected(team.admin) as connection:
            schema_steps.apply(connection)
        return team

    def copied(self) -> "Team":
        """Copy the database with its privileges, which is faster than to prepare another one."""
        made = Team(self.server, f"team{next(_numbers)}")
        psql = self.server.psql
        how = f"TEMPLATE {self.database} STRATEGY FILE_COPY"  # half the time of the default
        psql(f"CREATE DATABASE {made.database} OWNER {ADMIN} {how}")
        psql(
            "UPDATE pg_database SET datacl = ours.datacl FROM pg_database AS ours "
            f"WHERE pg_database.datname = '{made.database}' AND ours.datname = '{self.database}'"
        )
        return made

    @property
    def admin(self) -> Address:
        return address.parse(self.server.url(self.database, f"{ADMIN}:{SECRET}"))

    def query(self, sql: str, *values: Any) -> Any:
        with connected(self.admin) as connection:
            return one(connection, sql, *values)

    def invited(self, member: str, **how: Any) -> Address:
        return invites.read_code(self.joining_code(member, **how))

    def joining_code(self, member: str, **how: Any) -> str:
        lives = how.pop("lives", timedelta(hours=1))
        with connected(self.admin) as connection:
            place = self.admin.with_login("", "")
            return invites.invite(connection, place, member, lives, **how).code

    def joined(self, member: str, machine: str = "laptop", **how: Any) -> Joined:
        invited = self.invited(member, **how)
        with connected(invited) as connection:
            return invites.join(connection, invited, machine)

    def rows(self, sql: str) -> list[list[str]]:
        text = self.server.psql(sql, self.database)
        return [line.split("|") for line in text.splitlines()]

    def count(self, table: str, where: str = "true") -> int:
        return int(self.rows(f"SELECT count(*) FROM hivepipe.{table} WHERE {where}")[0][0])


@dataclass
class HomeOfTeam:
    """The database of a home, written as the writer does."""

    path: Path
    login: Address
    share: Mapping[str, str] = field(default_factory=lambda: {"*": "everything"})

    def __post_init__(self) -> None:
        if not self.path.exists():
            new_database(self.path).close()

    @property
    def home(self) -> str:
        return str(self.path.parent)

    def work(self, session: str, prompts: int = 3, project: str = "/p/blue") -> None:
        """Write a session with prompts and messages."""
        with closing(Database(self.path)) as db, db.transaction():
            db.execute(
                "INSERT INTO sessions (id, status, project, objective, created_at, updated_at) "
                "VALUES (:id, 'active', :project, 'a title', :at, :at) ON CONFLICT DO NOTHING",
                {"id": session, "project": project, "at": "2026-11-24T10:00:00.000Z"},
            )
            for number in range(prompts):
                self._turn(db, session, f"{session}-{next(_numbers)}-{number}")

    @staticmethod
    def _turn(db: Database, session: str, name: str) -> None:
        values = {"session": session, "job": f"job-{name}", "at": "2026-11-24T10:01:00.000Z"}
        db.execute(
            "INSERT INTO prompts (session_id, prompt, created_at, job_id) "
            "VALUES (:session, 'please do it', :at, :job)",
            values,
        )
        db.execute(
            "INSERT INTO usage VALUES (:job, 'r', :session, '', 0, 0, :at, 'claude-opus-5-5', "
            "'', '', 10, 20, 0, 0, 0, 0)",
            values,
        )

    def sql(self, sql: str) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as db:
            db.execute("PRAGMA foreign_keys=ON")
            db.execute(sql)

    def ship(self, batches: int = 1000) -> int:
        """Ship all rows, or a number of batches; return how many rows were sent."""
        with Shipment(self.home, self.login, self.share) as shipment:
            while batches and shipment.ship_next():
                batches -= 1
            return shipment.sent

    def count(self, table: str) -> int:
        with listings(self.path) as store:
            return int(store.rows(f"SELECT count(*) AS n FROM {table}", {})[0]["n"])

    def id(self) -> str:
        with listings(self.path) as store:
            return home_of(store).id


def same_rows(team: Team, *homes: HomeOfTeam) -> bool:
    """Return whether the team has as many rows as its homes in every table."""
    counts = ", ".join(f"(SELECT count(*) FROM hivepipe.{table})" for table in TABLES)
    (of_team,) = team.rows(f"SELECT {counts}")
    of_homes = [str(sum(home.count(table) for home in homes)) for table in TABLES]
    return of_team == of_homes and {each.table for each in CAPTURED} >= {*TABLES}

"""A killed `migrate`, and a killed undo of it, are finished by the next run.

The kill -9 comes at random calls that touch files, first at each line of the steps.
"""

import itertools
import json
import os
import shutil
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from hivepipe.home import data_folder, home_of_project, state_folder
from hivepipe.install import removal
from hivepipe.migration import record as records
from hivepipe.migration.carry_out import carry_out
from hivepipe.migration.plan import ASIDE, plan
from hivepipe.migration.undo import undo
from tests.conftest import Home
from tests.faults.harness import killed_at, random_of, watched
from tests.old_project import OldProject, states
from tests.rounds import rounds

ROUNDS = rounds(12)
TABLES = (
    *("swarms", "sessions", "agents", "instance_sessions", "session_logs", "tasks", "prompts"),
    *("skill_uses", "imported_skills", "imported_skill_sessions"),
)
# columns that differ between runs
_TIMES = {"applied_at", "imported_at", "job_id"}


class Scene:
    """A project of the predecessor, reset before each round."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.project = home.project
        self._kept = home.root / "kept"
        shutil.copytree(self.project, self._kept, copy_function=shutil.copy2)
        self.before = states(self.project)

    def reset(self) -> None:
        os.chdir("/")
        shutil.rmtree(self.project)
        for folder in (state_folder(), data_folder()):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._kept, self.project, copy_function=shutil.copy2)
        os.chdir(self.project)

    def migrate(self) -> None:
        carry_out(plan([]))

    def uninstall(self) -> None:
        removal.carry_out(removal.plan(user=False), purge=True)

    def undo(self) -> None:
        if records.read(str(self.project)):
            undo(str(self.project))

    def state(self) -> dict[str, Any]:
        """Return the final state: files, settings, record, archives and rows."""
        claude = self.project / ".claude"
        record = json.loads(next(Path(state_folder(), "migrated").iterdir()).read_text())
        return {
            "aside": states(self.project / ASIDE),
            "others": [path.name for path in self.project.glob(f"{ASIDE}*")],
            "settings": {path.name: path.read_bytes() for path in claude.glob("settings*.json")},
            "record": record,
            "archives": self._archives(),
            "rows": self._rows(),
        }

    def _archives(self) -> dict[str, bytes]:
        """Return the original archives, which must not change, and the copies."""
        logs = self.project / ".claude-state" / "logs"
        return {str(path.relative_to(logs)): path.read_bytes() for path in logs.rglob("*.jsonl")}

    def _rows(self) -> dict[str, list[Any]]:
        home = home_of_project(str(self.project))
        with closing(sqlite3.connect(f"{home}/hive.db")) as db:
            db.row_factory = sqlite3.Row
            return {table: self._rows_of(db, table) for table in (*TABLES, "imported")}

    def _rows_of(self, db: sqlite3.Connection, table: str) -> list[Any]:
        rows = [dict(row) for row in db.execute(f"SELECT * FROM {table}")]
        return sorted(str({name: row[name] for name in row if name not in _TIMES}) for row in rows)


@pytest.fixture
def scene(private_home: Home, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A scene whose project no process uses, so that none is looked for."""
    monkeypatch.setattr("hivepipe.migration.plan.find_processes", lambda *_: [])
    del private_home.env["HIVEPIPE_HOME"]
    private_home.use_environment(monkeypatch)
    monkeypatch.chdir(private_home.project)
    OldProject(private_home.project).whole("claude-flow")
    return Scene(private_home)


def step(frame: FrameType | None) -> int:
    """Return the line of carry_out.py that makes a call; 0 for none, as during the plan."""
    while frame and frame.f_code.co_filename != carry_out.__code__.co_filename:
        frame = frame.f_back
    return frame.f_lineno if frame else 0


@pytest.mark.long
def test_a_killed_migration_ends_like_an_undisturbed_one(scene: Scene) -> None:
    scene.reset()
    scene.migrate()
    undisturbed = scene.state()
    assert undisturbed["record"]["is_complete"]
    random = random_of("migrate")
    scene.reset()
    calls: dict[int, list[int]] = defaultdict(list)
    for call, line in enumerate(watched(scene.migrate, step), 1):
        calls[line].append(call)
    last = call
    killed = 0
    for line in itertools.islice(itertools.cycle(calls), max(ROUNDS, len(calls))):
        scene.reset()
        assert killed_at(random.choice(calls[line]), scene.migrate)
        while killed_at(random.randrange(1, last * 2), scene.migrate):
            killed += 1
        assert scene.state() == undisturbed
        scene.migrate()
        assert scene.state() == undisturbed
    print(f"{killed} later kills; calls by line: { {k: len(v) for k, v in calls.items()} }")


def test_a_killed_undo_restores_everything(scene: Scene) -> None:
    random = random_of("undo")
    killed = 0
    for _ in range(max(ROUNDS // 5, 5)):
        scene.reset()
        scene.migrate()
        scene.uninstall()
        while killed_at(random.randrange(1, 200), scene.undo):
            killed += 1
        after = states(scene.project)
        assert {name: state for name, state in after.items() if ".claude-state" not in name} == {
            name: state for name, state in scene.before.items() if ".claude-state" not in name
        }
        assert {path.name for path in Path(state_folder()).glob("*")} <= {"made"}
    assert killed

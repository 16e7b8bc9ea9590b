"""Two installed releases of hivepipe: today's and an invented next one with another envelope.

The next release is today's source with a few changes: the event's time has another name, the old
name is upgraded, and the schema has one more step.
"""

import shutil
import sysconfig
import venv
from functools import cached_property
from pathlib import Path

from tests.conftest import CLI, ROOT
from tests.forked import Forker
from tests.outcome import outcome_of

TODAY, NEXT = "1.0.0", "9.0.0"

_WHICH = """
import hivepipe, importlib.metadata
print(importlib.metadata.version("hivepipe"), hivepipe.__file__)
"""
_STEP = 'MIGRATIONS += (("9000 note", "ALTER TABLE sessions ADD COLUMN note TEXT;"),)\n'

# file, text in today's release, text in the next release
_CHANGES = (
    ("events/job_plan.py", "ENVELOPE_VERSION = 1\n", "ENVELOPE_VERSION = 2\n"),
    (
        "events/job_plan.py",
        '"event_time_ns": context.event_time_ns,',
        '"at_ns": context.event_time_ns,',
    ),
    ("jobs/envelope.py", 'value.get("event_time_ns")', 'value.get("at_ns")'),
    (
        "jobs/envelope.py",
        "dict[str, Any]]] = {}\n",
        'dict[str, Any]]] = {1: lambda old: {**old, "v": 2, "at_ns": old["event_time_ns"]}}\n',
    ),
    ("db/migrations.py", '_RECORDS = """', f'{_STEP}_RECORDS = """'),
)


class Release:
    """An installation: an interpreter with hivepipe in its site-packages, as pip installs it."""

    def __init__(self, folder: Path, version: str) -> None:
        """Install a version; it finds its dependencies in the site-packages of the tests."""
        venv.create(folder, symlinks=True)
        self.python = str(folder / "bin" / "python")
        (self._site,) = (folder / "lib").glob("python*/site-packages")
        (self._site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
        self.install(version)

    def install(self, version: str) -> None:
        """Replace the installed version by this one."""
        for old in self._site.glob("hivepipe*"):
            shutil.rmtree(old)
        ignored = shutil.ignore_patterns("hook_path.*")  # `up` makes these files
        for source, target in (("hivepipe", ""), ("hooks", "_hooks"), ("workers", "_workers")):
            shutil.copytree(ROOT / source, self.package / target, ignore=ignored)
        if version == NEXT:
            for name, old, new in _CHANGES:
                path = self.package / name
                text = path.read_text()
                assert old in text, f"{name} has no longer: {old}"
                path.write_text(text.replace(old, new))
        info = self._site / f"hivepipe-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: hivepipe\nVersion: {version}\n"
        )
        said = outcome_of([self.python, "-I", "-c", _WHICH], check=True)
        assert said.stdout.split() == [version, str(self.package / "__init__.py")]

    @property
    def package(self) -> Path:
        return self._site / "hivepipe"

    @property
    def hooks(self) -> Path:
        return self.package / "_hooks"

    @property
    def writer(self) -> list[str]:
        """The command that starts its writer."""
        return [self.python, "-I", str(self.package / "_workers" / "writer.py")]

    @cached_property
    def forker(self) -> Forker:
        return Forker([self.python], [self.python, *CLI[1:]])

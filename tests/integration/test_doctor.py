"""`hivepipe doctor` names each failure and a command, and the command repairs it."""

import json
import os
import shlex
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xmlrpc.client import ServerProxy

import pytest
import redis
from supervisor.xmlrpc import SupervisorTransport

from hivepipe.doctor.checks import CHECKS
from hivepipe.stack.redis_flaws import flaws_of
from hivepipe.stack.redis_server import version_of
from tests.conftest import find_server, until
from tests.installed import AS_USER, User
from tests.integration.test_install import has_claude
from tests.native import BUILT

Cause = Callable[[User], object]
Finding = dict[str, Any]


def unrelated_findings() -> set[str]:
    """Return the checks with findings in a healthy installation: they concern other programs."""
    version = version_of(find_server())
    return {"transcripts", "redis-version"} if version and flaws_of(version) else {"transcripts"}


def findings_of(user: User, cwd: Path | None = None, **env: str) -> dict[str, Finding]:
    """Return doctor's findings by check, and check that its exit code agrees."""
    done = user.do("hivepipe", "doctor", "--json", cwd=cwd, **env)
    report = json.loads(done.stdout)
    assert report["schema"] == 1
    assert done.returncode == (0 if report["healthy"] else 1)
    assert report["healthy"] == all(finding["is_note"] for finding in report["findings"])
    return {finding["check"]: finding for finding in report["findings"]}


def run_repair(user: User, finding: Finding) -> None:
    """Run the repair command of a finding in the project's folder, by a shell if it needs one.

    `init` ends without its probe, which fires every hook; `doctor --probe` is run once in the end.
    """
    mend = finding["mend"]
    words = [*shlex.split(mend), *["--no-probe"] * mend.startswith("hivepipe init")]
    done = user.do("sh", "-c", mend) if ";" in mend else user.do(*words)
    assert done.returncode == 0, f"{finding['mend']}\n{done.stdout}\n{done.stderr}"


@pytest.fixture
def healthy(user: User) -> User:
    """A user with hooks, a home and no stack; hooks start none unless a test enables it."""
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    return user


def home(user: User) -> Path:
    return user.recorded


def record(user: User) -> Path:
    """Return the record of the project, which is not that of its home."""
    code = "import sys; from hivepipe.home import record_path as r; print(r(sys.argv[1]), end='')"
    return Path(user.do(user.installation.bin / "python", "-c", code, user.project).stdout)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def users_settings(user: User, **settings: object) -> None:
    path = user.home / ".claude" / "settings.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(settings))
    user.own(path.parent)


def test_a_healthy_installation_has_no_findings_with_or_without_a_stack(healthy: User) -> None:
    assert set(findings_of(healthy)) == unrelated_findings()
    healthy.hivepipe("up", "-d")
    healthy.play_session()
    until(healthy.sessions, "no session was recorded")
    assert set(findings_of(healthy)) == unrelated_findings()
    output = healthy.hivepipe("doctor")
    assert "no problem found" in output, "only a probe can say more"
    assert "and every hook records" in healthy.hivepipe("doctor", "--probe")
    assert str(home(healthy)) in output


def test_the_text_names_the_failure_and_the_command(user: User) -> None:
    def repair() -> str:
        lines = user.hivepipe("doctor", expect=1).splitlines()
        return lines[lines.index("WRONG no hook is registered with Claude Code here") + 1]

    assert repair() == "      repair: hivepipe init"
    user.hivepipe("init", "--user")
    (user.home / ".claude" / "settings.json").write_text("{}")
    assert repair() == "      repair: hivepipe init --user", "of the hooks of all projects"


def test_a_lost_record_of_all_projects_is_repaired(user: User) -> None:
    user.hivepipe("init", "--user")
    records = user.home / ".local/state/hivepipe/projects"
    shutil.rmtree(records)
    assert findings_of(user)["record"]["mend"] == "hivepipe init --user"
    user.hivepipe("init", "--user")
    assert set(findings_of(user)) == unrelated_findings()


@pytest.mark.parametrize("wanted", ["native", "python"])
def test_doctor_shows_which_hook_runs_why_and_how_long_a_start_takes(
    healthy: User, wanted: str
) -> None:
    if not BUILT.exists():
        pytest.skip("no native hook for this machine")
    env = {"HIVEPIPE_HOOK": "python"} if wanted == "python" else {}
    healthy.hivepipe("init", **env)
    env["LANG"] = "C"  # executes `doctor`: a forked one starts each hook only once
    hook = json.loads(healthy.do("hivepipe", "doctor", "--json", **env).stdout)["hook"]
    assert (hook["kind"], bool(hook["reason"])) == (wanted, wanted == "python")
    assert hook["python_ms"] > hook["native_ms"] > 0
    assert hook["ratio"] == hook["python_ms"] / hook["native_ms"]
    output = healthy.hivepipe("doctor", **env)
    assert f"hook: {wanted}" in output
    assert "start time: native " in output


def test_doctor_reports_a_missing_native_hook(healthy: User) -> None:
    native = healthy.installation.folder / "hivepipe/_native"
    away = native.with_name("away")
    native.mkdir(exist_ok=True)
    native.rename(away)
    try:
        healthy.hivepipe("init")
        output = healthy.hivepipe("doctor")
    finally:
        away.rename(native)
    assert "hook: python (no native hook was built at the installation: that" in output


# ---- failures on disk, each mended by its command
def spool_old(user: User) -> None:
    folder = home(user) / "spool"
    user.fire("SessionStart", source="startup", session_id="old")
    (fresh,) = folder.glob("*.json")
    old = time.time_ns() - 7200 * 10**9
    fresh.rename(folder / f"{old:020d}_1.json")


def damage_database(user: User) -> None:
    user.fire("SessionStart", source="startup")
    user.hivepipe("drain")
    with (home(user) / "hive.db").open("r+b") as file:
        file.seek(4096 * 3)
        file.write(b"\xff" * 4096 * 6)


def launcher(user: User) -> Path:
    """Return the program that the settings name."""
    return Path(user.hooks()["Stop"][0]["command"])


def two_installations(user: User) -> None:
    here = launcher(user)
    other = here.parent.with_name("0123456789abcdef")
    shutil.copytree(here.parent, other)
    change(user.settings, str(here), str(other / "hook"))


def older_form(user: User) -> None:
    settings = json.loads(user.settings.read_text())
    script = f"{user.installation.folder}/hooks/pre_tool_use.py"
    hint = "# hivepipe: if this fails, run 'hivepipe init' again or delete this entry"
    (handler,) = settings["hooks"]["PreToolUse"][0]["hooks"]
    handler |= {
        "command": os.path.realpath(user.installation.bin / "python"),
        "args": ["-I", "-S", script, hint],
    }
    user.settings.write_text(json.dumps(settings, indent=2))


def lose_interpreter(user: User) -> None:
    path = launcher(user).with_name("hook.py")
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["#!/gone/python3 -IS", *lines[1:]]))


def shared_and_local(user: User) -> None:
    user.hivepipe("init", "--user")
    change(user.settings, '"timeout": 5', '"timeout": 4')


def open_to_others(user: User) -> None:
    for folder in (home(user), home(user).parent, home(user).parent.parent):
        folder.chmod(0o755)


def commit_by_force(user: User) -> None:
    user.git("init", "-q")
    user.hivepipe("move-home", "--in-tree")
    user.hivepipe("drain")
    user.git("add", "-f", ".hive-mind/hive.db")


def touch_modules(user: User) -> None:
    for path in (user.installation.folder / "hivepipe").glob("*.py"):
        os.utime(path)


def add_bad_file(user: User) -> None:
    for name in ("spool", "spool/bad"):
        (home(user) / name).mkdir(mode=0o700, exist_ok=True)
    (home(user) / "spool" / "bad" / "1.json").write_text("torn")


# in an order in which no failure has the same check as the one before it
REPAIRED: dict[str, tuple[str, Cause, str]] = {
    "hooks": ("hooks", lambda u: u.settings.unlink(), "no hook is registered"),
    "a record lost": ("record", lambda u: record(u).unlink(), "not registered"),
    "a moved interpreter": ("hook-programs", lose_interpreter, "/gone/python3"),
    "another installation": ("hook-origin", two_installations, "0123456789abcdef"),
    "a deleted program": ("hook-programs", lambda u: launcher(u).unlink(), "nothing is recorded"),
    "an event without a hook": (
        "hook-events",
        lambda u: change(u.settings, '"Stop"', '"Notification"'),
        "no hook for Stop",
    ),
    "a program without rights": (
        "hook-programs",
        lambda u: launcher(u).chmod(0o600),
        "cannot be executed",
    ),
    "an older form": ("hook-age", older_form, "as an older version did"),
    "an upgraded package": ("hook-version", touch_modules, "another version"),
    "hooks that others may write": ("hook-files", lambda u: launcher(u).chmod(0o777), "/hook"),
    "a python without hivepipe": (
        "python",
        lambda u: change(record(u), f"python={u.installation.bin}/python", "python=/bin/true"),
        "/bin/true",
    ),
    "two kinds of hooks": ("hooks-twice", shared_and_local, "one is enough"),
    "a file set aside": ("set-aside", add_bad_file, "1 event"),
    "another version": (
        "version",
        lambda u: change(record(u), "version=", "version=0.0.1-"),
        "0.0.1-",
    ),
    "a home that others may read": ("modes", open_to_others, "other users can"),
    "sockets that others may reach": (
        "sockets",
        lambda u: next((u.run_folder / "hivepipe").iterdir()).chmod(0o755),
        "is not private",
    ),
    "off": ("state", lambda u: u.hivepipe("off"), "hivepipe off"),
    "an old event": ("spool", spool_old, "1 event waits on disk, the oldest for 120 minutes"),
    "down": ("state", lambda u: u.hivepipe("down"), "hivepipe down"),
}
# Their commands do more than undo the failure.
REPAIRED_ALONE: dict[str, tuple[str, Cause, str]] = {
    "a home deleted": ("home", lambda u: shutil.rmtree(home(u)), "was deleted"),
    "a damaged database": ("database", damage_database, "damaged"),
    "a committed home": ("git", commit_by_force, ".hive-mind/hive.db"),
}


@pytest.mark.long
def test_a_failure_is_named_and_its_command_repairs_it(healthy: User) -> None:
    """Each time only the new failure is found: the command has repaired the previous one."""
    for name, (check, cause, text) in REPAIRED.items():
        cause(healthy)
        healthy.own(healthy.home)
        found = findings_of(healthy)
        changed_with = {"hook-version"} if check == "hook-programs" else set()
        assert found.keys() - unrelated_findings() - changed_with == {check}, name
        assert text in found[check]["text"], name
        run_repair(healthy, found[check])
    until(lambda: findings_of(healthy).keys() == unrelated_findings(), "it was not repaired")
    assert "and every hook records" in healthy.hivepipe("doctor", "--probe")


@pytest.mark.parametrize("name", REPAIRED_ALONE)
def test_a_failure_of_the_whole_home_is_named_and_repaired(healthy: User, name: str) -> None:
    check, cause, text = REPAIRED_ALONE[name]
    cause(healthy)
    healthy.own(healthy.home)
    finding = findings_of(healthy)[check]
    assert text in finding["text"]
    run_repair(healthy, finding)
    until(lambda: findings_of(healthy).keys() == unrelated_findings(), "it was not repaired")


def test_a_damaged_database_is_moved_aside_with_its_log(healthy: User) -> None:
    """SQLite would delete the log of a missing database, with the rows that are only there."""
    damage_database(healthy)
    _, *move, _ = findings_of(healthy)["database"]["mend"].split("; ")
    damaged = (home(healthy) / "hive.db").read_bytes()
    (home(healthy) / "hive.db-wal").write_text("log")
    (home(healthy) / "hive.db.damaged").write_text("an earlier one")
    healthy.own(healthy.home)
    assert healthy.do("sh", "-c", "; ".join(move)).returncode == 0
    contents = {path.read_bytes() for path in home(healthy).glob("hive.db.damaged*")}
    assert contents >= {damaged, b"log", b"an earlier one"}
    assert [path for path in home(healthy).glob("hive.db.damaged-*-wal")]
    assert not list(home(healthy).glob("hive.db-*"))


# ---- failures of a stack that runs
def stop_writer(user: User) -> None:
    (socket,) = user.run_folder.glob("hivepipe/*/supervisor.sock")
    transport = SupervisorTransport(None, None, f"unix://{socket}")
    with ServerProxy("http://127.0.0.1", transport=transport) as proxy:
        known = proxy.supervisor.getAllProcessInfo()
        groups = {entry["name"]: entry["group"] for entry in known}
        proxy.supervisor.stopProcess(f"{groups['writer']}:writer")


def signal_process(user: User, kind: str, name: str) -> None:
    os.kill(user.pid(kind), signal.Signals[f"SIG{name}"])


def fail_a_job(user: User) -> None:
    user.fire("SessionStart", source="startup")
    user.hivepipe("down")
    (spooled,) = write_unknown_job(user)
    assert spooled.exists()
    user.hivepipe("up", "-d")
    until(lambda: "failed-jobs" in findings_of(user), "the job did not fail")


def write_unknown_job(user: User) -> list[Path]:
    user.fire("UserPromptSubmit", prompt="x")
    spooled = sorted((home(user) / "spool").glob("*.json"))[-1:]
    for path in spooled:
        change(path, '"operation":"activate_session"', '"operation":"from_the_future"')
    return spooled


def fill_redis(user: User) -> None:
    with redis.Redis.from_url(user.hivepipe("url").strip()) as client:
        client.setrange("large", 250 * 2**20, b"x")  # the limit is 256 MB


def push_a_foreign_job(user: User) -> None:
    signal_process(user, "writer", "STOP")
    with redis.Redis.from_url(user.hivepipe("url").strip()) as client:
        client.hset("rq:job:theirs", mapping={"data": "x", "status": "queued"})
        client.rpush("rq:queue:low", "theirs")


def report_trouble(user: User) -> None:
    with redis.Redis.from_url(user.hivepipe("url").strip()) as client:
        mapping = {"since": str(time.time() - 60), "reason": "disk is full"}
        client.hset("hivepipe:trouble", mapping=mapping)


RUNNING: dict[str, tuple[str, Cause, str, bool]] = {
    "no supervisor": (
        "supervisor",
        lambda u: signal_process(u, "supervisord", "KILL"),
        "without their supervisor",
        True,
    ),
    "a suspended supervisor": (
        "supervisor",
        lambda u: signal_process(u, "supervisord", "STOP"),
        "is suspended",
        True,
    ),
    "Redis hangs": ("redis", lambda u: signal_process(u, "-server", "STOP"), "not answer", True),
    "no writer": ("programs", stop_writer, "the writer does not run", True),
    "a suspended writer": (
        "programs",
        lambda u: signal_process(u, "writer.py", "STOP"),
        "the writer is suspended",
        True,
    ),
    "a large log of the database": (
        "wal",
        lambda u: os.truncate(home(u) / "hive.db-wal", 70_000_000),
        "70 MB",
        True,
    ),
    "a deleted log of the database": (
        "wal",
        lambda u: [each.unlink() for each in home(u).glob("hive.db-wal")],
        "was deleted",
        True,
    ),
    "a failed job": ("failed-jobs", fail_a_job, "1 failed job", False),
    "a foreign job": (
        "foreign-jobs",
        push_a_foreign_job,
        "1 waiting jobs are not hivepipe's",
        False,
    ),
    "the store's trouble": ("store", report_trouble, "disk is full", False),
    # last, because Redis refuses writes afterwards
    "a full Redis": ("redis-memory", fill_redis, "Redis is full", False),
}


def caused(user: User, check: str, cause: Cause) -> Finding | None:
    """Cause a failure and find it; on a busy machine a worker may replace the supervisor first."""
    cause(user)
    end = time.monotonic() + 20
    while not (finding := findings_of(user).get(check)) and time.monotonic() < end:
        time.sleep(0.1)
    return finding


@pytest.mark.long
def test_failures_of_a_running_stack_are_named_and_repaired(healthy: User) -> None:
    healthy.hivepipe("up", "-d")
    healthy.fire("SessionStart", source="startup")
    until(healthy.sessions, "no session was recorded")
    for name, (check, cause, text, is_repaired) in RUNNING.items():
        assert check not in findings_of(healthy), f"{name}: present before the failure"
        finding = until(lambda found=(check, cause): caused(healthy, *found), name)
        assert text in finding["text"], name
        if is_repaired:
            run_repair(healthy, finding)
            until(lambda check=check: check not in findings_of(healthy), f"{name}: not repaired")
    dead = findings_of(healthy)["failed-jobs"]
    assert dead["mend"] == "hivepipe failed retry --all"
    run_repair(healthy, dead)


def test_a_failed_start_by_hooks_is_named_with_its_reason(healthy: User) -> None:
    folder = next((healthy.run_folder / "hivepipe").iterdir())
    (folder / "starting").write_text(f"{time.time() + 600} 3 the disk is full\n")
    healthy.own(folder)
    finding = findings_of(healthy)["autostart"]
    assert "3 times: the disk is full" in finding["text"]
    run_repair(healthy, finding)
    assert "autostart" not in findings_of(healthy)


# ---- failures that only a person can repair, and notes
def own_file(user: User, path: Path, text: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    user.own(path.parent)


def store_later_schema(user: User) -> None:
    user.fire("SessionStart", source="startup")
    user.hivepipe("drain")
    with sqlite3.connect(home(user) / "hive.db") as db:
        db.execute("INSERT INTO schema_migrations VALUES ('9999 future', 'now')")


HOOK_ERROR = "[2026-11-21T01:00:00Z] [stop] [ERROR] No space left on device\n"
REFUSED = (
    "[2026-11-21T01:00:01Z] [archive-transcript] [WARNING] transcript refused: it is not a file\n"
)


def test_failures_that_only_a_person_can_repair_are_named(healthy: User) -> None:
    store_later_schema(healthy)
    users_settings(healthy, disableAllHooks=True)
    state = healthy.home / ".claude.json"
    state.write_text(json.dumps({"projects": {str(healthy.project): {}}}))
    own_file(healthy, home(healthy) / "logs" / "hook-errors.log", HOOK_ERROR)
    own_file(healthy, home(healthy) / "config.toml", "nonsense = 1\n")
    found = findings_of(healthy)
    for check, text in {
        "database": "newer hivepipe",  # and not damaged
        "all-hooks-off": "disableAllHooks",
        "trust": "until",
        "hook-errors": "No space left",
        "config": "nonsense",
    }.items():
        assert text in found[check]["text"]
    assert found["database"]["mend"] == ""
    own_file(healthy, home(healthy) / "logs" / "hook-errors.log", HOOK_ERROR + REFUSED)
    assert "2 errors, the last one" in findings_of(healthy)["hook-errors"]["text"]

    local = healthy.project / ".claude" / "settings.local.json"
    local.write_text(json.dumps(json.loads(local.read_text()) | {"disableAllHooks": False}))
    state.write_text(json.dumps({"numStartups": 1}))
    found = findings_of(healthy)
    assert "all-hooks-off" not in found  # the project's own file overrides the user's
    assert "until" in found["trust"]["text"]

    (healthy.home / ".claude" / "settings.json").write_text("{,}")
    trusted = {str(healthy.home): {"hasTrustDialogAccepted": True}}
    state.write_text(json.dumps({"projects": trusted}))
    found = findings_of(healthy)
    assert "not valid JSON" in found["settings"]["text"]
    assert "trust" not in found


def test_environment_variables_that_disable_hooks_are_named(healthy: User) -> None:
    for variables in (
        {"ci": "CI", "environment": "HIVEPIPE_DISABLED"},
        {"ci": "CLAUDE_CODE_REMOTE", "environment": "CLAUDE_CODE_SIMPLE"},
        {"environment": "CLAUDE_CODE_SAFE_MODE"},
        {"environment": "CLAUDE_CODE_RESTRICTED"},
    ):
        found = findings_of(healthy, **dict.fromkeys(variables.values(), "1"))
        for check, variable in variables.items():
            assert variable in found[check]["text"]
        assert "environment" not in findings_of(healthy, **{variables["environment"]: "0"})
    found = findings_of(healthy, CLAUDE_CONFIG_DIR="conf")
    assert "CLAUDE_CONFIG_DIR=conf is relative" in found["environment"]["text"]


def use_server(user: User, server: Path) -> None:
    own_file(user, user.home / ".config/hivepipe/config.toml", f'redis_server = "{server}"\n')
    user.own(user.home)


def test_a_missing_server_is_named_and_the_spool_can_be_drained_without_it(healthy: User) -> None:
    spool_old(healthy)
    use_server(healthy, Path("/gone/redis-server"))
    found = findings_of(healthy)
    assert "redis_server = /gone/redis-server" in found["redis-server"]["text"]
    assert found["spool"]["mend"] == "hivepipe drain"
    run_repair(healthy, found["spool"])
    assert "spool" not in findings_of(healthy)
    assert healthy.sessions()


def test_the_known_flaws_of_a_server_are_named_until_a_later_one_is_set(healthy: User) -> None:
    def named(version: str) -> dict[str, Finding]:
        server = healthy.home / "redis-server"
        server.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=0:0'\n")
        server.chmod(0o755)
        use_server(healthy, server)
        return findings_of(healthy)

    found = named("6.2.14")["redis-version"]
    assert found["is_note"]
    assert "Redis 6.2.14" in found["text"]
    assert "CVE-2024-46981, " in found["text"]
    assert "CVE-2025-49844, " in found["text"]
    for version in ("6.2.22", "7.0.15"):
        assert "redis-version" not in named(version)
    later = flaws_of((6, 2, 19))
    assert "CVE-2025-49844" in later
    assert not [flaw for flaw in later if flaw.startswith("CVE-2024")]


@pytest.mark.parametrize("form", ["--local", "--project"])
def test_a_hook_that_was_edited_by_hand_is_named_here_and_by_uninstall(
    user: User, form: str
) -> None:
    user.hivepipe("init", form)
    assert "hook-edited" not in findings_of(user)
    name = "settings.local.json" if form == "--local" else "settings.json"
    path = user.project / ".claude" / name
    settings = json.loads(path.read_text())
    (hook,) = settings["hooks"]["Stop"][0]["hooks"]
    hook["command"] = " ".join([hook["command"], *hook.pop("args", [])]) + " || true"
    path.write_text(json.dumps(settings))
    assert findings_of(user)["hook-edited"]["is_note"]
    assert f"{name}: a hook there runs" in " ".join(user.hivepipe("uninstall").split())
    assert json.loads(path.read_text())["hooks"].keys() == {"Stop"}
    assert "a hook there runs" in " ".join(user.hivepipe("uninstall").split())


def test_hooks_by_name_without_a_program_are_named_and_repaired(user: User) -> None:
    user.hivepipe("init", "--project")
    assert "hook-by-name" not in findings_of(user)
    shutil.rmtree(user.home / ".local/state/hivepipe/hooks")
    assert "hook-by-name" not in findings_of(user), "hivepipe-hook is on PATH"
    only = user.home / "only"
    only.mkdir()
    (only / "hivepipe").symlink_to(user.installation.bin / "hivepipe")
    user.own(only)
    user.env["PATH"] = f"{only}:{user.home}/.local/bin:/usr/bin:/bin"
    run_repair(user, findings_of(user)["hook-by-name"])
    assert "hook-by-name" not in findings_of(user)


def test_hooks_by_name_whose_python_was_removed_are_named_and_repaired(user: User) -> None:
    user.env["HIVEPIPE_HOOK"] = "python"
    user.hivepipe("init", "--project")
    assert "hook-programs" not in findings_of(user)
    hook = user.home / ".local/state/hivepipe/hooks/default/hook.py"
    first, _, rest = hook.read_text().partition("\n")
    gone = user.home / "gone/python3"
    hook.write_text(f"#!{gone} -IS\n{rest}")
    finding = findings_of(user)["hook-programs"]
    assert str(gone) in finding["text"]
    run_repair(user, finding)
    assert "hook-programs" not in findings_of(user)
    assert hook.read_text().startswith(first)


def test_events_new_or_unknown_to_claude_code_are_named(healthy: User) -> None:
    has_claude(healthy, "2.1.330")
    found = findings_of(healthy)["hook-events"]
    assert "UserPromptExpansion" in found["text"]
    run_repair(healthy, found)
    assert "hook-events" not in findings_of(healthy)
    has_claude(healthy, "2.1.101")
    assert findings_of(healthy)["hook-events-unknown"]["is_note"], "it skips the event"
    has_claude(healthy, "2.1.100")
    found = findings_of(healthy)["hook-events-unknown"]
    assert "Claude Code 2.1.100 does not know: it ignores the whole file" in found["text"]
    run_repair(healthy, found)
    assert "hook-events-unknown" not in findings_of(healthy)


@pytest.mark.skipif(not AS_USER, reason="only root can make what belongs to somebody else")
def test_foreign_files_are_named(healthy: User) -> None:
    (home(healthy) / "spool").mkdir(mode=0o700)
    finding = findings_of(healthy)["owner"]
    assert "spool belongs to another user" in finding["text"]
    assert finding["mend"].startswith("sudo chown")


def test_obstacles_in_the_archive_folder_are_named(healthy: User) -> None:
    folder = home(healthy) / "archive"
    obstacles: tuple[tuple[str, Callable[[Path], object]], ...] = (
        (".archive-locks", Path.touch),
        ("main-session", lambda path: path.symlink_to("elsewhere")),
        ("subagent", lambda path: path.mkdir(0o500)),
        ("archive-index.json", lambda path: path.symlink_to("elsewhere")),
        ("archive-index.json", Path.mkdir),
        ("", Path.touch),
    )
    for name, make in obstacles:
        shutil.rmtree(folder, ignore_errors=True)
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        make(path)
        healthy.own(home(healthy))
        assert findings_of(healthy)["exports"]["text"].startswith(str(path))


def test_a_users_gitignore_that_misses_files_of_the_home_is_named(user: User) -> None:
    ignore = user.project / ".hive-mind" / ".gitignore"
    ignore.parent.mkdir()
    ignore.write_text("hive.db\n")
    user.own(user.project)
    user.git("init", "-q")
    user.hivepipe("init", "--in-tree")
    assert "hive.db-wal" in findings_of(user)["git-ignore"]["text"]
    ignore.write_text("hive.db*\n*\n")
    assert "git-ignore" not in findings_of(user)


def test_every_check_has_a_test() -> None:
    here, unit = Path(__file__), Path(__file__).parents[1] / "unit"
    files = (
        here,
        here.with_name("test_plugin.py"),
        unit / "test_doctor_checks.py",
        unit / "test_llm_providers.py",
        unit / "test_reduced_stacks.py",
        here.with_name("test_migrate.py"),
        here.with_name("test_odd_homes.py"),
        here.with_name("test_search_command.py"),
        here.with_name("test_trust.py"),
    )
    text = "".join(file.read_text() for file in files)
    assert [name for name in CHECKS if f'"{name}"' not in text] == []

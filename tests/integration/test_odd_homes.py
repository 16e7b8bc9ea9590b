"""doctor names the cause of an unusual HOME, a small limit, open modes or a Procfile."""

import json
import resource
import shutil
from pathlib import Path
from typing import Any

import pytest

from hivepipe.install.hook_entries import events_of
from tests.conftest import NEUTRAL, until
from tests.installed import AS_USER, User
from tests.integration.test_doctor import findings_of, run_repair

HOMES = {
    "none": None,
    "empty": "",
    "relative": "relative",
    "missing": "/nonexistent/ana",
    "not writable": "{closed}",
    "below one that is not writable": "{closed}/ana",
    "a file": "/etc/passwd",
    "not readable": "{dark}",
}


def set_home(user: User, home: str | None) -> None:
    """Set the user's HOME to another value."""
    closed, dark = (user.project.parent / name for name in ("closed", "dark"))
    for folder, mode in ((closed, 0o555), (dark, 0)):
        folder.mkdir(exist_ok=True)
        folder.chmod(mode)
    assert user.do("sh", "-c", f"echo x > '{closed}/probe'").returncode, "the folder is writable"
    user.env.pop("HOME", None)
    if home is not None:
        user.env["HOME"] = home.format(closed=closed, dark=dark)


@pytest.mark.skipif(not AS_USER, reason="the tests run as a user whose password entry has a home")
def test_init_and_doctor_name_an_unusable_home(user: User) -> None:
    """`nobody` has no home in the password database either."""
    for home in HOMES.values():
        set_home(user, home)
        done = user.do("hivepipe", "init")
        assert done.returncode == 1
        assert "keeps its records in" in done.stderr
        assert "set HOME, or XDG_STATE_HOME and XDG_DATA_HOME" in done.stderr
        assert ("HOME is not set" in done.stderr) == (not home)
        assert not user.settings.exists()
        assert "keeps its records in" in findings_of(user)["state-folder"]["text"]
    user.env["XDG_STATE_HOME"] = str(user.run_folder / "state")
    assert "keeps its records in" in user.hivepipe("init", expect=1)
    user.env["XDG_DATA_HOME"] = str(user.run_folder / "data")
    known = len(events_of(None))
    assert f"{known} of {known} hooks recorded" in user.hivepipe("init", "--probe")
    assert "state-folder" not in findings_of(user)


def test_a_command_names_a_home_that_cannot_be_read(user: User) -> None:
    set_home(user, HOMES["not readable"])
    for words in (("status",), ("up", "-d")):
        output = user.hivepipe(*words, expect=1)
        assert output.endswith("Permission denied; set HOME to a folder of your own\n")


def test_a_hook_spools_its_event_with_any_home(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    for number, home in enumerate(HOMES.values(), 1):
        set_home(user, home)
        assert user.fire("SessionStart", source="startup") == [NEUTRAL]
        assert len(list((user.recorded / "spool").glob("*.json"))) == number


def test_a_script_gets_the_path_of_the_home_unchanged(user: User) -> None:
    user.env["HOME"] = f"{user.home}/\u5c71\u7530\u3000\u592a\u90ce\ttab \u0645\u06cc\u200c"
    user.hivepipe("init")
    assert Path(user.hivepipe("home").removesuffix("\n")).is_dir()


@pytest.fixture(params=["native", "python"])
def hooked(user: User, request: pytest.FixtureRequest) -> User:
    """A user with one kind of hook and without a stack."""
    user.env |= {"HIVEPIPE_AUTOSTART": "0", "HIVEPIPE_HOOK": request.param}
    user.hivepipe("init")
    return user


def close(user: User, *folders: Path) -> None:
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o555)
        assert user.do("touch", folder / "probe").returncode, "the folder is writable"


def test_a_read_only_home_does_not_stop_claude_code(hooked: User) -> None:
    parts = ("spool", "instances", "sessions", "logs", "")
    close(hooked, *(hooked.recorded / part for part in parts))
    before = hooked.files(hooked.recorded)
    for event in ("SessionStart", "Stop"):
        assert hooked.fire(event) == [NEUTRAL]
    assert hooked.files(hooked.recorded) == before
    logs = hooked.recorded / "logs"
    logs.chmod(0o777)
    assert hooked.fire("Stop") == [NEUTRAL]
    first = (logs / "hook-errors.log").read_text().splitlines()[0]
    reason = "the home accepts no file (Permission denied); event kept in /"
    assert f"[spool] [WARNING] {reason}" in first


def test_a_home_that_cannot_be_made_does_not_stop_claude_code(hooked: User) -> None:
    shutil.rmtree(hooked.recorded)
    close(hooked, hooked.recorded.parent)
    assert hooked.fire("Stop") == [NEUTRAL]
    assert list(hooked.recorded.parent.iterdir()) == []


def test_a_home_that_another_user_may_write_is_used(hooked: User) -> None:
    for folder in (hooked.recorded.parent, hooked.recorded):
        folder.chmod(0o777)
    assert hooked.fire("Stop") == [NEUTRAL]
    assert len(list((hooked.recorded / "spool").glob("*.json"))) == 1


def run_limited(user: User, limit: int, *words: str) -> Any:
    """Run a command in a shell with a soft and a hard limit."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    blocks = limit // 1024
    shell = ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "sh", *words]
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == before
    return user.do(*shell)


def test_init_names_the_file_and_the_limit(user: User) -> None:
    user.hivepipe("init", "--dry-run")  # Python writes torn .pyc files within a limit
    for kb in (0, 1, 16, 40):
        done = run_limited(user, kb * 1024, "hivepipe", "init")
        assert done.returncode == 1
        assert f"no file may grow beyond {kb * 1024:,} bytes here (ulimit -f)" in done.stderr
        assert str(user.home) in done.stderr
        assert not user.settings.exists()


def create_database(user: User) -> None:
    """Create a small database, without a stack."""
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    user.fire("SessionStart", source="startup")
    user.hivepipe("drain")


def test_a_small_limit_is_named_and_not_called_damage(user: User) -> None:
    create_database(user)
    for kb in (4, 40):
        done = run_limited(user, kb * 1024, "hivepipe", "doctor", "--json")
        found = {entry["check"]: entry for entry in json.loads(done.stdout)["findings"]}
        assert "ulimit -f" in found["file-size"]["text"]
        assert f"{kb * 1024:,} bytes" in found["file-size"]["text"]
        assert not any("damaged" in entry["text"] for entry in found.values())
        assert not any("mv " in entry["mend"] for entry in found.values())
        user.fire("UserPromptSubmit", prompt=f"hello {kb}", prompt_id=f"p{kb}")
        done = run_limited(user, kb * 1024, "hivepipe", "drain")
        assert done.returncode == 0 or "ulimit -f" in done.stderr
        assert "file-size" not in findings_of(user)
        assert "database" not in findings_of(user)


def test_a_small_limit_of_processes_is_named(user: User) -> None:
    create_database(user)
    limited = user.do("bash", "-c", "ulimit -u 1; exec hivepipe up -d")
    assert limited.returncode == 1
    assert "Resource temporarily unavailable (too many processes: ulimit -u" in limited.stderr


def test_a_small_limit_of_memory_is_named_until_a_restart_without_it(user: User) -> None:
    create_database(user)
    done = user.do("bash", "-c", "ulimit -v 500000; exec hivepipe up -d")
    assert done.returncode == 0, done.stderr
    finding = findings_of(user)["memory-limit"]
    assert "more than 512 MB of memory: it was started in a shell with ulimit -v" in finding["text"]
    run_repair(user, finding)
    assert "memory-limit" not in findings_of(user)
    user.hivepipe("down")


def test_a_stack_starts_within_limits_and_raises_a_soft_one(user: User) -> None:
    create_database(user)
    limits = "ulimit -S -f 40; ulimit -n 64 -u 100"
    done = user.do("bash", "-c", f"{limits}; exec hivepipe up -d")
    assert done.returncode == 0, done.stderr
    assert "file-size" not in findings_of(user)
    user.play_session()
    until(lambda: user.sessions()[0]["status"] == "ended", "the writer could not write")
    user.hivepipe("down")


def test_a_supervisor_that_ends_at_once_is_reported_with_its_error(user: User) -> None:
    create_database(user)
    done = user.do("bash", "-c", "ulimit -n 16; exec hivepipe up -d")
    assert done.returncode == 1
    # Either supervisord or Redis meets the limit first; Redis may be starting again just then.
    reasons = ("ended at once: OSError: [Errno 24] Too many open files", "Redis does not ")
    assert any(reason in done.stderr for reason in reasons), done.stderr
    assert "no more than 16 files (ulimit -n)" in done.stderr


def test_a_stack_with_a_small_limit_is_named_by_doctor(user: User) -> None:
    create_database(user)
    run_limited(user, 40 * 1024, "hivepipe", "up", "-d")
    found = findings_of(user)
    assert "file-size" in found, found
    assert "database is intact" in found["file-size"]["text"]
    user.hivepipe("down")


def test_a_readable_config_in_a_private_folder_is_allowed(user: User) -> None:
    user.hivepipe("init")
    config = user.recorded / "config.toml"
    config.write_text("idle_secs = 60\n")
    config.chmod(0o644)
    user.own(config)
    assert "modes" not in findings_of(user)
    config.parent.chmod(0o755)
    assert "modes" in findings_of(user)


def test_a_hive_readable_by_others_is_named_and_repaired(user: User) -> None:
    user.hivepipe("init")
    hive = user.project / ".hive"
    (hive / "workers").mkdir(parents=True)
    user.own(hive)
    user.hivepipe("hive", "init", "--adopt")
    hive.chmod(0o755)
    found = findings_of(user)["modes"]
    assert str(hive) in found["text"]
    assert user.do("sh", "-c", found["mend"]).returncode == 0
    assert "modes" not in findings_of(user)


def start(user: User, folder: Path, *names: str) -> None:
    """Start processes as the manager of a Procfile does."""
    script = folder / "procfile.sh"
    workers = user.installation.folder / "workers"
    python = user.installation.bin / "python"
    lines = [f"'{python}' -I '{workers}/{name}.py' >/dev/null 2>&1 &" for name in names]
    script.write_text("\n".join([*lines, ""]))
    home = str(user.recorded)
    assert user.do("sh", script, HIVEPIPE_HOME=home).returncode == 0


def test_processes_of_a_procfile_need_no_supervisor(user: User, folder: Path) -> None:
    user.hivepipe("init")
    start(user, folder, "redis", "writer", "slow", "llm", "scheduler")
    until(lambda: "redis" in " ".join(user.processes()), "Redis did not start")
    user.play_session()
    until(lambda: [each["id"] for each in user.sessions()] == ["s1"], "no session was recorded")
    found = findings_of(user)
    assert [entry for entry in found.values() if not entry["is_note"]] == []
    assert user.do("hivepipe", "status").returncode == 0
    user.end_all()


def test_a_redis_of_a_procfile_without_its_socket_is_named(user: User, folder: Path) -> None:
    user.hivepipe("init")
    start(user, folder, "redis", "scheduler")
    runtime = Path(user.env["XDG_RUNTIME_DIR"], "hivepipe")
    until(
        lambda: "redis" not in findings_of(user) and list(runtime.glob("*/redis.sock")), "no Redis"
    )
    (sock,) = runtime.glob("*/redis.sock")
    sock.unlink()
    found = findings_of(user)["redis"]
    assert "its socket is missing; events wait on disk" in found["text"]
    assert user.do("hivepipe", "status").returncode == 1
    assert user.do("sh", "-c", found["mend"]).returncode == 0
    until(
        lambda: "run without Redis" in findings_of(user)["redis"]["text"], "the old finding stays"
    )
    start(user, folder, "redis")
    until(lambda: "redis" not in findings_of(user), "it is not found again")
    user.end_all()

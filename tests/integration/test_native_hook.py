"""The native hook, with an intake and without one."""

import fcntl
import json
import os
import platform
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hivepipe.home import short_hash
from hivepipe.hook.frame import Frame
from hivepipe.hook.greeting import part_path, project_part
from hivepipe.operations.late_notes import replay_notes
from hivepipe.queue.activity import take_activity
from tests import payloads
from tests.conftest import PATIENCE_SECS, ROOT, until
from tests.native import BUILT, HookHome, jobs_of, may_trace
from tests.payloads import encoded

pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="no native hook for this machine")


def test_without_an_intake_the_raw_event_is_spooled(hook_home: HookHome) -> None:
    assert hook_home.fire(hook_home.native, "Stop", encoded(payloads.STOP)) == b""
    (raw,) = hook_home.raw()
    assert raw.stat().st_mode & 0o777 == 0o600
    hook_home.convert()
    assert hook_home.raw() == []
    (spooled,) = hook_home.home.spool
    assert spooled.stem == raw.stem
    operations = {job["envelope"]["operation"] for job in json.loads(spooled.read_text())["jobs"]}
    assert {"start_session", "pause_session"} <= operations


@pytest.mark.parametrize("with_intake", [True, False])
@pytest.mark.parametrize(("late", "failed"), [(payloads.PRE_BASH, 1), (payloads.POST_BASH, 0)])
def test_a_batch_is_counted_after_raw_events(
    hook_home: HookHome, late: payloads.Payload, failed: int, with_intake: bool
) -> None:
    """The stack is back, perhaps without the intake, and no event is converted yet."""
    server = hook_home.redis()
    call = {name: late[name] for name in ("tool_name", "tool_input", "tool_use_id")}
    hook_home.intake()
    if late is payloads.POST_BASH:
        called = payloads.changed(payloads.PRE_BASH, **call)
        hook_home.fire(hook_home.native, "PreToolUse", encoded(called))
    hook_home.end()
    server.end(signal.SIGKILL)
    hook_home.fire(hook_home.native, late["hook_event_name"], encoded(late))
    assert hook_home.raw()
    server.start()
    if with_intake:
        hook_home.intake()
    batch = payloads.changed(payloads.POST_BATCH, tool_calls=[call | {"tool_response": "Done."}])
    for _ in range(2):
        hook_home.fire(hook_home.native, "PostToolBatch", encoded(batch))
    hook_home.convert()
    with server.client() as client:
        replay_notes(client, str(hook_home.home.path))
        (found,) = take_activity(client)
    assert (found.calls, found.failed, found.open_calls) == (1, failed, 0)


@pytest.mark.parametrize("with_intake", [True, False])
@pytest.mark.parametrize("secs", [-3600, 3600])
def test_a_batch_does_not_wait_for_an_event_that_is_never_converted(
    hook_home: HookHome, secs: int, with_intake: bool
) -> None:
    server = hook_home.redis()
    if with_intake:
        hook_home.intake()
    stuck = hook_home.home.path / "spool" / f"{time.time_ns() + secs * 10**9:020d}_1.raw"
    stuck.parent.mkdir(mode=0o700, exist_ok=True)
    stuck.symlink_to("/dev/null")
    hook_home.fire(hook_home.native, "PostToolBatch", encoded(payloads.POST_BATCH))
    assert hook_home.raw() == [stuck]
    with server.client() as client:
        assert take_activity(client)


def test_the_python_hook_handles_events_with_output_and_all_if_it_is_set(
    hook_home: HookHome,
) -> None:
    """There is no intake, which would give the answer without the Python hook."""
    python = {"HIVEPIPE_HOOK": "python"}
    for event, env in (("SessionStart", {}), ("UserPromptSubmit", {}), ("Stop", python)):
        hook_home.forget(None)
        hook_home.fire(hook_home.native, event, encoded(payloads.EVENTS[event]), **env)
        assert hook_home.raw() == []
        assert len(hook_home.home.spool) == 1


def long_folder(top: Path, size: int = 1020) -> Path:
    """Return a path below `top` of this many bytes; the native hook reads paths up to 1,023."""
    parts = [str(top)]
    while (left := size - len("/".join(parts)) - 1) > 0:
        parts.append("d" * min(left, 200))
    return Path(*parts)


def test_a_hook_with_a_long_path_records(hook_home: HookHome) -> None:
    """Its state folder is long."""
    state = long_folder(hook_home.home.root)
    shutil.copytree(hook_home.home.root / "state", state)
    program = state / hook_home.native.relative_to(hook_home.home.root / "state")
    hook_home.fire(program, "Stop", encoded(payloads.STOP), XDG_STATE_HOME=str(state))
    assert len(hook_home.home.spool) == 1


@pytest.mark.parametrize("is_main_long", [True, False])
def test_a_worktree_with_a_long_path_records(hook_home: HookHome, is_main_long: bool) -> None:
    """Its main checkout is the registered project, and a folder above both of them is off."""
    root = hook_home.home.root
    main, linked = hook_home.home.project, root / "linked"
    if is_main_long:
        main = long_folder(root)
    else:
        linked = long_folder(root)
    inner = main / ".git" / "worktrees" / "linked"
    for folder in (linked, inner):
        folder.mkdir(parents=True)
    (linked / ".git").write_text(f"gitdir: {inner}\n")
    (inner / "gitdir").write_text(f"{linked}/.git\n")
    records = root / "state/hivepipe/projects"
    (records / short_hash(str(hook_home.home.project))).rename(records / short_hash(str(main)))
    (records / short_hash(str(root))).write_text("state=off\n")
    hook_home.fire(hook_home.native, "Stop", encoded(payloads.STOP), CLAUDE_PROJECT_DIR=str(linked))
    assert len(hook_home.home.spool) == 1


def test_without_an_intake_the_event_goes_to_redis_and_starts_no_stack(hook_home: HookHome) -> None:
    """As with a Procfile without the intake: a second stack would stop that Redis."""
    server = hook_home.redis()
    assert hook_home.fire(hook_home.native, "Stop", encoded(payloads.STOP)) == b""
    assert jobs_of(server)
    assert hook_home.raw() == []
    assert not (hook_home.runtime / "starting").exists()


def test_an_intake_ends_with_its_supervisor(hook_home: HookHome) -> None:
    words = [sys.executable, "-I", "-S", str(ROOT / "workers" / "intake.py")]
    env = {**hook_home.env, "HIVEPIPE_HOME": str(hook_home.home.path)}
    supervisor = subprocess.Popen(
        ["sh", "-c", '"$@" & echo $!; wait', "sh", *words],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert supervisor.stdout
    with supervisor.stdout:
        intake = Path("/proc", supervisor.stdout.readline().strip())
    until((hook_home.runtime / "intake.sock").exists, "the intake does not listen")
    supervisor.kill()
    supervisor.wait()
    until(lambda: not intake.exists(), "the intake still runs without its supervisor")


def test_a_large_environment_loses_no_event(hook_home: HookHome) -> None:
    """The native hook passes on at most 64 kB of environment; above that the Python hook runs."""
    stop = encoded(payloads.STOP)
    for size in (60_000, *range(64_600, 65_600, 100), 100_000):
        hook_home.forget(None)
        hook_home.fire(hook_home.native, "Stop", stop, HIVEPIPE_TASK_ID="x" * size)
        assert len(hook_home.raw()) + len(hook_home.home.spool) == 1, size
        hook_home.convert()
        assert len(hook_home.home.spool) == 1, size


@pytest.mark.parametrize(
    ("limit", "size"),
    [("f 32", 0), ("f 32", 60_000), ("f 32", 900_000), ("v 60000", 0), ("v 60000", 3_000_000)],
)
def test_a_limit_on_files_or_memory_loses_no_event(
    hook_home: HookHome, limit: str, size: int
) -> None:
    """`ulimit -f`: the raw event may not fit where its jobs do."""
    event = {**payloads.EVENTS["Stop"], "last_assistant_message": "x" * size}
    limited = f'ulimit -{limit}; exec "$@"'  # blocks of 512 bytes, or kB
    process = hook_home.start(hook_home.native, "Stop", shell=limited)
    assert process.communicate(encoded(event), timeout=60) == (b"", b"")
    assert process.returncode == 0
    hook_home.convert()
    (spooled,) = hook_home.home.spool
    jobs = json.loads(spooled.read_text())["jobs"]
    assert any(job["envelope"]["operation"] == "pause_session" for job in jobs)
    assert not list(spooled.parent.glob("*.tmp"))


@pytest.mark.parametrize("size", [0, 60_000, 3_000_000])
def test_the_python_hook_gets_the_whole_event(hook_home: HookHome, size: int) -> None:
    event = {**payloads.EVENTS["Stop"], "last_assistant_message": "x" * size, "effort": {}}
    data = encoded(event)[:-1] + b',"error":"the last word"}'
    hook_home.fire(hook_home.native, "Stop", data, HIVEPIPE_USE_QUEUE="true")
    (spooled,) = hook_home.home.spool
    assert "the last word" in spooled.read_text()
    assert not (hook_home.home.path / "logs" / "hook-errors.log").exists()


GONE = "#!/nowhere/python -IS\n"
INCOMPLETE = b" (its hook is incomplete): run `hivepipe init`\n"


@pytest.mark.parametrize("size", [0, 1_200_000])
def test_without_its_python_the_event_waits_in_the_spool(hook_home: HookHome, size: int) -> None:
    """As after an upgrade of the system's Python, until hivepipe is installed again."""
    hook_home.python.write_text(GONE)
    for event in ("SessionStart", "UserPromptSubmit", "PostToolUse", "Stop"):
        hook_home.forget(None)
        process = hook_home.start(hook_home.native, event)
        event_data = encoded({**payloads.EVENTS[event], "padding": "x" * size})
        _, errors = process.communicate(event_data, timeout=60)
        is_reported = event == "SessionStart" or (event == "Stop" and size > 0)
        assert errors == (b"hivepipe keeps events on disk" + INCOMPLETE if is_reported else b"")
        assert len(hook_home.raw()) == 1
        hook_home.convert()
        (spooled,) = hook_home.home.spool
        assert json.loads(spooled.read_text())["jobs"]


def test_without_its_python_and_a_spool_it_says_that_nothing_is_recorded(
    hook_home: HookHome,
) -> None:
    hook_home.python.write_text(GONE)
    (hook_home.home.path / "spool").write_text("in place of the folder")
    process = hook_home.start(hook_home.native, "Stop")
    _, errors = process.communicate(encoded(payloads.STOP), timeout=60)
    assert errors == b"hivepipe records nothing" + INCOMPLETE


@pytest.mark.skipif(not may_trace(), reason="strace is not there, or may not trace")
def test_the_python_hook_gets_the_whole_event_without_another_process(hook_home: HookHome) -> None:
    """As with `ulimit -u`, or a container that may have no more processes."""
    calls = "?fork,?vfork,clone,?clone3"
    refused = f'exec strace -qq -f -o /dev/null -e inject={calls!r}:error=EAGAIN "$@"'
    process = hook_home.start(hook_home.native, "Stop", shell=refused)
    event = {**payloads.EVENTS["Stop"], "last_assistant_message": "x" * 3_000_000, "effort": {}}
    data = encoded(event)[:-1] + b',"error":"the last word"}'
    assert process.communicate(data, timeout=60) == (b"", b"")
    (spooled,) = hook_home.home.spool
    assert "the last word" in spooled.read_text()


@pytest.mark.skipif(not may_trace(), reason="strace is not there, or may not trace")
def test_a_disk_that_is_full_when_the_file_is_closed_loses_no_event(hook_home: HookHome) -> None:
    """As on NFS, which sends the data at the close."""
    log = hook_home.home.root / "calls"
    last = 0
    for words in ("-e trace=close,?rename,?renameat", "-e inject=close:error=EDQUOT:when={last}"):
        hook_home.forget(None)
        (hook_home.runtime / "starting").write_text(f"{time.time() + 60:.0f} 0 not now\n")
        traced = f'exec strace -qq -o {log} {words.format(last=last)} "$@"'
        process = hook_home.start(hook_home.native, "Stop", shell=traced)
        assert process.communicate(encoded(payloads.STOP), timeout=60) == (b"", b"")
        last = log.read_text().split("rename")[0].count("close(")
    assert hook_home.raw() == []
    assert len(hook_home.home.spool) == 1


@pytest.mark.skipif(platform.system() != "Linux", reason="only Linux has /proc")
def test_an_event_is_kept_where_proc_is_not_mounted(hook_home: HookHome) -> None:
    """As in a sandbox that shows few folders to Claude Code and its hooks."""
    hidden = 'mount -t tmpfs none /proc && exec "$@"'
    unshared = f"exec unshare -m sh -c '{hidden}' sh \"$@\""
    process = hook_home.start(hook_home.native, "Stop", shell=unshared)
    _, errors = process.communicate(encoded(payloads.STOP), timeout=60)
    if b"unshare" in errors or b"mount" in errors:
        pytest.skip("no namespace of mounts can be made here")
    assert (process.returncode, errors) == (0, b"")
    assert len(hook_home.raw()) == 1


@pytest.mark.skipif(platform.system() != "Linux", reason="only Linux has pid namespaces")
def test_an_event_from_another_pid_namespace_names_it(hook_home: HookHome) -> None:
    """As in a sandbox: in the intake's namespace, its pids would be those of other processes."""
    hook_home.intake()
    unshared = 'exec unshare -p -f --mount-proc "$@"'
    process = hook_home.start(hook_home.native, "SessionStart", shell=unshared)
    _, errors = process.communicate(encoded(payloads.EVENTS["SessionStart"]), timeout=60)
    if b"unshare" in errors:
        pytest.skip("no namespace of pids can be made here")
    (spooled,) = hook_home.home.spool
    (namespace,) = set(re.findall(r"pid:\[\d+\]", spooled.read_text()))
    assert namespace != os.readlink("/proc/self/ns/pid")


FOREIGN = {
    "no-fields": (b"", b"{}"),
    "no-pid": (b"time=1\0parent=1\0began=1\0", b"{}"),
    "odd-numbers": (b"time=x\0pid=y\0parent=\0began=-\0", b"{}"),
    "no-text": (b"\xff\0=\0" * 9, b"\xff" * 9),
}


def test_an_intake_survives_what_is_no_event(hook_home: HookHome) -> None:
    intake = hook_home.intake()
    for head, event in FOREIGN.values():
        sizes = len(head).to_bytes(4, "little") + len(event).to_bytes(4, "little")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(hook_home.runtime / "intake.sock"))
            connection.sendall(b"HPv1" + sizes + head + event)
            assert connection.recv(1) == b""
    hook_home.fire(hook_home.native, "Stop", encoded(payloads.STOP))
    assert intake.is_running
    assert hook_home.raw() == []


def test_an_intake_whose_socket_was_removed_ends(hook_home: HookHome) -> None:
    """A cleaner of /tmp removes sockets. The supervisor then starts another intake."""
    intake = hook_home.intake()
    (hook_home.runtime / "intake.sock").unlink()
    until(lambda: not intake.is_running, "no hook can reach the intake")


@pytest.mark.parametrize("has_intake", [True, False])
def test_a_reader_that_is_gone_is_no_failure(hook_home: HookHome, has_intake: bool) -> None:
    part = hook_home.home.path / f"context/project-{short_hash(str(hook_home.home.project))}.txt"
    part.parent.mkdir()
    part.write_text("Prices are whole cents.\n")
    if has_intake:
        hook_home.intake()
    with hook_home.start(hook_home.native, "SessionStart") as process:
        assert process.stdin
        assert process.stdout
        process.stdout.close()
        process.stdin.write(encoded(payloads.EVENTS["SessionStart"]))
    assert process.returncode == 0


def test_a_folder_that_the_intake_cannot_enter_is_no_reason_to_refuse(hook_home: HookHome) -> None:
    """As in a sandbox, which shows its own folders to Claude Code and its hooks."""
    below = hook_home.home.project / "below"
    below.mkdir()
    here = 'cd below; exec "$@"'
    process = hook_home.start(hook_home.native, "Stop", shell=here)
    process.communicate(encoded(payloads.STOP), timeout=60)
    (raw,) = hook_home.raw()
    below.rmdir()
    server = hook_home.redis()
    hook_home.intake()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(hook_home.runtime / "intake.sock"))
        connection.sendall(raw.read_bytes())
        assert connection.recv(1) == b"A"
    until(lambda: jobs_of(server) and hook_home.raw() == [raw], "the event is not handed over")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux sets the size of a pipe")
def test_an_answer_waits_for_a_slow_reader(hook_home: HookHome) -> None:
    """The pipe holds less than the answer, and its end does not block."""
    hook_home.intake()
    text = "Prices are whole cents. " * 380
    part = Path(part_path(str(hook_home.home.path), project_part(str(hook_home.home.project))))
    part.parent.mkdir()
    part.write_text(text)
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writing, False)
    command = [hook_home.native, "session_start"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=writing, env=hook_home.env
    ) as process:
        os.close(writing)
        assert process.stdin
        process.stdin.write(encoded(payloads.EVENTS["SessionStart"]))
        process.stdin.close()
        assert select.select([reading], [], [], PATIENCE_SECS)[0]
        with os.fdopen(reading) as answer:
            context = json.load(answer)["hookSpecificOutput"]["additionalContext"]
    assert context.strip() == text.strip()


@pytest.mark.skipif(not may_trace(), reason="strace is not there, or may not trace")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other machines call them otherwise")
@pytest.mark.parametrize("has_intake", [True, False])
def test_an_event_makes_the_system_calls_that_the_page_lists(
    hook_home: HookHome, has_intake: bool
) -> None:
    if has_intake:
        hook_home.intake()
    (hook_home.runtime / "starting").write_text(
        f"{time.time() + 60:.0f} 0 the stack is not started\n"
    )
    log = hook_home.home.root / "calls"
    command = ["strace", "-qq", "-o", str(log), str(hook_home.native), "post_tool_use"]
    event = encoded(payloads.EVENTS["PostToolUse"])
    subprocess.run(command, input=event, env=hook_home.env, check=True, timeout=60)
    page = (ROOT / "benchmarks" / "page.md").read_text()
    section = page.split("## System calls")[1].split("\n## ")[0]
    lists = section.split("Without an intake")
    listed = [
        set(re.findall(r"\w+", " ".join(re.findall(r"^ {4}.*", part, re.M)))) for part in lists
    ]
    called = set(re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE))
    assert called <= (listed[0] if has_intake else listed[0] | listed[1])
    assert listed[0 if has_intake else 1] - called == set()


def test_half_an_event_whose_input_stays_open_is_kept(hook_home: HookHome) -> None:
    """The hook ends; its child stops waiting later, and says so in the frame."""
    half = encoded(payloads.STOP)[:-20]
    with hook_home.start(hook_home.native, "Stop") as process:
        assert process.stdin
        process.stdin.write(half)
        process.stdin.flush()
        assert process.wait(PATIENCE_SECS) == 0
        (raw,) = until(hook_home.raw, "the child keeps waiting", 30)
    kept = Frame(raw.read_bytes()).event
    assert (kept.data, kept.trouble) == (half, "stdin was not closed in time")


@pytest.mark.parametrize("has_intake", [True, False])
@pytest.mark.parametrize("text", ["", "x" * (3 << 20)], ids=len)
def test_an_event_that_is_sent_after_the_hook_has_ended_is_kept(
    hook_home: HookHome, has_intake: bool, text: str
) -> None:
    if has_intake:
        hook_home.intake()
    with hook_home.start(hook_home.native, "Stop") as process:
        assert process.stdin
        assert process.stdout
        assert process.wait(PATIENCE_SECS) == 0
        assert process.stdout.read() == b""  # the child does not hold the pipe
        process.stdin.write(encoded(payloads.STOP | {"last_assistant_message": text}))
        process.stdin.close()
        (raw,) = until(hook_home.raw, "lost")
    assert Frame(raw.read_bytes()).sender.parent == os.getpid()
    hook_home.convert()
    (kept,) = (hook_home.home.path / "spool").glob("*.json")
    jobs = json.loads(kept.read_bytes())["jobs"]
    assert "archive_transcript" in {job["envelope"]["operation"] for job in jobs}


# ---- the status line

LINES: dict[str, bytes] = {
    "costs": b'{"session_id":"s1","cost":{"total_cost_usd":1.234}}\n',
    "context": b'{"session_id":"s2","context_window":{"used_percentage":41.6}}',
    "another-folder": b'{"session_id":"s1","workspace":{"project_dir":"/nowhere"}}',
    "empty": b"",
    "not-json": b"{]}",
    "not-whole": b'{"session_id":"s1"',
    "odd": b'{"session_id":"\xff","cwd":7}',
    "large": b'{"session_id":"s1","x":"' + b"y" * 1_200_000 + b'"}',
}
PREPARED = {
    "v": 1,
    "day": time.strftime("%Y-%m-%d"),
    "today_usd": 4.5,
    "alerts": 2,
    "sessions": {"s1": {"usd": 9, "cache_until": 5}, "s3": {"waits": True}},
}


def test_the_native_status_line_equals_that_of_the_python_hook(hook_home: HookHome) -> None:
    (hook_home.home.path / "status-line.json").write_text(json.dumps(PREPARED))
    cases: list[tuple[str, tuple[str, ...], dict[str, str]]] = [
        *((line, (), {}) for line in LINES),
        ("costs", (), {"HIVEPIPE_DISABLED": "1"}),
        ("costs", (), {"HIVEPIPE_NESTED": "1"}),
        *((line, ("echo before; cat",), {}) for line in ("costs", "large", "empty")),
    ]

    def shown(program: Path) -> list[bytes]:
        return [
            hook_home.fire(program, "Statusline", LINES[line], *words, **env)
            for line, words, env in cases
        ]

    wanted = shown(hook_home.python)
    assert all(each.startswith(b"before\n") for each in wanted[-3:])
    assert shown(hook_home.native) == wanted
    hook_home.intake()
    assert shown(hook_home.native) == wanted
    hook_home.register(state="off")
    off = hook_home.fire(hook_home.python, "Statusline", LINES["costs"])
    assert hook_home.fire(hook_home.native, "Statusline", LINES["costs"]) == off
    assert not (hook_home.home.path / "spool").exists()


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (LINES["costs"], b"$1.23 session"),
        (LINES["not-whole"], b"$9.00 session"),
        (b"", b"$4.50 today"),
    ],
)
def test_a_status_line_whose_input_stays_open_is_shown(
    hook_home: HookHome, sent: bytes, wanted: bytes
) -> None:
    (hook_home.home.path / "status-line.json").write_text(json.dumps(PREPARED))
    for program in (hook_home.python, hook_home.native):
        with hook_home.start(program, "Statusline") as process:
            assert process.stdin
            assert process.stdout
            process.stdin.write(sent)
            process.stdin.flush()
            ready, _, _ = select.select([process.stdout], [], [], 10)
            assert ready, program
            assert process.stdout.read().startswith(wanted)


def test_the_status_line_needs_no_python_with_an_intake(hook_home: HookHome) -> None:
    (hook_home.home.path / "status-line.json").write_text(json.dumps(PREPARED))
    intake = hook_home.intake()
    shown = hook_home.fire(hook_home.python, "Statusline", LINES["costs"])
    assert shown.startswith(b"$1.23 session")
    program = hook_home.python.read_bytes()
    hook_home.python.write_text("#!/bin/sh\n")
    assert hook_home.fire(hook_home.native, "Statusline", LINES["costs"]) == shown
    hook_home.python.write_bytes(program)
    intake.signal(signal.SIGSTOP)
    assert hook_home.fire(hook_home.native, "Statusline", LINES["costs"]) == shown
    assert hook_home.raw() == []

"""A command or worker that tests fork behaves like an executed one."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests import forked
from tests.conftest import CLI, COMMANDS, HOOKS, ROOT, WORKERS, Home, Process, find_server, until
from tests.forked import Forked, Forker

# The test's package has one command: it prints its environment or does what its argument names.
# What a process shows of itself as JSON.
SEEN = """
import json, os, posix, signal, sys, time
mask = os.umask(0)
seen = {
    "argv": sys.argv[1:], "environ": dict(os.environ), "posix": sorted(map(str, posix.environ)),
    "cwd": os.getcwd(), "umask": mask, "stdin": sys.stdin.read(), "session": os.getsid(0),
    "group": os.getpgrp(), "user": [os.getuid(), os.geteuid(), os.getgid()],
    "signals": [str(signal.getsignal(n)) for n in sorted(signal.valid_signals())],
    "descriptors": len(os.listdir("/proc/self/fd")) - 1, "zone": time.tzname,
    "flags": str(sys.flags), "path": sys.path, "executable": sys.executable, "name": __name__,
    "encodings": [sys.stdin.encoding, sys.stdout.errors, sys.stderr.errors],
    "buffers": [sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdin.isatty()],
    "words": sys.orig_argv[1:],
}
"""
# The test's package has one command: it prints its environment or does what its argument names.
COMMAND = f"""
import signal, sys, os, time
from hivepipe.cli.command_table import NUMBER
def main():
    sys.stdin.reconfigure(errors="surrogateescape")
    word = sys.argv[1]
    if word == "see":
        exec({SEEN!r} + "print(json.dumps(seen)); print('said', file=sys.stderr)", globals())
    elif word == "exit":
        sys.exit(int(sys.argv[2]) if sys.argv[2].isdigit() else sys.argv[2])
    elif word == "leave":
        import atexit, sqlite3, threading
        global KEPT
        atexit.register(print, "at exit")
        threading.Thread(target=lambda: (time.sleep(0.1), print("of a thread"))).start()
        if sys.argv[2] == "file":
            KEPT = open("left", "w")
            KEPT.write("not flushed")
        elif sys.argv[2] == "database":
            KEPT = sqlite3.connect("left")
            KEPT.executescript("PRAGMA journal_mode=wal; CREATE TABLE left (n)")
    elif word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "raise":
        raise ValueError("of the command")
    elif word == "sleep":
        time.sleep(60)
    elif word == "number":
        print(NUMBER)
    elif word == "summaries":
        from hivepipe.programs import subprocess
        signal.signal(signal.SIGTERM, print)
        print("not of the asker", end="")
        words = [sys.executable, "-I", "-X", "utf8", "-m", "hivepipe.summaries.asker"]
        asked = subprocess.Popen(words, stdin=subprocess.PIPE, cwd="/", env={{b"B": b"2"}})
        asked.communicate(b"question")
        sys.exit(asked.returncode)
main()
"""
# What it executes or forks prints what it sees.
ASKER = f"""
import os
def main():
    exec({SEEN!r} + "print(json.dumps(seen), flush=True)", globals())
    os._exit(7)
if __name__ == "__main__":
    main()
"""
# It prints what it sees and executes `after_run`, which does so too, or another program.
RUNNER = f"""
import os, sys
def main():
    exec({SEEN!r} + "print(json.dumps(seen), flush=True)", globals())
    words = [sys.executable, "-I", "-X", "utf8", "-m", "hivepipe.orchestrator.after_run"]
    if sys.argv[1] == "another":
        words = [sys.executable, "-c", "print(1)"]
    os.execv(words[0], [*words, *sys.argv[2:]])
if __name__ == "__main__":
    main()
"""
AFTER_RUN = f"""
def main():
    exec({SEEN!r} + "print(json.dumps(seen), flush=True)", globals())
    for number in sys.argv[1:]:
        os.write(int(number), b"written")
if __name__ == "__main__":
    main()
"""

TABLE = "COMMANDS = {}\nNUMBER = 1\n"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command that starts a Python whose package `hivepipe` has only COMMAND."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    for name, text in {
        "__init__": "",
        "cli/__init__": "",
        "cli/command_table": TABLE,
        "cli/main": COMMAND,
        "programs": "import subprocess",
        "orchestrator/__init__": "",
        "orchestrator/after_run": AFTER_RUN,
        "orchestrator/runner": RUNNER,
        "summaries/__init__": "",
        "summaries/asker": ASKER,
        "summaries/by_openai": "",
        "summaries/over_http": "",
    }.items():
        (site / "hivepipe" / name).parent.mkdir(parents=True, exist_ok=True)
        (site / "hivepipe" / f"{name}.py").write_text(text)
    return [str(folder / "bin" / "python")]


@pytest.fixture(scope="module")
def forker(package: list[str]) -> Iterator[Forker]:
    made = Forker(package, [*package, *CLI[1:]])
    yield made
    made.end()


def run_executed(
    package: list[str], words: list[str], data: str, cwd: Path, **env: str
) -> tuple[int, str, str]:
    command = [*package, *CLI[1:], *words]
    done = subprocess.run(
        command, input=data, env=env, cwd=cwd, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def run_forked(
    forker: Forker, words: list[str], data: str, cwd: Path, **env: str
) -> tuple[int, str, str]:
    done = forker.run(words, data, env, cwd, 30)
    return done.returncode, done.stdout, done.stderr


def test_a_forked_command_sees_what_an_executed_one_sees(
    package: list[str], forker: Forker, tmp_path: Path
) -> None:
    env = {"A": "1", "TZ": "Asia/Tokyo", "PYTHONWARNINGS": "ignore"}
    words, data = ["see", "a b", ""], "a\r\nb ü"
    before = os.umask(0o027)
    try:
        expected = run_executed(package, words, data, tmp_path, **env)
        assert '"argv"' in expected[1]
        assert run_forked(forker, words, data, tmp_path, **env) == expected
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    "words", [["exit", "0"], ["exit", "300"], ["exit", "why"], ["die"], ["raise"]]
)
def test_a_forked_command_ends_like_an_executed_one(
    package: list[str], forker: Forker, tmp_path: Path, words: list[str]
) -> None:
    code, out, error = run_executed(package, words, "", tmp_path)
    found = run_forked(forker, words, "", tmp_path)
    assert found[:2] == (code, out)
    assert found[2].splitlines()[-1:] == error.splitlines()[-1:]
    assert code or words == ["exit", "0"]


@pytest.mark.parametrize("kept", ["nothing", "file", "database"])
def test_a_forked_command_closes_its_files_and_waits_for_its_threads(
    package: list[str], forker: Forker, tmp_path: Path, kept: str
) -> None:
    found = []
    for run, place in ((run_executed, package), (run_forked, forker)):
        folder = tmp_path / run.__name__
        folder.mkdir()
        results = run(place, ["leave", kept], "", folder)  # type: ignore[operator]
        left = {path.name: path.read_bytes() for path in folder.iterdir()}
        found.append((results, left if kept == "file" else left.keys()))
    assert found[0] == found[1]
    assert found[0][0] == (0, "of a thread\nat exit\n", "")
    assert len(found[0][1]) == (kept != "nothing")


def test_a_forked_command_forks_an_asker_that_sees_what_an_executed_one_sees(
    package: list[str], forker: Forker, tmp_path: Path
) -> None:
    found = []
    for run, place in ((run_executed, package), (run_forked, forker)):
        code, out, error = run(place, ["summaries", "run", "--file"], "", tmp_path)  # type: ignore[operator]
        line, rest = out.split("\n")
        assert (code, rest, error) == (7, "not of the asker", "")
        found.append(json.loads(line))
    differ = {name for name, seen in found[0].items() if found[1][name] != seen}
    assert differ <= {"encodings", "name", "words"}  # It is imported, and `-X utf8` is missing.


@pytest.mark.skipif(forked.EXECUTES, reason="nothing is forked")
@pytest.mark.parametrize("executes", ["after_run", "another"])
def test_a_forked_runner_and_what_it_executes_see_what_executed_ones_see(
    package: list[str], tmp_path: Path, executes: str
) -> None:
    runners, found = Forker(package, (), "runners"), []
    for is_forked in (False, True):
        out, (reader, writer) = tmp_path / f"{is_forked}", os.pipe()
        with open(os.devnull, "rb") as stdin, out.open("wb") as log:
            files, env, made = (stdin, log, log), {"A": "1"}, None
            if is_forked:
                made = runners.start([executes, "3"], env, tmp_path, files, [writer])
                assert made
            else:
                module = [*package, "-I", "-X", "utf8", "-m", "hivepipe.orchestrator.runner"]
                made = subprocess.Popen(
                    [*module, executes, str(writer)], -1, None, *files, env=env, cwd=tmp_path,
                    pass_fds=[writer], start_new_session=True,
                )  # fmt: skip
            assert made.wait(30) == 0, out.read_text()
        os.close(writer)
        with os.fdopen(reader) as pipe:
            found.append(([*map(json.loads, out.read_text().splitlines())], pipe.read()))
    runners.end()
    (executed, _), (forked_ones, written) = found
    assert found[0][1] == written == ("" if executes == "another" else "written")
    assert len(executed) == len(forked_ones) == 2
    for seen, expected in zip(forked_ones, executed, strict=True):
        if expected == 1:
            assert seen == 1
        else:
            # The numbers of processes and descriptors, and `-X utf8`
            assert seen["session"] == seen["group"]
            assert all(
                seen[name] == expected[name]
                for name in expected
                if name not in ("session", "group", "argv", "words", "flags", "encodings")
            )


def test_a_forked_command_is_killed_after_its_timeout(forker: Forker, tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        forker.run(["sleep"], "", {}, tmp_path, 0.5)
    assert run_forked(forker, ["exit", "3"], "", tmp_path) == (3, "", "")


def test_replaced_code_is_imported_again(
    package: list[str], forker: Forker, tmp_path: Path
) -> None:
    (table,) = Path(package[0]).parents[1].rglob("hivepipe/cli/command_table.py")

    def replace(text: str) -> None:
        new = table.with_suffix(".new")
        new.write_text(text)
        new.replace(table)

    assert run_forked(forker, ["number"], "", tmp_path) == (0, "1\n", "")
    replace("COMMANDS = {}\nNUMBER = 22\n")
    assert run_forked(forker, ["number"], "", tmp_path) == (0, "22\n", "")
    replace("raise ValueError('of the table')")  # an executed command prints this error
    code, out, error = run_forked(forker, ["number"], "", tmp_path)
    replace(TABLE)
    assert (code, out, error.splitlines()[-1]) == (1, "", "ValueError: of the table")


def test_a_command_that_needs_an_interpreter_start_is_executed(tmp_path: Path) -> None:
    assert not forked._is_of_the_start("", {"A": "", "PYTHONWARNINGS": "ignore"})
    for name in ("LC_ALL", "LANG", "PYTHONPATH", "PYTHONEXECUTABLE"):
        assert forked._is_of_the_start("", {name: ""})
    assert forked._is_of_the_start("x" * forked.PIPE_BYTES, {})


# ---- workers and hooks

# A script that prints its environment and then does what its argument names.
SCRIPT = f"""{SEEN}
seen["file"] = __file__
seen["shown"] = [
    [text for text in open(f"/proc/self/{{name}}").read().split("\\0") if text]
    for name in ("cmdline", "environ")
]
print(json.dumps(seen), flush=True)
word = sys.argv[1]
if word == "exit":
    sys.exit(int(sys.argv[2]))
elif word == "raise":
    raise ValueError("of the worker")
elif word == "sleep":
    time.sleep(60)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    made = tmp_path / "a script.py"
    made.write_text(SCRIPT)
    return made


def forked_worker(words: list[str], log: Path, forker: Forker = WORKERS, **env: str) -> Forked:
    with open(os.devnull, "rb") as stdin, log.open("ab") as out:
        made = forker.start(words, env, log.parent, (stdin, out, out))
    assert made
    return made


def executed_worker(words: list[str], log: Path, **env: str) -> "subprocess.Popen[bytes]":
    with open(os.devnull, "rb") as stdin, log.open("ab") as out:
        return subprocess.Popen(words, -1, None, stdin, out, out, env=env, cwd=log.parent)


@pytest.mark.skipif(forked.EXECUTES, reason="nothing is forked")
@pytest.mark.parametrize(
    ("forker", "flags", "words", "code"),
    [
        (WORKERS, ["-I"], ["exit", "75", "a b", "\xfc"], 75),
        (WORKERS, ["-I"], ["raise"], 1),
        (HOOKS, ["-I", "-S"], ["exit", "0"], 0),
    ],
)
def test_a_forked_worker_or_hook_sees_what_an_executed_one_sees(
    script: Path, forker: Forker, flags: list[str], words: list[str], code: int
) -> None:
    env = {"HIVEPIPE_HOME": "/a home", "A": "\xfc"}
    before = os.umask(0o027)
    try:
        results = []
        for is_forked in (False, True):
            log = script.parent / "said.log"
            if is_forked:
                found = forked_worker([str(script), *words], log, forker, **env).wait(30)
            else:
                found = executed_worker([CLI[0], *flags, str(script), *words], log, **env).wait(30)
            first, *rest = log.read_text().splitlines()
            results.append((found, json.loads(first), rest[-1:]))
            log.unlink()
    finally:
        os.umask(before)
    assert results[0] == results[1]
    assert results[0][0] == code


@pytest.mark.skipif(forked.EXECUTES, reason="nothing is forked")
def test_a_forked_worker_is_polled_and_signalled_like_an_executed_one(script: Path) -> None:
    log = script.parent / "said.log"
    made = forked_worker([str(script), "sleep"], log)
    until(lambda: log.read_text(), "the worker printed nothing")
    assert made.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        made.wait(0.05)
    os.kill(made.pid, signal.SIGSTOP)
    made.send_signal(signal.SIGTERM)
    assert made.poll() is None
    made.send_signal(signal.SIGCONT)
    assert made.wait(30) == made.poll() == -signal.SIGTERM
    made.kill()  # sends no signal to a process that has the pid now
    killed = forked_worker([str(script), "sleep"], log)
    killed.kill()
    assert killed.wait(30) == -signal.SIGKILL


def test_only_workers_and_what_launches_them_are_forked(private_home: Home) -> None:
    started = []
    for words in (
        ["-I", str(ROOT / "workers" / "no_such_worker.py")],
        ["-I", str(ROOT / "tests" / "faults" / "injections" / "no_such_launcher.py")],
        ["-I", "-S", str(ROOT / "workers" / "no_such_worker.py")],
        ["-I", "-c", "import sys; sys.exit(2)"],
    ):
        log = private_home.root / "said.log"
        made = Process([sys.executable, *words], log, private_home.env, private_home.root)
        made.start()
        started.append(isinstance(made._running, Forked))
        assert made._running
        assert made._running.wait(timeout=30) > 0
    assert started == [not forked.EXECUTES, not forked.EXECUTES, False, False]


# ---- the supervisor that a command starts


def properties(process: psutil.Process) -> dict[str, Any]:
    """Return the properties in which a forked process must equal an executed one."""
    words = [word for word in process.cmdline() if word]
    is_python = words[0].endswith("python")  # Redis writes its title over its environment
    return {
        "words": words,
        "environ": process.environ() if is_python else {},
        "cwd": process.cwd(),
        "session": os.getsid(process.pid) == process.pid,
        "limits": Path(f"/proc/{process.pid}/limits").read_text(),
        "status": until(partial(status_of, process), "signals stay blocked"),
    }


def status_of(process: psutil.Process) -> list[str]:
    """Return user, mask and signals, or [] while the process blocks signals to start a thread."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    names = ("Umask", "Uid", "Gid", "Groups", "SigIgn", "SigCgt")
    is_blocking = not re.search(r"SigBlk:\t0+\n", status)
    return [] if is_blocking else [line for line in status.splitlines() if line.startswith(names)]


def handles_sigterm(process: psutil.Process) -> bool:
    status = Path(f"/proc/{process.pid}/status").read_text()
    (caught,) = re.findall(r"SigCgt:\s*(\w+)", status)
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def is_at_rest(supervisor: psutil.Process) -> bool:
    """Return whether the command has disconnected, and all programs have their signal handlers."""
    is_disconnected = len(supervisor.net_connections("unix")) == 1
    return is_disconnected and all(map(handles_sigterm, supervisor.children()))


@pytest.mark.skipif(forked.EXECUTES, reason="nothing is forked")
def test_a_forked_supervisor_and_its_programs_equal_executed_ones(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_server()
    # another test may have changed the limit of core files in this process
    limits = [(resource.RLIMIT_NOFILE, (2000, 3000)), (resource.RLIMIT_CORE, (0, 0))]
    seen, is_forked = [], []
    for executes in (True, False):
        monkeypatch.setattr(forked, "EXECUTES", executes)
        where = private_home.env, private_home.project, 60
        assert COMMANDS.run(["up", "-d"], "", *where, limits).returncode == 0
        (file,) = (private_home.root / "run").rglob("supervisord.pid")
        supervisor = psutil.Process(int(file.read_text()))
        is_forked.append(len(Path(f"/proc/{supervisor.pid}/cmdline").read_bytes()) > 4096)
        until(partial(is_at_rest, supervisor), "not at rest")
        programs = sorted(supervisor.children(), key=psutil.Process.cmdline)
        seen.append([properties(supervisor), supervisor.num_fds(), *map(properties, programs)])
        private_home.command("down")
    assert seen[0] == seen[1]
    assert is_forked == [False, True]

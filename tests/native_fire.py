"""With `HIVEPIPE_TEST_HOOK=native`, run the native hook in `tests.conftest.fire`.

Each home has an intake. When `fire` returns, the intake has finished the event, as with the Python
hook.
"""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from hivepipe.home import short_hash
from tests.rounds import text_of

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "hivepipe" / "_native" / "hook"
IS_NATIVE = text_of("HIVEPIPE_TEST_HOOK") == "native"
SECS = 60
MAKE_COPY = "from hivepipe.stack import hook_copy; hook_copy.write(); print(hook_copy.launcher())"
# the Python in the record of a home, which starts no stack
NO_STARTER = '#!/bin/sh\ncase "$*" in *hivepipe.stack.starter*) exit 0;; esac\nexec "{}" "$@"\n'

_lock = threading.Lock()
_intakes: dict[str, "subprocess.Popen[bytes]"] = {}


def command(event_name: str, env: Mapping[str, str]) -> list[str] | None:
    """Return the command of the native hook, or None if the environment needs the Python hook."""
    if not {"HIVEPIPE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"} <= env.keys():
        return None
    home, state = env["HIVEPIPE_HOME"], env["XDG_STATE_HOME"]
    record = Path(state, "hivepipe", "projects", short_hash(home))
    if not record.exists():
        return None
    runtime = Path(env["XDG_RUNTIME_DIR"], "hivepipe", short_hash(home))
    for folder in (runtime.parent, runtime):
        folder.mkdir(mode=0o700, exist_ok=True)
    with _lock:
        _register(record, state, runtime)
        _start_intake(home, runtime, env)
        program = _copy(state)
    name = "".join("_" + c.lower() if c.isupper() else c for c in event_name).lstrip("_")
    return [program, name]


def finish(env: Mapping[str, str]) -> None:
    """Wait until the intake has handled the events, and convert those it left in the spool."""
    spool = Path(env["HIVEPIPE_HOME"], "spool")
    end = time.monotonic() + 1
    while list(spool.glob("*.raw")) and time.monotonic() < end:
        time.sleep(0.005)
    if list(spool.glob("*.raw")):
        code = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r});"
            "from hivepipe.queue.raw_spool import convert_all;"
            f"convert_all({env['HIVEPIPE_HOME']!r})"
        )
        subprocess.run([sys.executable, "-I", "-c", code], env=dict(env), check=True, timeout=SECS)


def end_all() -> None:
    for process in _intakes.values():
        process.kill()
        process.wait()
    _intakes.clear()


def _register(record: Path, state: str, runtime: Path) -> None:
    """Add the fields that the native hook needs to a home's record."""
    text = record.read_text()
    if "runtime=" not in text:
        python = Path(state, "python-without-starter")
        python.write_text(NO_STARTER.format(sys.executable))
        python.chmod(0o700)
        address = f"{runtime}/redis.sock"
        record.write_text(f"{text}socket={address}\nruntime={runtime}\npython={python}\nstate=on\n")


@cache
def _copy(state: str) -> str:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {MAKE_COPY}"
    env = {"XDG_STATE_HOME": state, "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-I", "-c", code]
    return subprocess.check_output(command, env=env, text=True, timeout=SECS).strip()


def _start_intake(home: str, runtime: Path, env: Mapping[str, str]) -> None:
    running = _intakes.get(home)
    if (running and running.poll() is None) or _listens(runtime / "intake.sock"):
        return
    (runtime / "intake.sock").unlink(missing_ok=True)
    kept = ("HOME", "PATH", "HIVEPIPE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
    with (runtime / "intake.log").open("ab") as log:
        _intakes[home] = subprocess.Popen(
            [sys.executable, "-I", "-S", str(ROOT / "workers" / "intake.py")],
            env={name: env[name] for name in kept if name in env},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    end = time.monotonic() + SECS
    while not (runtime / "intake.sock").exists():
        is_alive = _intakes[home].poll() is None and time.monotonic() < end
        assert is_alive, (runtime / "intake.log").read_text()[-2000:]
        time.sleep(0.005)


def _listens(path: Path) -> bool:
    """Return whether an intake listens, for example that of a whole stack."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0

"""Inside supervisord: restart a stack that lost its sockets; end one whose home was deleted.

A cleaner of /run or /tmp may remove a socket or the whole runtime folder. The processes then
continue to run but cannot be reached. supervisord loads this module as an `rpcinterface`, its
extension point, and calls it every five seconds. If no process listens at one of these sockets:

    redis.sock         Redis gets SIGTERM, syncs its file and is restarted
    supervisor.sock    the starter replaces this supervisor and its programs

A home is deleted if its folder, in which supervisord runs, has no name left. A folder that was
renamed has one, and a disk that is unmounted or does not answer says nothing about its folders.
"""

import os
import signal
import subprocess
from typing import Any

from supervisor import events
from supervisor.process import Subprocess
from supervisor.states import SupervisorStates

from hivepipe.programs import module
from hivepipe.settings import inherited
from hivepipe.stack.listening import listens

LOOKS = 2  # successive checks without a listener; a new server may not listen at the first one
# After so many checks a hanging server gets SIGKILL. Nothing is lost: it writes data before it
# answers.
LAST_LOOKS = 6


def make(supervisord: Any, **_config: str) -> object:
    """Have the stack's sockets checked on every five-second tick of supervisord."""
    watch = _Watch(supervisord)
    events.subscribe(events.Tick5Event, lambda _event: watch.restart_unreachable())
    return object()  # the plugin has no methods to call


class _Watch:
    def __init__(self, supervisord: Any) -> None:
        self._supervisord = supervisord
        self._folder = os.path.dirname(os.path.abspath(supervisord.options.configfile))
        self._redis_pid = 0
        self._redis_missed = self._supervisor_missed = 0

    def restart_unreachable(self) -> None:
        """Restart Redis or the stack if a socket was lost; end the stack if the home was."""
        if self._supervisord.options.mood < SupervisorStates.RUNNING:
            return
        if _is_home_deleted():
            self._log("the home was deleted: the stack ends")
            self._supervisord.options.mood = SupervisorStates.SHUTDOWN
            return
        self._look_at_redis()
        self._look_at_supervisor()

    def _look_at_redis(self) -> None:
        pid = self._pid_of_redis()
        is_lost = pid and pid == self._redis_pid and not listens(f"{self._folder}/redis.sock")
        self._redis_missed = self._redis_missed + 1 if is_lost else 0
        self._redis_pid = pid
        if self._redis_missed >= LOOKS:
            self._log("no process listens at redis.sock: Redis is restarted")
            last = self._redis_missed >= LAST_LOOKS
            os.kill(pid, signal.SIGKILL if last else signal.SIGTERM)

    def _look_at_supervisor(self) -> None:
        is_lost = not listens(f"{self._folder}/supervisor.sock")
        self._supervisor_missed = self._supervisor_missed + 1 if is_lost else 0
        if self._supervisor_missed and self._supervisor_missed % LOOKS == 0:
            self._log("no process listens at supervisor.sock: the stack is restarted")
            _restart_stack(self._folder)

    def _pid_of_redis(self) -> int:
        for group in self._supervisord.process_groups.values():
            process: Subprocess | None = group.processes.get("redis")
            if process is not None:
                return int(process.pid)
        return 0

    def _log(self, text: str) -> None:
        self._supervisord.options.logger.warn(text)  # noqa: G010  supervisord's own


def _is_home_deleted() -> bool:
    try:
        return os.stat(".").st_nlink == 0
    except OSError:  # a network share does not answer, or no longer knows the folder
        return False


def _restart_stack(folder: str) -> None:
    """Run the starter, which survives the end of this process."""
    subprocess.Popen(
        module("hivepipe.stack.starter", f"{folder}/starting"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=inherited(),
        start_new_session=True,
    )

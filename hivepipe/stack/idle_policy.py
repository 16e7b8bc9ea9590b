"""Idle shutdown: a stack that a hook started stops when idle; one that `up` started does not.

<home>/stay    the id of the boot during which a user ran `up`; `down` removes the file
"""

import os

from hivepipe.errors import LockHeldError
from hivepipe.home import read_small, write_small
from hivepipe.stack import kernel
from hivepipe.stack.listening import ask
from hivepipe.stack.lock import locked_folder
from hivepipe.stack.runtime_folder import Stack

_CALL = (
    b"<?xml version='1.0'?><methodCall><methodName>supervisor.shutdown</methodName></methodCall>"
)
_REQUEST = b"POST /RPC2 HTTP/1.0\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_CALL),
    _CALL,
)


def keep_running(stack: Stack) -> None:
    """Record that a user started this stack."""
    write_small(stack.stay_file, f"{kernel.boot()}\n")


def may_shut_down(stack: Stack) -> bool:
    """Tell whether the stack shuts down when idle: it is supervised and no user started it."""
    is_wanted = read_small(stack.stay_file).strip() == kernel.boot()
    return not is_wanted and os.path.exists(stack.supervisor_socket)


def shut_down(stack: Stack) -> bool:
    """Ask the supervisor to stop the stack, including this process; return whether it will.

    Return False also if a user started the stack, or while a command starts or stops it.
    """
    try:
        with locked_folder(stack.home, 0):  # a running `up` takes precedence
            return may_shut_down(stack) and ask_to_shut_down(stack)
    except LockHeldError:
        return False


def ask_to_shut_down(stack: Stack) -> bool:
    """Send a shutdown request to supervisord; return whether supervisord accepted it.

    The request is a constant, because the module xmlrpc would cost a worker 4 MB of memory.
    """
    return b" 200 " in ask(stack.supervisor_socket, _REQUEST, 64)

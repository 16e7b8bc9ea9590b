"""Whether a stack leaves when nobody needs it: one that a hook started does, one of `up` stays.

<home>/stay    the boot of the machine in which a person asked for the stack; `down` removes it
"""

import os
import socket

from hivepipe.errors import LockHeldError
from hivepipe.home import read_small, write_small
from hivepipe.stack import kernel
from hivepipe.stack.lock import Stack, locked_folder

ANSWER_SECS = 2
_CALL = (
    b"<?xml version='1.0'?><methodCall><methodName>supervisor.shutdown</methodName></methodCall>"
)
_REQUEST = b"POST /RPC2 HTTP/1.0\r\nContent-Type: text/xml\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_CALL),
    _CALL,
)


def stay(stack: Stack) -> None:
    """Remember that a person asked for this stack."""
    write_small(stack.stay, f"{kernel.boot()}\n")


def may_leave(stack: Stack) -> bool:
    """Is there a supervisor, and did nobody but a hook ask for it?"""
    is_wanted = read_small(stack.stay).strip() == kernel.boot()
    return not is_wanted and os.path.exists(stack.supervisor_socket)


def leave(stack: Stack) -> bool:
    """Ask the supervisor to end the stack, this process too; False: somebody needs it after all."""
    try:
        with locked_folder(stack.home, 0):  # an `up` at work wins
            return may_leave(stack) and ask_to_shut_down(stack)
    except LockHeldError:
        return False


def ask_to_shut_down(stack: Stack) -> bool:
    """Let the supervisor end everything; False: it does not answer.

    By hand, for xmlrpc costs a worker 4 MB for as long as it lives.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_SECS)
        try:
            connection.connect(stack.supervisor_socket)
            connection.sendall(_REQUEST)
            return b" 200 " in connection.recv(64)
        except OSError:
            return False

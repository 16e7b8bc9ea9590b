"""Send messages to Redis as RQ jobs: one connection, one write and one reply per event.

Importing redis-py takes 110 ms, rq 140 ms, and this module 1 ms. The module writes the same fields
and values as `rq.Queue.enqueue` (tests/integration/test_wire_format.py compares them with the
oldest and the newest supported RQ). The module connects to a unix socket, or to a loopback port
without TLS.

    rq:queues            set    of queue keys
    rq:queue:<name>      list   of job ids
    rq:job:<id>          hash   RQ's fields, and `hp`, our marker: the envelope version
    hivepipe:accepted    int    number of jobs ever accepted
    hivepipe:bell        list   pushed to after an enqueue; the writer blocks on it

Hooks import this module.
"""
# ruff: noqa: PLC0415

import posix
from _socket import AF_UNIX, SOCK_STREAM, socket
from time import monotonic

from hivepipe.events.job_plan import ENVELOPE_VERSION, Message
from hivepipe.home import lua_text

CONNECT_SECS = 0.05
REPLY_SECS = 0.05

FUNCTION = "hivepipe.run_job.run_job"
TIMEOUT_SECS = 60
RESULT_TTL_SECS = 60
FAILURE_TTL_SECS = -1  # a failed job stays until a person retries or discards it
RETRY_SECS = (1, 2, 4)  # retry delays of a stock worker; RQ supports whole seconds only

# The constants are part of the script's text, so that a hook need not send them as arguments.
_CONSTANTS = f"""local RETRIES, RETRY_INTERVALS = '{len(RETRY_SECS)}', '{list(RETRY_SECS)}'
local TIMEOUT_SECS, RESULT_TTL_SECS = '{TIMEOUT_SECS}', '{RESULT_TTL_SECS}'
local FAILURE_TTL_SECS, ENVELOPE_VERSION = '{FAILURE_TTL_SECS}', '{ENVELOPE_VERSION}'
"""
SCRIPT = _CONSTANTS + lua_text("queue/lua/push.lua")


class RefusedError(Exception):
    """Redis cannot be reached, refuses the request or replies too late; the message says why.

    `is_absent` is True if nothing listens at the address, for instance because no stack runs.
    """

    is_absent = False


def push(
    address: str,
    messages: list[Message],
    reply_secs: float = REPLY_SECS,
    counter: str = "",
) -> int:
    """Enqueue the messages of one event; return how many of them are new.

    `address` is a socket path or a local URL (hivepipe.queue.endpoint). `counter` is the key of the
    counter to increment instead of `hivepipe:accepted`. Raise RefusedError on failure. Even after
    this error the messages can arrive: a suspended Redis runs the script later. A second push is
    harmless, because it has the same ids.
    """
    reply = _push(address, eval_command(messages, counter=counter), reply_secs, b":")
    # The text is compared, because int() accepts digits of other alphabets and refuses long texts.
    for new in range(len(messages) + 1):
        if reply == str(new):
            return new
    raise RefusedError("not a Redis reply")


def push_with(address: str, messages: list[Message], script: str, arguments: list[str]) -> str:
    """Run `script` and enqueue the messages of one event, in one step; return the script's result.

    The script's arguments begin at ARGV[2]. The script assigns its result, one line of text, to
    `reply`. Raise RefusedError on failure, as `push` does.
    """
    return _push(address, eval_command(messages, script, arguments), REPLY_SECS, b"+")


def _push(address: str, command: list[bytes], reply_secs: float, expected: bytes) -> str:
    reply = _exchange(address, _command(command), reply_secs)
    # the script set no `reply`: this is the number of jobs
    if expected == b"+" and reply.startswith(b":"):
        raise RefusedError("the hook was too late")
    if not reply.startswith(expected):
        # Redis 6.2 puts the script's position before the reason, later versions after it.
        raise RefusedError(reply[1:300].decode("utf-8", "replace").strip() or "not a Redis reply")
    return reply[1:].decode("utf-8", "replace")


def eval_command(
    messages: list[Message],
    script: str = "",
    script_arguments: "list[str] | None" = None,
    counter: str = "",
) -> list[bytes]:
    """Return the EVAL command that runs `script`, if any, and then enqueues these messages."""
    before = [argument.encode() for argument in script_arguments or ()]
    arguments = [b"EVAL", f"local reply\n{script}{SCRIPT}".encode()]
    arguments += [b"1", counter.encode()] if counter else [b"0"]
    arguments += [b"%d" % len(before), *before]
    for message in messages:
        arguments += (
            message.id.encode(),
            message.twins.encode(),
            message.queue.encode(),
            job_data(message.envelope),
            message.description.encode("utf-8", "replace"),
            message.created_at.encode(),
        )
    return arguments


def job_data(envelope: str) -> bytes:
    """Return the bytes of `pickle.dumps((FUNCTION, None, (envelope,), {}), 5)` without pickle."""
    text = envelope.encode("ascii")
    size = len(text)
    argument = b"\x8c" + bytes((size,)) if size < 256 else b"X" + size.to_bytes(4, "little")
    body = b"".join((HEAD, argument, text, TAIL))
    return b"\x80\x05\x95" + len(body).to_bytes(8, "little") + body


HEAD = b"(\x8c" + bytes((len(FUNCTION),)) + FUNCTION.encode() + b"\x94N"
TAIL = b"\x94\x85\x94}\x94t\x94."


def _command(arguments: list[bytes]) -> bytes:
    parts = [b"*%d\r\n" % len(arguments)]
    for argument in arguments:
        parts.append(b"$%d\r\n" % len(argument))
        parts.append(argument)
        parts.append(b"\r\n")
    return b"".join(parts)


def _exchange(address: str, request: bytes, reply_secs: float) -> bytes:
    """Send one command; return its reply line, whose first byte is the type of the reply."""
    try:
        if address.startswith("/") and _kept is not None:
            return _talk_again(address, request, reply_secs)
        if address.startswith("/"):
            return _talk(AF_UNIX, address, [request], reply_secs)
        from hivepipe.queue.endpoint import parse

        endpoint = parse(address)
        requests = []
        if endpoint.login:
            requests.append(_command([b"AUTH", *[word.encode() for word in endpoint.login]]))
        if endpoint.database not in ("", "0"):
            requests.append(_command([b"SELECT", endpoint.database.encode()]))
        return _talk(endpoint.family, endpoint.place, [*requests, request], reply_secs)
    except (OSError, ValueError, OverflowError) as error:
        refused = RefusedError(_reason(error))
        refused.is_absent = isinstance(error, FileNotFoundError | ConnectionRefusedError)
        raise refused from None


# Open connections by socket path; None if each command opens its own.
_kept: "dict[str, socket] | None" = None


def keep_connections() -> None:
    """Keep connections open after a command, for a process that sends many commands."""
    global _kept
    _kept = {}


def _talk_again(path: str, request: bytes, reply_secs: float) -> bytes:
    """Send a command over the open connection, or a new one if it was closed; return the reply."""
    assert _kept is not None
    known = _kept.pop(path, None)
    connection = known or _connected(AF_UNIX, path)
    try:
        reply = _ask(connection, request, reply_secs)
    except BaseException as error:
        connection.close()
        if known and isinstance(error, OSError) and not isinstance(error, TimeoutError):
            # The server was restarted; executing the command twice is harmless.
            return _talk_again(path, request, reply_secs)
        raise
    _kept[path] = connection
    return reply


def _talk(
    family: int, place: str | tuple[str, int], requests: list[bytes], reply_secs: float
) -> bytes:
    """Send the commands in order until one fails; return the last reply."""
    connection = _connected(family, place)
    try:
        reply = b""
        for request in requests:
            reply = _ask(connection, request, reply_secs)
            if reply.startswith(b"-"):
                break
        return reply
    finally:
        connection.close()


def _connected(family: int, place: str | tuple[str, int]) -> socket:
    connection = socket(family, SOCK_STREAM)
    try:
        connection.settimeout(CONNECT_SECS)
        connection.connect(place)
    except BaseException:
        connection.close()
        raise
    return connection


def _ask(connection: socket, request: bytes, reply_secs: float) -> bytes:
    """Send a command and return one reply line, both within `reply_secs`.

    Raise OSError if this fails, or the reply is longer or not one line.
    """
    end = monotonic() + reply_secs
    connection.settimeout(reply_secs)
    connection.sendall(request)
    received = b""
    while not received.endswith(b"\r\n"):
        left = end - monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        chunk = connection.recv(4096)
        if not chunk:
            raise OSError("connection closed")
        received += chunk
        if len(received) > 65536:
            raise OSError("not a Redis reply")
    line = received.removesuffix(b"\r\n")
    if b"\r" in line or b"\n" in line:
        raise OSError("not a Redis reply")
    return line


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return posix.strerror(number) if number else str(error) or "no answer"

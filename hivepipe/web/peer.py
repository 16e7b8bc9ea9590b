"""The user id of the process at the other end of a TCP connection, as the kernel reports it."""

import socket
import struct
from contextlib import suppress

from starlette.types import Scope

_SOCK_DIAG = 4  # the netlink family
_BY_FAMILY = 20  # the message type, in both directions
_ANY = 0xFFFFFFFF
_REQUEST = 1
_HEADER = struct.Struct("=IHHII")  # struct nlmsghdr
_USER_AT = _HEADER.size + 64  # idiag_uid of struct inet_diag_msg
_ANSWER_SECS = 1.0


def user_of_peer(scope: Scope) -> str:
    """Return the user id of the process that sent a request, or "" if remote or not on Linux."""
    client, server = scope.get("client"), scope.get("server")
    if not (client and server):
        return ""
    with suppress(OSError, AttributeError, ValueError, TypeError, struct.error):
        return _ask_kernel(_request((client[0], client[1]), (server[0], server[1])))
    return ""


def _request(near: tuple[str, int], far: tuple[str, int]) -> bytes:
    """Return the kernel request (struct inet_diag_req_v2) for the client's end of a connection."""
    family = socket.AF_INET6 if ":" in near[0] else socket.AF_INET
    hosts = [socket.inet_pton(family, host).ljust(16, b"\0") for host in (near[0], far[0])]
    ends = struct.pack(">HH16s16s", near[1], far[1], *hosts) + struct.pack("=III", 0, _ANY, _ANY)
    return struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, _ANY) + ends


def _ask_kernel(request: bytes) -> str:
    header = _HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(_ANSWER_SECS)
        kernel.send(header + request)
        answer = kernel.recv(4096)
    _, kind, *_ = _HEADER.unpack_from(answer)
    return str(*struct.unpack_from("=I", answer, _USER_AT)) if kind == _BY_FAMILY else ""

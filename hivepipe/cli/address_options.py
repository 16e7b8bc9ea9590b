"""The address and port of commands that serve HTTP: their options, and the listening socket."""

import os
import re
import socket

import click

from hivepipe.errors import StackError
from hivepipe.web.listening import listen

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_NAME_OR_NUMBER = re.compile(r"[A-Za-z0-9_.:%-]+")


class _Address(click.ParamType[str]):
    name = "address"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _NAME_OR_NUMBER.fullmatch(value):
            self.fail(f"{value!r} is not an address or a host name", param, ctx)
        return value


port_option = click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65_535),
    help="TCP port (setting `web_port`); 0 picks a free one.",
)
bind_option = click.option(
    "--bind",
    type=_Address(),
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. Other machines can reach any address but loopback.",
)


def is_local(bind: str) -> bool:
    """Tell whether only programs on this machine can reach the address."""
    return bind in _LOOPBACK


def in_url(bind: str) -> str:
    """Return the address as a URL has it: an IPv6 address in brackets."""
    return f"[{bind}]" if ":" in bind else bind


def listening_socket(bind: str, port: int) -> socket.socket:
    """Return a listening socket. Raises StackError if the address cannot be bound."""
    try:
        return listen(bind, port)
    except OSError as error:
        is_name = (error.errno or 0) < 0  # a negative errno is a failed name resolution
        reason = error.strerror if is_name else os.strerror(error.errno or 0)
        raise StackError(f"cannot listen on {bind}:{port}: {reason}") from error

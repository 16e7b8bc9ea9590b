"""Command `web`: sessions, agents, costs and queues of all projects in a browser."""

import importlib.util
import os
import secrets
import socket
import threading
import webbrowser
from urllib.parse import quote

import click

from hivepipe.cli.listening import bind_option, cannot_listen, in_url, is_local, port_option
from hivepipe.cli.terminal import say
from hivepipe.errors import StackError
from hivepipe.home import locate
from hivepipe.settings import variable

_NEEDED = ("starlette", "uvicorn", "jinja2", "a2wsgi", "rq_dashboard", "prometheus_client", "six")
_PARENT_SECS = 2.0
_LAST_SECS = 1  # open pages hold their streams until then


@click.command()
@port_option(9182)
@bind_option
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@click.option("--read-only-token", is_flag=True, help="Print a second address, which only reads.")
def web(port: int, bind: str, no_open: bool, read_only_token: bool) -> None:
    """Serve the sessions, agents, costs and queues of all your projects until Ctrl-C.

    Every request needs the token, which is part of the printed address. It is new for each run
    unless HIVEPIPE_WEB_TOKEN is set. The page can retry and discard failed jobs.
    """
    if any(importlib.util.find_spec(name) is None for name in _NEEDED):
        raise StackError("the page is not installed: it comes with `hivepipe[web]`")
    # They cost 200 ms to import, and are an extra.
    import uvicorn  # noqa: PLC0415

    from hivepipe.web.app import web_app  # noqa: PLC0415

    token = variable("HIVEPIPE_WEB_TOKEN") or secrets.token_urlsafe(24)
    reader_token = secrets.token_urlsafe(24) if read_only_token else ""
    listening = _listen(bind, port)
    config = uvicorn.Config(
        web_app(locate("."), token, reader_token, is_local=is_local(bind)),
        lifespan="off",
        access_log=False,  # its lines would hold the token
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_LAST_SECS,
    )
    server = uvicorn.Server(config)
    base = f"http://{in_url(bind)}:{listening.getsockname()[1]}/?token="
    address = f"{base}{quote(token, safe='')}"
    say(address)
    if reader_token:
        say(f"only reads: {base}{quote(reader_token, safe='')}")
    if not is_local(bind):
        say("reachable from other machines: the token shows everything recorded", err=True)
    if not no_open:
        webbrowser.open(address)
    threading.Thread(target=_end_with_parent, args=(server, os.getppid()), daemon=True).start()
    try:
        with listening:
            server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass


def _listen(bind: str, port: int) -> socket.socket:
    """Return a listening socket; StackError: the address cannot be bound."""
    try:
        return socket.create_server(
            (bind, port), family=socket.AF_INET6 if ":" in bind else socket.AF_INET
        )
    except OSError as error:
        raise cannot_listen(bind, port, error) from error


def _end_with_parent(server: object, parent: int) -> None:
    """End the server once the process that started it is gone."""
    waits = threading.Event()
    while not waits.wait(_PARENT_SECS):
        if os.getppid() != parent:
            server.should_exit = True  # type: ignore[attr-defined]
            return

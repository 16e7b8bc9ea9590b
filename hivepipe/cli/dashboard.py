"""Command `dashboard`: rq-dashboard and Prometheus metrics over HTTP."""

import importlib.util
import logging
import os
import secrets
from urllib.parse import quote

import click

from hivepipe.cli.terminal import say
from hivepipe.errors import StackError
from hivepipe.home import locate
from hivepipe.monitor.status import status_report
from hivepipe.settings import variable
from hivepipe.stack.lock import Stack

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_NEEDED = ("rq_dashboard", "flask", "prometheus_client", "six")


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=9181,
    show_default=True,
    help="TCP port; 0 picks a free one.",
)
@click.option(
    "--bind",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; other addresses admit other machines.",
)
def dashboard(port: int, bind: str) -> None:
    """Serve queues, workers, jobs, `/metrics` and `/status.json` to a browser until Ctrl-C.

    Every request needs the token, which is part of the printed address. It is new for each run
    unless HIVEPIPE_DASHBOARD_TOKEN is set.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise StackError("the dashboard is not installed: it comes with `hivepipe[dashboard]`")
    # They cost 300 ms to import, and are an extra.
    from hivepipe.monitor.dashboard import app  # noqa: PLC0415

    place = locate(".")
    token = variable("HIVEPIPE_DASHBOARD_TOKEN") or secrets.token_urlsafe(24)
    is_local = bind in _LOOPBACK
    stack = Stack.of(place)
    made = app.dashboard(
        place.socket, token, lambda: status_report(place, stack), is_local=is_local
    )
    try:
        server = app.server(made, bind, port)
    except OSError as error:
        is_name = (error.errno or 0) < 0  # a negative errno is a failed name resolution
        reason = error.strerror if is_name else os.strerror(error.errno or 0)
        raise StackError(f"cannot listen on {bind}:{port}: {reason}") from error
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # its lines would hold the token
    host = f"[{bind}]" if ":" in bind else bind
    say(f"http://{host}:{server.port}/?token={quote(token, safe='')}")
    if not is_local:
        say("reachable from other machines: the token allows to requeue jobs", err=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()

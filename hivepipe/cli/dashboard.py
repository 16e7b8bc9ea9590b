"""Command `dashboard`: rq-dashboard and Prometheus metrics over HTTP."""

import importlib.util
import logging
import secrets
from urllib.parse import quote

import click

from hivepipe.cli.listening import bind_option, cannot_listen, in_url, is_local, port_option
from hivepipe.cli.terminal import say
from hivepipe.errors import StackError
from hivepipe.home import locate
from hivepipe.monitor.status import status_report
from hivepipe.settings import variable
from hivepipe.stack.lock import Stack

_NEEDED = ("rq_dashboard", "flask", "prometheus_client", "six")


@click.command()
@port_option(9181)
@bind_option
def dashboard(port: int, bind: str) -> None:
    """Serve queues, workers, jobs, `/metrics` and `/status.json` to a browser until Ctrl-C.

    Every request needs the token, which is part of the printed address. It is new for each run
    unless HIVEPIPE_DASHBOARD_TOKEN is set.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise StackError("the dashboard is not installed: it comes with `hivepipe[dashboard]`")
    # They cost 300 ms to import, and are an extra.
    from hivepipe.web import rq_pages as app  # noqa: PLC0415

    place = locate(".")
    token = variable("HIVEPIPE_DASHBOARD_TOKEN") or secrets.token_urlsafe(24)
    stack = Stack.of(place)
    made = app.dashboard(
        place.socket, token, lambda: status_report(place, stack), is_local=is_local(bind)
    )
    try:
        server = app.server(made, bind, port)
    except OSError as error:
        raise cannot_listen(bind, port, error) from error
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # its lines would hold the token
    say(f"http://{in_url(bind)}:{server.port}/?token={quote(token, safe='')}")
    if not is_local(bind):
        say("reachable from other machines: the token allows to requeue jobs", err=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()

"""Command `web`: sessions, agents, costs and queues of all projects in a browser."""

import secrets
import subprocess
import sys
import webbrowser
from urllib.parse import quote

import click

from hivepipe.cli.address_options import (
    bind_option,
    in_url,
    is_local,
    listening_socket,
    port_option,
)
from hivepipe.cli.terminal import say
from hivepipe.errors import NEEDS_PACKAGES, StackError
from hivepipe.settings import variable
from hivepipe.stack.shared_page import default_port, is_installed, shared_address
from hivepipe.web.process_start import exec_server
from hivepipe.web.ticket import with_ticket

_OPEN = "import os, sys, webbrowser; os.fork() or webbrowser.open(sys.argv[1])"


@click.command()
@port_option
@bind_option
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@click.option("--read-only-token", is_flag=True, help="Print a second address, which only reads.")
def web(port: int | None, bind: str, no_open: bool, read_only_token: bool) -> None:
    """Serve the sessions, agents, costs and queues of all your projects until Ctrl-C.

    Every request needs the token, which is part of the printed address. It is new for each run
    unless HIVEPIPE_WEB_TOKEN is set. The page can retry and discard failed jobs. If a page already
    runs with a stack (`web = true`), its address is printed; --port starts another page.
    """
    if not is_installed():
        raise StackError(f"the page {NEEDS_PACKAGES}")
    if port is None and is_local(bind) and not read_only_token and (shared := shared_address()):
        say(shared)
        if not no_open:
            webbrowser.open(with_ticket(shared))
        return
    token = variable("HIVEPIPE_WEB_TOKEN") or secrets.token_urlsafe(24)
    reader_token = secrets.token_urlsafe(24) if read_only_token else ""
    port = default_port() if port is None else port
    listening = listening_socket(bind, port)
    base = f"http://{in_url(bind)}:{listening.getsockname()[1]}/?token="
    address = f"{base}{quote(token, safe='')}"
    say(address)
    if reader_token:
        say(f"only reads: {base}{quote(reader_token, safe='')}")
    if not is_local(bind):
        say("reachable from other machines: the token shows everything recorded", err=True)
    if not no_open:  # in a separate process, because a text browser runs until the user quits
        subprocess.run([sys.executable, "-I", "-c", _OPEN, with_ticket(address)], check=False)
    exec_server(listening, token, reader_token, is_local=is_local(bind))

"""rq-dashboard behind a token, with nothing run that a job carries; `/metrics` and `/status.json`.

What deletes is refused: a job that vanished would be missing in the accounts for ever.
"""

import hmac
import json
import socket
from collections.abc import Callable
from typing import Any

import rq_dashboard
from flask import Flask, Response, redirect, request
from rq_dashboard.web import setup_rq_connection
from werkzeug.serving import BaseWSGIServer, make_server

from hivepipe.dashboard.metrics import exposition
from hivepipe.queues.connection import url
from hivepipe.queues.restricted_rq import restrict

COOKIE = "hivepipe_dashboard"
_CHANGES_ALLOWED = ("rq_dashboard.requeue_job_view", "rq_dashboard.requeue_all")
_REFUSED = "not from here: `hivepipe failed discard` removes a job and keeps the accounts\n"
_HEADERS = {
    # rq-dashboard's pages hold scripts, which compile templates; nothing is loaded from elsewhere.
    "Content-Security-Policy": (
        "default-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; "
        "img-src 'self' data:"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def dashboard(address: str, token: str, report: Callable[[], dict[str, Any]]) -> Flask:
    """Return the application; from now on RQ in this process loads plain values alone."""
    restrict()
    # An application's own /static comes before a blueprint's, and the pages ask for both.
    app = Flask("hivepipe", static_folder=rq_dashboard.blueprint.static_folder)
    app.config.from_object(rq_dashboard.default_settings)
    app.config["RQ_DASHBOARD_REDIS_URL"] = url(address)
    app.config["RQ_DASHBOARD_DISABLE_DELETE"] = True
    app.register_blueprint(rq_dashboard.blueprint)
    setup_rq_connection(app)

    @app.before_request
    def _admit() -> Response | None:
        return _judge(token)

    @app.after_request
    def _harden(response: Response) -> Response:
        response.headers.update(_HEADERS)
        return response

    @app.get("/metrics")
    def _metrics() -> Response:
        return Response(exposition(report), mimetype="text/plain")

    @app.get("/status.json")
    def _status() -> Response:
        return Response(json.dumps(report()), mimetype="application/json")

    return app


def _judge(token: str) -> Response | None:
    """Admit who knows the token: by a cookie, as a bearer, or once in the address."""
    asked = request.args.get("token", "")
    if asked and _is(asked, token):
        answer = redirect(request.path)
        answer.set_cookie(COOKIE, token, httponly=True, samesite="Strict")
        return answer  # type: ignore[return-value]
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if not _is(request.cookies.get(COOKIE, ""), token) and not _is(bearer, token):
        return Response("open the address that `hivepipe dashboard` printed\n", 401)
    if request.endpoint in _CHANGES_ALLOWED:
        return None if request.method == "POST" else Response("by POST alone\n", 405)
    return None if request.method in ("GET", "HEAD") else Response(_REFUSED, 403)


def _is(said: str, token: str) -> bool:
    return hmac.compare_digest(said.encode(), token.encode())


def server(app: Flask, host: str, port: int) -> BaseWSGIServer:
    """Return a server that listens; OSError: it may not. Port 0: any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        return make_server(host, port, app, threaded=True, fd=listening.fileno())

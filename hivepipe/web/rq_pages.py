"""rq-dashboard behind a token, plus `/metrics` and `/status.json`; job code is never executed.

Deletions are refused: a deleted job would be missing in the accounts forever.
"""

import json
import socket
from collections.abc import Callable
from typing import Any

import rq_dashboard
from flask import Flask, Response, current_app, redirect, request
from rq.registry import FinishedJobRegistry
from rq_dashboard.web import setup_rq_connection
from werkzeug.serving import BaseWSGIServer, make_server

from hivepipe.monitor.admission import cookie_name, is_loopback, is_token
from hivepipe.monitor.metrics import exposition
from hivepipe.queue.connection import url
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.restricted_rq import restrict
from hivepipe.web.rq_templates import policy, use_strict_templates

_CHANGES_ALLOWED = ("rq_dashboard.requeue_job_view", "rq_dashboard.requeue_all")
_REFUSED = "not from here: `hivepipe failed discard` removes a job and keeps the accounts\n"
_HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def dashboard(
    address: str, token: str, report: Callable[[], dict[str, Any]], *, is_local: bool
) -> Flask:
    """Return the application; RQ in this process then deserializes plain values only.

    `is_local`: the server listens on the loopback, so requests with other host names are refused.
    """
    restrict()
    # The application's /static precedes that of a blueprint, and the pages request both.
    app = Flask("hivepipe", static_folder=rq_dashboard.blueprint.static_folder)
    app.config.from_object(rq_dashboard.default_settings)
    app.config["RQ_DASHBOARD_REDIS_URL"] = url(address)
    app.config["RQ_DASHBOARD_DISABLE_DELETE"] = True
    app.register_blueprint(rq_dashboard.blueprint)
    setup_rq_connection(app)
    use_strict_templates(app)

    @app.before_request
    def _admit() -> Response | None:
        return _judge(token, is_local)

    @app.before_request
    def _forget_expired() -> None:
        """Remove expired jobs as `rq info` does; otherwise the pages count them."""
        if request.blueprint == "rq_dashboard" and request.method == "GET":
            for name in ALL_QUEUES:
                FinishedJobRegistry(name, connection=current_app.redis_conn).cleanup()  # type: ignore[attr-defined]

    @app.after_request
    def _harden(response: Response) -> Response:
        response.headers.update(_HEADERS)
        response.headers["Content-Security-Policy"] = policy()
        return response

    @app.get("/metrics")
    def _metrics() -> Response:
        return Response(exposition(report), mimetype="text/plain")

    @app.get("/status.json")
    def _status() -> Response:
        return Response(json.dumps(report()), mimetype="application/json")

    return app


def _judge(token: str, is_local: bool) -> Response | None:
    """Check the token (cookie, bearer or query) and the request; None: admitted."""
    if is_local and not is_loopback(request.host):
        return Response("call it by the address that `hivepipe dashboard` printed\n", 403)
    cookie = cookie_name(token)
    given = request.args.get("token", "")
    if given and is_token(given, token):
        answer = redirect(request.path)
        answer.set_cookie(cookie, token, httponly=True, samesite="Strict")
        return answer  # type: ignore[return-value]
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if not is_token(request.cookies.get(cookie, ""), token) and not is_token(bearer, token):
        return Response("open the address that `hivepipe dashboard` printed\n", 401)
    if request.method in ("GET", "HEAD"):
        by_post = request.endpoint in _CHANGES_ALLOWED
        return Response("by POST alone\n", 405) if by_post else None
    # SameSite ignores ports: a page of another server on this machine is the "same site".
    if request.headers.get("Origin", request.host_url.rstrip("/")) != request.host_url.rstrip("/"):
        return Response("not from another page\n", 403)
    return None if request.endpoint in _CHANGES_ALLOWED else Response(_REFUSED, 403)


def server(app: Flask, host: str, port: int) -> BaseWSGIServer:
    """Return a listening server; OSError: the address cannot be bound. Port 0: any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family) as listening:
        return make_server(host, port, app, threaded=True, fd=listening.fileno())

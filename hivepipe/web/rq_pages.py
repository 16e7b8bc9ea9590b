"""rq-dashboard as RQ's own view of a stack: it is read-only and executes no job code."""

from typing import Any, cast

import redis
import rq_dashboard
from a2wsgi import WSGIMiddleware
from flask import Flask, Response, current_app, request
from rq.registry import FinishedJobRegistry
from rq_dashboard import web as dashboard
from starlette.types import ASGIApp

from hivepipe.queue.connection import connect, url
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.restricted_rq import restrict
from hivepipe.web.rq_templates import policy, use_strict_templates

_CHANGES_BY_GET = "rq_dashboard.requeue_all"
_AWAY = "no Redis answers: this project's stack is paused, or rests until the next event\n"
_REFUSED = "this view is read-only: retry and discard failed jobs in the view Queues\n"


def rq_pages(address: str) -> ASGIApp:
    """Return the application for a Redis; RQ in this process then loads only plain values."""
    restrict()
    # The application's /static takes precedence over the blueprint's, and pages request both.
    app = Flask("hivepipe", static_folder=rq_dashboard.blueprint.static_folder)
    app.config.from_object(rq_dashboard.default_settings)
    app.config["RQ_DASHBOARD_REDIS_URL"] = url(address)
    app.config["RQ_DASHBOARD_DISABLE_DELETE"] = True
    app.register_blueprint(rq_dashboard.blueprint)
    dashboard.from_url = _connect  # called per request; the original would wait without a limit
    dashboard.setup_rq_connection(app)
    use_strict_templates(app)
    app.before_request(_refuse_changes)
    app.before_request(_forget_expired)
    app.after_request(_harden)
    app.register_error_handler(redis.ConnectionError, _no_answer)
    app.register_error_handler(redis.TimeoutError, _no_answer)
    return cast(ASGIApp, WSGIMiddleware(cast(Any, app)))


def _connect(url: str, **_: object) -> tuple[None, redis.Redis]:
    return None, connect(url)


def _refuse_changes() -> Response | None:
    return Response(_REFUSED, 405) if request.endpoint == _CHANGES_BY_GET else None


def _no_answer(error: Exception) -> Response:
    if isinstance(error, redis.AuthenticationError):  # Redis answers, so it is not away
        raise error
    return Response(_AWAY, 503, mimetype="text/plain")


def _forget_expired() -> None:
    """Remove expired jobs from Redis, as `rq info` does, because RQ's pages would count them."""
    if request.blueprint == "rq_dashboard":
        for name in ALL_QUEUES:
            FinishedJobRegistry(name, connection=current_app.redis_conn).cleanup()  # type: ignore[attr-defined]


def _harden(response: Response) -> Response:
    response.headers["Content-Security-Policy"] = policy()
    return response

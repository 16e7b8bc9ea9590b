"""The report on one home for programs, as JSON and as Prometheus metrics."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from hivepipe.errors import HivepipeError
from hivepipe.home import Place, short_hash
from hivepipe.monitor.metrics import exposition
from hivepipe.monitor.status import status_report
from hivepipe.reading.homes import homes_named, settings_of
from hivepipe.reading.whole_status import whole_report
from hivepipe.stack.runtime_folder import Stack
from hivepipe.web.view_content import damage_named
from hivepipe.web.view_json import json_of


def monitoring(here: Place, request: Request) -> Response:
    """Answer `/status.json` or `/metrics` for the home in the URL, or else for `here`."""
    key = request.query_params.get("home", "") or short_hash(here.home)
    try:
        (known,) = homes_named(here, key)
    except HivepipeError as error:
        return PlainTextResponse(f"{error}\n", 404)
    place = known.place()
    try:
        with settings_of(known.home), damage_named():
            if request.scope["path"] == "/metrics":
                return PlainTextResponse(exposition(status_report(place, Stack.of(place))))
            return Response(json_of(whole_report(place)), media_type="application/json")
    except HivepipeError as error:
        return PlainTextResponse(f"{error}\n", 500)

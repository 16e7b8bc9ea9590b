"""Handle the event of `hivepipe doctor --probe`, which passes all stages without a session.

The probe's only job writes nothing but its own id into the database. `hivepipe.doctor.probing`
gives each event a session id that begins with PROBE, and looks for the job's id.

Hooks import this module for such events only.
"""

from hivepipe.events.claude_code import PROBE, Event
from hivepipe.events.job_plan import Context, Job, encode
from hivepipe.home import Place
from hivepipe.hook.hand_over import hand_over


def hand_over_probe(event: Event, place: Place, event_time_ns: int) -> str:
    """Enqueue the probe's job; return the spool file to apply now, or ""."""
    job = Job("probe", {"event": event.name}, event.session_id[len(PROBE) :])
    context = Context(event_time_ns=event_time_ns, project=place.project, cwd=event.cwd)
    messages = encode([job], event, context)
    return hand_over(event.name, place, event_time_ns, messages)[0]

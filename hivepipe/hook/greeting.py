"""The context of a session at its start, and the variables for its shell commands.

The context consists of parts. The writer stores the parts as files, so that no hook opens the
database:

    <home>/context/project-<hash>.txt   the user's notes
                   left-<hash>-<n>.txt  a task without a session, most recently changed first
                   last-<hash>-<n>.txt  a session that ended here, the newest one first
                   task-<id>.txt        the task and its progress
                   goal-<session>.txt   after a compaction: the goal of the session
                   profile-<id>.txt     the profile's identity
                   lead-<id>-<hash>.txt the work of the other agents in the swarm

A part `left` or `last` begins with the id of the task or session that it is about. A session skips
the part about itself, so two parts of each kind are stored. Outdated parts are delivered as they
are. Hooks import this module at SessionStart only.
"""

import posix

from hivepipe import settings
from hivepipe.events.claude_code import Event, valid_id
from hivepipe.events.job_plan import Context
from hivepipe.home import Place, read_small, short_hash
from hivepipe.hook.waiting_notice import notice

MOST_CHARS = 9_500
PART_BYTES = 1 << 16
PARTS_OF_A_KIND = 2


def greeting(event: Event, place: Place, context: Context, by_plugin: bool) -> bytes:
    """Export the session's ids; return the answer to a SessionStart, or b"" if there is none."""
    source = getattr(event, "source", "")
    assigned = read_small(f"{place.home}/tasks/sessions/{context.own_session}").strip()
    task = context.task or valid_id(assigned)
    export_names(context, task, event.session_id)
    text = briefing(place, source, context.own_session, context.swarm, task, context.profile)
    line = "" if source == "compact" else _line(place, context.event_time_ns, by_plugin)
    if not text and not line:
        return b""
    from hivepipe.hook import answers  # noqa: PLC0415  most starts have nothing to say

    return answers.context(event.name, text, line) if text else answers.message(line)


def _line(place: Place, time_ns: int, by_plugin: bool) -> str:
    """Return the line that tells the user of a missing package or of waiting events, or ""."""
    missing = ""
    if by_plugin:
        from hivepipe.hook.plugin import unfinished  # noqa: PLC0415  rare

        missing = unfinished(place)
    # `claude -p` and the Agent SDK show nobody the line, so it waits for another session.
    if (settings.environment("CLAUDE_CODE_ENTRYPOINT") or "").startswith("sdk-"):
        return ""
    return notice(place.home, place.runtime, missing, time_ns)


def briefing(place: Place, source: str, session: str, swarm: str, task: str, profile: str) -> str:
    """Return the context for a session that starts: at most 9,500 characters, or ""."""
    goal = read_part(place.home, f"goal-{session}") if source == "compact" else ""
    found = [
        goal or (read_part(place.home, f"task-{task}") if task else ""),
        read_part(place.home, f"profile-{profile}") if profile else "",
        read_part(place.home, lead_part(profile, swarm)) if profile else "",
        read_part(place.home, project_part(place.project)),
        _of_another(place, "left", task),
        _of_another(place, "last", session),
    ]
    return "\n\n".join([text for text in found if text])[:MOST_CHARS]


def project_part(project: str, kind: str = "project", number: int | None = None) -> str:
    """Return the name of a briefing part about a project, of this `kind` and `number`."""
    name = f"{kind}-{short_hash(project)}"
    return name if number is None else f"{name}-{number}"


def _of_another(place: Place, kind: str, own: str) -> str:
    """Return the first part of this kind that is not about the session or task `own`, or ""."""
    for number in range(PARTS_OF_A_KIND):
        id, _, text = read_part(place.home, project_part(place.project, kind, number)).partition(
            "\n"
        )
        if id != own:
            return text
    return ""


def lead_part(profile: str, swarm: str) -> str:
    """Return the name of the briefing part for a lead, about the other agents in the swarm."""
    return f"lead-{profile}-{short_hash(swarm)}"


def part_path(home: str, part: str) -> str:
    """Return the path of the file that holds one part of the briefing."""
    return f"{home}/context/{part}.txt"


def read_part(home: str, part: str) -> str:
    """Return the text of a part of the briefing, or ""."""
    return read_small(part_path(home, part), PART_BYTES).strip()


def export_names(context: Context, task: str, session_id: str) -> None:
    """Write the ids of session, instance, profile and task into CLAUDE_ENV_FILE.

    The session's shell commands source this file. HIVEPIPE_EXPORTED tells a `claude` started in
    such a shell that it is another session of the same task and profile. `session_id` is the id in
    the event. In Claude Code 2.1.197 and some later versions, a fork starts with the id of its
    parent session, while its shells have the right id.
    """
    path = settings.environment("CLAUDE_ENV_FILE")
    if not path:
        return
    names = {
        "HIVEPIPE_SESSION_ID": context.own_session,
        "HIVEPIPE_INSTANCE_ID": context.instance,
        "HIVEPIPE_AGENT_ID": context.profile,
        "HIVEPIPE_TASK_ID": task,
        "HIVEPIPE_EXPORTED": "1",
    }
    # A shell sources these lines: they contain only valid ids, in quotes.
    lines = "".join([f"export {name}='{id}'\n" for name, id in names.items() if valid_id(id)])
    if session_id and session_id == context.own_session:  # false if the user named another session
        lines += 'export HIVEPIPE_SESSION_ID="${CLAUDE_CODE_SESSION_ID:-$HIVEPIPE_SESSION_ID}"\n'
    try:
        flags = posix.O_WRONLY | posix.O_APPEND | posix.O_CREAT | posix.O_CLOEXEC
        descriptor = posix.open(path, flags | posix.O_NONBLOCK, 0o600)
        try:
            posix.write(descriptor, lines.encode())
        finally:
            posix.close(descriptor)
    except OSError:  # a start must not fail because of its variables
        return

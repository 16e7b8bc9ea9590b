"""The texts of a briefing's parts.

The texts state facts and give no instructions, because text that reads like a system command looks
like an injection. Text from other sources (a title, a task, a file, a prompt) is quoted.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hivepipe.events.pastes import with_short_pastes
from hivepipe.text.quoting import cut, of_repository, on_one_line, quoted

Entry = Mapping[str, Any]

MOST_TASK_CHARS = 1_200
MOST_GOAL_CHARS = 1_500
MOST_PROFILE_CHARS = 3_200
MOST_NOTES_CHARS = 2_800
MOST_LAST_CHARS = 1_500
MOST_LEAD_CHARS = 2_000
MOST_NOTE_CHARS = 1_500
_MOST_AT_WORK_CHARS = 1_000
_MOST_SPAWNED_CHARS = 400
_MOST_LOST_CHARS = 300
_MOST_PROMPT_CHARS = 600
_MOST_SUMMARY_CHARS = 1_000
_MOST_LINE_CHARS = 120
_MOST_ID_CHARS = 130
_HEADING_CHARS = 50


class Notes(NamedTuple):
    """The name and the text of a file of notes."""

    name: str
    text: str


def task_part(task: Entry) -> str:
    return cut(f"The task of this session is {_task(task)}", MOST_TASK_CHARS)


def goal_part(task: Entry | None, prompt: str) -> str:
    """Return the briefing text that repeats the task and the last prompt after a compaction."""
    found = []
    if task:
        found.append(f"Before the compaction this session worked on task {_task(task)}")
    if prompt:
        found.append(f"The last prompt of the user before the compaction was:\n{_prompt(prompt)}")
    return cut("\n\n".join(found), MOST_GOAL_CHARS)


def notes_part(notes: Iterable[Notes]) -> str:
    found = [of_repository(note.name, note.text, MOST_NOTE_CHARS) for note in notes]
    return cut("\n\n".join(found), MOST_NOTES_CHARS)


def left_part(task: Entry) -> str:
    """Return the briefing text about an open task whose session has ended."""
    return cut(f"An open task that no session works on: {_task(task)}", MOST_TASK_CHARS)


def last_part(last: Entry) -> str:
    """Return the briefing text about the session that ended last."""
    return cut(_last_session(last), MOST_LAST_CHARS)


def profile_part(profile: Entry, files: Iterable[Notes]) -> str:
    """Return the briefing text about the session's profile, with the profile's own files."""
    files = list(files)
    role = on_one_line(profile["role"], _MOST_ID_CHARS)
    head = f"This session is one of the profile {_id(profile)}, a {role} of its swarm."
    room = (MOST_PROFILE_CHARS - len(head)) // max(len(files), 1) - _HEADING_CHARS
    found = [f"From {file.name} of this profile:\n{quoted(file.text, room)}" for file in files]
    return cut("\n\n".join([head, *found]), MOST_PROFILE_CHARS)


def lead_part(sessions: Iterable[Entry], delegations: Iterable[Entry]) -> str:
    """Return the briefing text for a session whose profile has the role lead.

    The text names the swarm's open sessions, recent delegations and lost sessions.
    """
    sessions = list(sessions)
    at_work = [_session_line(each) for each in sessions if each["condition"] != "lost"]
    lost = [_session_line(each) for each in sessions if each["condition"] == "lost"]
    spawned = [_delegation_line(agent) for agent in delegations]
    found = [
        *_listed("Open sessions of this swarm:", at_work, _MOST_AT_WORK_CHARS),
        *_listed("Delegated in the last five minutes:", spawned, _MOST_SPAWNED_CHARS),
    ]
    if found:
        found.append(
            "Other sessions work on what is listed here: doing it again would duplicate their work."
        )
    found += _listed(
        "Lost sessions (their process has ended, or they show no activity):", lost, _MOST_LOST_CHARS
    )
    return cut("\n\n".join(found), MOST_LEAD_CHARS)


def _listed(head: str, lines: list[str], room: int) -> list[str]:
    """Return a list with one text, or [] if there are no lines.

    The text has `head`, and the lines that fit into `room` characters. The number of the other
    lines follows.
    """
    shown, left = [], room + 1  # no newline after the last line
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            break
        shown.append(line)
    if len(shown) < len(lines):
        shown.append(f"- and {len(lines) - len(shown)} more")
    return ["\n".join([head, *shown])] if lines else []


def _id(entry: Entry) -> str:
    return on_one_line(entry["id"], _MOST_ID_CHARS)


def _task(task: Entry) -> str:
    text = f"{_id(task)}:\n{quoted(task['text'], MOST_TASK_CHARS)}" if task["text"] else _id(task)
    if task["progress"]:
        progress = quoted(task["progress"], MOST_TASK_CHARS)
        text += f"\nProgress so far ({_day(task['progress_at'])}):\n{progress}"
    return text


def _last_session(last: Entry) -> str:
    head = f"The last session here, {_id(last)}, ended {_day(last['ended_at'])}."
    if last["objective"]:
        head += f" Its title:\n{quoted(_one_line(last['objective']), _MOST_LINE_CHARS)}"
    if last["summary"]:
        return f"{head}\nIts summary:\n{quoted(last['summary'], _MOST_SUMMARY_CHARS)}"
    if last["prompt"]:
        return f"{head}\nIts last prompt was:\n{_prompt(last['prompt'])}"
    return head


def _prompt(text: str) -> str:
    if len(text) > _MOST_PROMPT_CHARS:  # margins and escapes of the quote need room, too
        text = with_short_pastes(text, _MOST_PROMPT_CHARS // 2)
    return quoted(text, _MOST_PROMPT_CHARS)


def _session_line(session: Entry) -> str:
    who = session["profile"] or f"session {session['id'][:8]}"
    head = f"{who} ({session['condition']}, last active {_day(session['last_active_at'])})"
    if session["task_id"]:
        more = session.get("progress") or session.get("text")
        return _item(f"{head}: {session['task_id']}", more)
    return _item(head, session["objective"])


def _delegation_line(agent: Entry) -> str:
    return _item(f"{agent['type'] or 'agent'} ({agent['status']})", agent["name"])


def _item(head: str, more: str | None) -> str:
    """Return the list item `head`, with `more` quoted below it."""
    line = f"- {_one_line(head)}"
    return f"{line}\n{quoted(_one_line(more), _MOST_LINE_CHARS, '  ')}" if more else line


def _one_line(text: str) -> str:
    return on_one_line(text, _MOST_LINE_CHARS - len("  > "))


def _day(time: str | None) -> str:
    return f"{time[:10]} {time[11:16]} UTC" if time else "at an unknown time"

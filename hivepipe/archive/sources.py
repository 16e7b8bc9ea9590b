"""Transcripts of Claude Code and Codex CLI: recognise, attribute and open their files.

    <claude>/projects/<folder>/<session>.jsonl
    <claude>/projects/<folder>/<session>/subagents/**/agent-<agent>.jsonl
    <claude>/projects/<folder>/<session>/subagents/workflows/<workflow>/journal.jsonl
    <claude>/tasks/<agent>.jsonl            of subagents, in older versions
    <codex>/sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl

A file is read only if its real path has one of these forms, even if an event names it.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson

from hivepipe.archive.reading import LineReader
from hivepipe.errors import RefusedTranscriptError
from hivepipe.events.claude_code import valid_id
from hivepipe.files.folders import Folder
from hivepipe.files.regular_file import SpecialFileError
from hivepipe.home import absolute, read_small, user_folder
from hivepipe.redact import redact_text
from hivepipe.transcripts.lines import CAP_PATH, id_of, moment, read_line, text

UNKNOWN_TYPE = "unknown"
WORKFLOW_TYPE = "workflow"

_HEAD_BYTES = 64 << 10  # size of one read
_LONGEST_HEAD_BYTES = 8 << 20
_LARGEST_NOTE_BYTES = 64 << 10
_FOLDERS = ("projects", "tasks", "sessions")
_OF_CODEX = re.compile(r"rollout-.*-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


class Head(NamedTuple):
    """Values from a transcript's first lines. A value that no line has is empty."""

    lines: int
    time: str  # time of the first line with a time: UTC, milliseconds
    cwd: str
    session: str


@dataclass(frozen=True, slots=True)
class Source:
    """A transcript, open for reading."""

    path: str
    session: str
    agent: str  # id of a subagent, or "" for a main session
    agent_type: str
    descriptor: int
    started_at: str = ""  # time in the file name, for transcripts without a time in their lines

    @property
    def key(self) -> str:
        return f"{self.session}/{self.agent}" if self.agent else self.session

    @property
    def status(self) -> os.stat_result:
        return os.fstat(self.descriptor)

    def head(self) -> Head:
        """Return values of the first lines, read until all are found or a limit is reached."""
        found = Head(0, "", "", "")
        reader = LineReader(self.descriptor, chunk_bytes=_HEAD_BYTES)
        for batch in reader.batches():
            for raw in batch:
                line = read_line(raw) or {}
                found = Head(
                    found.lines + 1,
                    found.time or moment(line),
                    found.cwd or text(line, "cwd", CAP_PATH),
                    found.session or id_of(line, "sessionId"),
                )
            if all(found) or reader.offset > _LONGEST_HEAD_BYTES:
                break
        return found


def default_folder() -> str:
    """Return the folder that Claude Code uses unless CLAUDE_CONFIG_DIR names another."""
    return f"{user_folder()}/.claude"


@contextmanager
def open_source(
    path: str, claude_folder: str = "", session: str = "", agent_type: str = ""
) -> Iterator[Source]:
    """Open a transcript.

    `claude_folder` is Claude Code's folder if it is not the default one. `session` and `agent_type`
    come from the event, and are used if the path has none.

    Raises OSError as `open` does, and RefusedTranscriptError if the file is not a transcript.
    Messages do not contain the path, because they go into a log and folder names are private.
    """
    real = os.path.realpath(absolute(path))
    root, names = _inside_claude(real, claude_folder)
    source = _described(real, names, session, agent_type)
    try:
        with Folder(root, *names[:-1]) as folder:
            descriptor = folder.open(names[-1])
    except SpecialFileError:
        raise RefusedTranscriptError("it is not a file") from None
    try:
        source = replace(source, descriptor=descriptor)
        if not source.session:
            source = replace(source, session=source.head().session)
        if not source.session:
            raise RefusedTranscriptError("its lines name no session")
        yield source
    finally:
        os.close(descriptor)


def _inside_claude(real: str, claude_folder: str) -> tuple[str, list[str]]:
    """Return the root that contains a real path, and the path segments below that root.

    Raise RefusedTranscriptError if no root contains the path.
    """
    named = absolute(claude_folder) if claude_folder else ""
    for folder in (default_folder(), f"{user_folder()}/.codex", named):
        for name in _FOLDERS:
            root = os.path.realpath(f"{folder}/{name}")
            if folder and real.startswith(f"{root}/"):
                return root, real[len(root) + 1 :].split("/")
    raise RefusedTranscriptError("it is not in a folder of Claude Code's or Codex CLI's")


def _described(real: str, names: list[str], session: str, agent_type: str) -> Source:
    """Return the source that a path describes, without opening its file.

    Raise RefusedTranscriptError for a path that is not named as a transcript.
    """
    stem, suffix = os.path.splitext(names[-1])
    if suffix != ".jsonl":
        raise RefusedTranscriptError("it is not named *.jsonl")
    if of_codex := _OF_CODEX.fullmatch(stem):
        return Source(real, of_codex[1], "", "", -1)
    is_agent = stem.startswith("agent-") or len(names) != 2
    is_workflow = stem == "journal" and names[-3:-2] == ["workflows"]
    id = valid_id(names[-2] if is_workflow else stem.removeprefix("agent-"))
    if not id:
        raise RefusedTranscriptError("it is not named by a valid id")
    if not is_agent:
        return Source(real, id, "", "", -1)
    owner = valid_id(names[1]) if "subagents" in names[2:] else session
    if not owner and len(names) > 2:
        raise RefusedTranscriptError("it is not in the folder of a session")
    if is_workflow:
        return Source(real, owner, id, WORKFLOW_TYPE, -1)
    known = redact_text(agent_type) or _noted_type(real) or UNKNOWN_TYPE
    return Source(real, owner, id, known, -1)


def _noted_type(real: str) -> str:
    """Return the agent type in the metadata file beside a subagent's transcript, or ""."""
    note = read_small(f"{real.removesuffix('.jsonl')}.meta.json", _LARGEST_NOTE_BYTES)
    try:
        noted = orjson.loads(note)
    except ValueError:
        return ""
    return redact_text(text(noted, "agentType")) if isinstance(noted, dict) else ""


def transcripts_in(claude_folder: str) -> Iterator[str]:
    """Yield the path of every transcript. A session comes before its subagents.

    Within a folder, the file whose last change is oldest comes first. So an original transcript
    comes before its copies, which are newer.
    """
    projects = f"{claude_folder}/projects"
    for project in _real_folders(projects):
        own = [entry for entry in _entries(project) if _is_transcript(entry)]
        yield from (entry.path for entry in sorted(own, key=_age))
        for session in _real_folders(project):
            yield from _below(f"{session}/subagents")


def newest_session(project: str) -> str:
    """Return the session's transcript that changed last in a folder of `projects`, or ""."""
    ages = [_age(entry) for entry in _entries(project) if _is_transcript(entry)]
    return max((age for age in ages if not age[0]), default=(False, 0, ""))[2]


def transcripts_of_agents(path: str) -> list[str]:
    """Return the transcripts of a session's subagents; `path` is the transcript of the session."""
    return [*_below(f"{path.removesuffix('.jsonl')}/subagents")]


def _below(folder: str) -> Iterator[str]:
    yield from sorted(entry.path for entry in _entries(folder) if _is_transcript(entry))
    for inner in _real_folders(folder):
        yield from _below(inner)


def _age(entry: "os.DirEntry[str]") -> tuple[bool, int, str]:
    with suppress(OSError):
        return entry.name.startswith("agent-"), entry.stat().st_mtime_ns, entry.path
    return True, 0, entry.path  # the file was deleted meanwhile


def _is_transcript(entry: "os.DirEntry[str]") -> bool:
    return entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False)


def _real_folders(folder: str) -> list[str]:
    return sorted(entry.path for entry in _entries(folder) if entry.is_dir(follow_symlinks=False))


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []

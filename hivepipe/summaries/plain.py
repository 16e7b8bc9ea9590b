"""The summary without a model, from the archive's metadata and Claude Code's own summary."""

from typing import Any

from hivepipe.summaries.question import LONGEST_SUMMARY, Answer
from hivepipe.text.plurals import counted
from hivepipe.transcripts.lines import part, typed

_FILES_SHOWN = 20
_LAST_WORDS = 600


def plain_summary(meta: dict[str, Any]) -> Answer:
    """Return a summary of a session from the metadata of its archive, cut at LONGEST_SUMMARY."""
    parts = [_head(meta), _work(meta), _compacted(meta), _end(meta)]
    files = [path for path in typed(meta, "files_modified", list) if isinstance(path, str)]
    words = "\n".join(filter(None, parts))[:LONGEST_SUMMARY]
    return Answer(words, files=tuple(files[:_FILES_SHOWN]))


def plain_text_summary(text: str, harness: str) -> Answer:
    """Return a summary of a text without metadata: its size and its end."""
    lines = len(text.splitlines())
    of = "" if harness == "other" else f" of {harness}"
    head = f"A text{of}, {counted(lines, 'line')}."
    last = " ".join(text.split())
    if len(last) > _LAST_WORDS:
        last = f"... {last[-_LAST_WORDS:].partition(' ')[2]}"
    return Answer(f"{head} Its last words: {last}"[:LONGEST_SUMMARY] if last else head)


def _head(meta: dict[str, Any]) -> str:
    title = typed(meta, "title", str)
    minutes = round(_number(meta, "duration_seconds") / 60)
    length = f"{counted(round(_number(meta, 'message_count')), 'message')} in {minutes} min"
    return f"{title} ({length})" if title else f"A session of {length}"


def _work(meta: dict[str, Any]) -> str:
    found = []
    for name, counts in part(meta, "tools").items():
        calls = counts.get("calls") if isinstance(counts, dict) else None
        found.append(f"{name} {calls}")
    skills = ", ".join(str(skill) for skill in typed(meta, "skills_used", list))
    words = f"Tools: {', '.join(found)}." if found else ""
    return f"{words} Skills: {skills}.".strip() if skills else words


def _compacted(meta: dict[str, Any]) -> str:
    summary = typed(meta, "compact_summary", str).strip()
    return f"Claude Code's own summary: {summary}" if summary else ""


def _end(meta: dict[str, Any]) -> str:
    last = typed(part(meta, "deliverables"), "message", str).strip()
    words = f"Outcome: {typed(meta, 'outcome', str) or 'unknown'}."
    return f"{words} Claude's last words: {last[:_LAST_WORDS]}" if last else words


def _number(meta: dict[str, Any], name: str) -> float:
    value = meta.get(name)
    return value if isinstance(value, int | float) else 0

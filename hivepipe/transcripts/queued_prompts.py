"""Prompts that the user typed while Claude was working, read as messages of the user.

    {"type": "attachment", "attachment": {"type": "queued_command", "commandMode": "prompt",
     "prompt": "...", "origin": {"kind": "human"}}, ...}

Claude Code adds such prompts to the running turn and writes no user message. Source: transcripts of
2.1.132 to 2.1.331.
"""

from typing import Any

Fields = dict[str, Any]


def is_queued_prompt(line: Fields) -> bool:
    """Tell whether a line is a prompt that was added to a running turn."""
    attachment = line.get("attachment")
    return (
        line.get("type") == "attachment"
        and isinstance(attachment, dict)
        and attachment.get("type") == "queued_command"
        and attachment.get("commandMode", "prompt") == "prompt"
    )


def as_message(line: Fields) -> Fields:
    """Return a queued prompt's line as a message, with the prompt's origin and `isMeta`."""
    attachment = line["attachment"]
    message = {"role": "user", "content": attachment.get("prompt")}
    about = {name: attachment.get(name) for name in ("origin", "isMeta")}
    return {**line, "type": "user", **about, "message": message}

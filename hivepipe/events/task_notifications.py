"""Parse the notification about a subagent that ran in the background and has ended.

No other source has tokens and duration of such an agent, or says that it was stopped. Hooks import
this module for prompts with such a notification only.
"""

from hivepipe.events.claude_code import CAP_TEXT, FAILED_OUTCOMES, clean, valid_id

_WAITS = '" is waiting on its own background work'  # the agent will continue (2.1.332)


def finished_agent(prompt: str) -> dict[str, object] | None:
    """Return the data of the subagent whose end a prompt reports, or None for other prompts.

    Return None also if the prompt reports neither tokens nor a failure.
    """
    head, _, rest = prompt.partition("<result>")  # the agent's own text follows this tag
    usage = (rest or head).rpartition("<usage>")[2]
    agent, tokens = valid_id(_element(head, "task-id")), _number(usage, "subagent_tokens")
    if tokens is None:
        tokens = _number(usage, "total_tokens")  # the name in old clients
    failed = _element(head, "status").lower() in FAILED_OUTCOMES
    summary = clean(_element(head, "summary")[:CAP_TEXT])
    # Commands in the background and workflows have notifications, too, and a workflow has tokens.
    is_agents = bool(agent) and summary.startswith('Agent "') and not summary.endswith(_WAITS)
    if not is_agents or (tokens is None and not failed):
        return None
    return {
        "agent_id": agent,
        "type": "",
        "failed": failed,
        "error": summary if failed else "",
        "tokens": tokens,
        "duration_ms": _number(usage, "duration_ms"),
    }


def _element(text: str, name: str) -> str:
    return text.partition(f"<{name}>")[2].partition(f"</{name}>")[0].strip()


def _number(text: str, name: str) -> int | None:
    found = _element(text, name)
    return int(found) if found.isascii() and found.isdigit() and len(found) < 16 else None

"""What one message of Claude's used: the record that costs are made of.

Several lines share a message, and forks, side questions and compactions replay it in other files.
A message is known by its id and its request; of its records the one with the most output counts.
"""

from dataclasses import dataclass, replace

from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.transcripts.lines import CAP_NAME, Fields, count, id_of, moment, part, text

SYNTHETIC = "<synthetic>"


@dataclass(frozen=True, slots=True)
class Usage:
    """One record of one message."""

    message_id: str
    request_id: str
    session: str
    agent: str
    time: str
    rate: Rate
    tokens: Tokens
    is_sidechain: bool = False  # a subagent's; or a side question's, which replays its parent's
    is_replay: bool = False  # a fork's copy, which names the session that said it

    @property
    def key(self) -> tuple[str, str]:
        """What the message is known by."""
        return (self.message_id, self.request_id)


def merged(one: Usage, other: Usage) -> Usage:
    """Return what two records of one message come to, `one` of the session that began first.

    The heavier one counts, as of the earlier time. The message belongs to the session that a fork
    names as its origin, and rather to a session than to a subagent; neither order nor repetition
    matters. Where no origin is named (forks by `-p --fork-session`, and what Claude Code 1 copied
    of a session that it resumed) it belongs to `one`.
    """
    record = max(
        one,
        other,
        key=lambda it: (weight(it.tokens), it.rate.model, it.rate.speed, it.rate.region),
    )
    owner = min(one, other, key=_distance)
    time = min(one.time, other.time) or max(one.time, other.time)
    return replace(owner, time=time, rate=record.rate._replace(day=time[:10]), tokens=record.tokens)


def _distance(usage: Usage) -> tuple[bool, bool, str, str]:
    """Return how far a record is from the message's owner: the smallest is his."""
    named = usage.session if usage.is_replay else ""
    return (not usage.is_replay, usage.is_sidechain, usage.agent, named)


def weight(tokens: Tokens) -> tuple[int, ...]:
    """Return what two records of one message are compared by: the output, then the rest."""
    return (tokens.output, *tokens)


def message_key(line: Fields) -> tuple[str, str]:
    """Return what a message is known by: its id and its request; the line's id if it has none."""
    return (text(part(line, "message"), "id") or text(line, "uuid"), text(line, "requestId"))


def is_said_by_claude(line: Fields) -> bool:
    """Is the line a message of the model's, not a note of Claude Code's own or an API error?"""
    model = part(line, "message").get("model")
    return line.get("type") == "assistant" and not is_api_error(line) and model != SYNTHETIC


def is_api_error(line: Fields) -> bool:
    """Does the line stand where an answer would, had the API not failed?"""
    return line.get("isApiErrorMessage") is True


def usage_of(line: Fields) -> Usage | None:
    """Return what the message of a line used; None: the line is none, or cannot be told apart."""
    message = part(line, "message")
    used = part(message, "usage")
    message_id, request_id = message_key(line)
    if not (used and message_id and is_said_by_claude(line)):
        return None
    origin = part(line, "forkedFrom")
    tokens = _tokens(used)
    time = moment(line)
    return Usage(
        message_id=message_id,
        request_id=request_id,
        session=id_of(origin, "sessionId") or id_of(line, "sessionId"),
        agent=id_of(line, "agentId"),
        time=time,
        rate=Rate(
            model=text(message, "model", CAP_NAME),
            day=time[:10],
            speed="fast" if used.get("speed") == "fast" else "",
            region="us" if used.get("inference_geo") == "us" else "",
            band=tokens.band,
        ),
        tokens=tokens,
        is_sidechain=line.get("isSidechain") is True,
        is_replay=bool(origin),
    )


def _tokens(used: Fields) -> Tokens:
    """Read the counts; a cache write of unknown duration is one for five minutes, the default."""
    written = part(used, "cache_creation")
    an_hour = count(written, "ephemeral_1h_input_tokens")
    minutes = count(written, "ephemeral_5m_input_tokens")
    rest = count(used, "cache_creation_input_tokens") - an_hour - minutes
    return Tokens(
        input=count(used, "input_tokens"),
        output=count(used, "output_tokens"),
        cache_read=count(used, "cache_read_input_tokens"),
        cache_write_5m=minutes + max(rest, 0),
        cache_write_1h=an_hour,
        web_searches=count(part(used, "server_tool_use"), "web_search_requests"),
    )

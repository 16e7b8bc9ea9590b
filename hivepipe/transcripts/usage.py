"""The usage of one message of Claude, from which costs are computed.

A message has several lines, each with a usage record; the record with the most output counts.
Forks, side questions and compactions repeat the lines in other files. A message is identified by
its id and request id.
"""

from dataclasses import dataclass, replace

from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.transcripts.lines import CAP_NAME, Fields, count, id_of, moment, part, text

SYNTHETIC = "<synthetic>"


@dataclass(frozen=True, slots=True)
class Usage:
    """One usage record of one message."""

    message_id: str
    request_id: str
    session: str
    agent: str
    time: str
    rate: Rate
    tokens: Tokens
    # A message of a subagent, or of a side question, which replays messages of its parent
    is_sidechain: bool = False
    is_replay: bool = False  # a fork's copy, which names the original session

    @property
    def key(self) -> tuple[str, str]:
        return (self.message_id, self.request_id)


def merged(one: Usage, other: Usage) -> Usage:
    """Merge two records of one message; `one` is from the session that began first.

    Take the record with more output, and the earlier of the two times. If a fork names a session as
    the origin, the message belongs to that session. If one record is a session's and the other a
    subagent's, the message belongs to the session. If no origin is named (forks by `-p
    --fork-session`, and lines that Claude Code 1 copied from a resumed session), the message
    belongs to `one`. Merging more records in any order, or twice, gives the same result.
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
    """Return a sort key: a message belongs to the session and agent of its smallest record."""
    named = usage.session if usage.is_replay else ""
    return (not usage.is_replay, usage.is_sidechain, usage.agent, named)


def weight(tokens: Tokens) -> tuple[int, ...]:
    """Return the key for comparing two records of one message, by output first."""
    return (tokens.output, *tokens)


def message_key(line: Fields) -> tuple[str, str]:
    """Return the message's id (or else its line's id) and the id of its request."""
    return (text(part(line, "message"), "id") or text(line, "uuid"), text(line, "requestId"))


def is_by_claude(line: Fields) -> bool:
    """Tell whether the model wrote the line: notes of Claude Code and API errors do not count."""
    model = part(line, "message").get("model")
    return line.get("type") == "assistant" and not is_api_error(line) and model != SYNTHETIC


def is_api_error(line: Fields) -> bool:
    """Tell whether the line is an API error in place of an answer."""
    return line.get("isApiErrorMessage") is True


def usage_of(line: Fields) -> Usage | None:
    """Return the usage of a line's message.

    Return None if the usage or the message id is missing, or if the model did not write the line.
    """
    message = part(line, "message")
    used = part(message, "usage")
    message_id, request_id = message_key(line)
    if not (used and message_id and is_by_claude(line)):
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
    """Return a usage's token counts; cache writes of unknown duration count as five minutes."""
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

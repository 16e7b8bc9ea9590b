"""Facts in a transcript about its session, apart from messages: titles, usage counts, prompts."""

from dataclasses import dataclass, field

from hivepipe.costs.tokens import Tokens
from hivepipe.events.claude_code import clean
from hivepipe.transcripts.lines import CAP_NAME, Fields, count, part, unix_ms

CUSTOM_TITLE = "custom-title"  # the user's title; it takes precedence over Claude's


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """The facts about a session in new lines of its transcript.

    `titles` has the last title of each kind (custom-title, ai-title) and the number of its line.
    `counts` has the total usage of the session as counted by Claude Code (`cost-state`): start and
    running time in ms, tokens by model, time of the previous line. `scheduled` has ids and
    beginnings of prompts that Claude Code sent itself, as planned by `/loop` or a cron entry.
    `interrupted` has the times at which a person ended a turn.
    """

    session: str = ""
    titles: dict[str, tuple[str, int]] = field(default_factory=dict)
    counts: list[tuple[int, int, dict[str, Tokens], str]] = field(default_factory=list)
    scheduled: list[tuple[str, str]] = field(default_factory=list)
    interrupted: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        found = self.titles or self.counts or self.scheduled or self.interrupted
        return bool(self.session and found)


def counted_by(line: Fields, time: str) -> tuple[int, int, dict[str, Tokens], str]:
    """Return start, running time, tokens by model, and `time` from a `cost-state` line."""
    models = part(line, "modelUsage")
    by_model = {clean(name[:CAP_NAME]): _tokens(part(models, name)) for name in models}
    return unix_ms(line, "startTime"), count(line, "totalDuration"), by_model, time


def _tokens(used: Fields) -> Tokens:
    an_hour = count(used, "cacheCreationEphemeral1hInputTokens")
    return Tokens(
        input=count(used, "inputTokens"),
        output=count(used, "outputTokens"),
        cache_read=count(used, "cacheReadInputTokens"),
        cache_write_5m=max(count(used, "cacheCreationInputTokens") - an_hour, 0),
        cache_write_1h=an_hour,
        web_searches=count(used, "webSearchRequests"),
    )

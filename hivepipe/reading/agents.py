"""The subagents of several homes."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.errors import NothingRecordedError
from hivepipe.reading.homes import KnownHome


@dataclass(frozen=True)
class Agent:
    """One subagent, with the columns of `hivepipe agents --json`; None: not known."""

    home: str  # key
    id: str
    session_id: str | None
    swarm_id: str | None
    name: str | None
    type: str | None
    status: str
    model: str | None
    created_at: str | None
    began_at: str | None
    last_active: str | None
    completed_at: str | None
    deleted_at: str | None
    deleted_reason: str | None
    metadata: str | None
    outcome: str | None
    error: str | None
    tokens: int | None
    duration_ms: int | None

    @property
    def state(self) -> str:
        """Return the outcome, or the status of one that has none yet."""
        return self.outcome or self.status


def agents(homes: Iterable[KnownHome]) -> list[Agent]:
    """Return the agents of all homes, newest first."""
    found: list[Agent] = []
    for known in homes:
        with suppress(NothingRecordedError), listings(database_path(known.home)) as store:
            found += (Agent(home=known.key, **entry) for entry in store.agents())
    return sorted(found, key=lambda agent: agent.created_at or "", reverse=True)

"""The subagents of several homes."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from hivepipe.costs.price_table import prices_in_force
from hivepipe.errors import NothingRecordedError
from hivepipe.reading.costs import bills
from hivepipe.reading.homes import KnownHome
from hivepipe.reading.session_name import name_of
from hivepipe.times import ns_of


@dataclass(frozen=True)
class Agent:
    """One subagent, with the columns of `hivepipe agents --json`; None means unknown.

    `cost_usd` is None if no message of the agent is counted, or no model of the agent has a price.
    `parent_id` is the agent that started this agent, or None if Claude did. `depth` is the level in
    a nested list.
    """

    home: str  # key of the home
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
    parent_id: str | None = None
    cost_usd: float | None = None
    depth: int = 0

    @property
    def state(self) -> str:
        """Return the agent's outcome, or its status if it has no outcome."""
        return self.outcome or self.status

    @property
    def took_ms(self) -> int | None:
        """Return the duration in ms that Claude Code reported, else from start to end, or None."""
        if self.duration_ms is not None:
            return self.duration_ms
        began, ended = (
            ns_of(f"{at}") for at in (self.began_at or self.created_at, self.completed_at)
        )
        return (ended - began) // 10**6 if 0 < began <= ended else None


@dataclass(frozen=True)
class AgentsOfSession:
    """The agents of a session, each after its parent, oldest first; title and project may be ""."""

    home: str  # key of the home
    session_id: str
    name: str
    title: str
    project: str
    agents: tuple[Agent, ...]

    @property
    def cost_usd(self) -> float | None:
        """Return the total cost of the session's agents, or None if no agent has a known cost."""
        costs = [agent.cost_usd for agent in self.agents if agent.cost_usd is not None]
        return round(sum(costs), 6) if costs else None


def agents(
    homes: Iterable[KnownHome], limit: int, kind: str = "", state: str = ""
) -> tuple[list[AgentsOfSession], bool]:
    """Return the newest agents of all homes by session, and whether older agents exist.

    Return at most `limit` agents, filtered by `kind` and `state`. The session of the newest agent
    comes first.
    """
    homes = list(homes)
    chosen = [agent for known in homes for agent in _of_home(known, limit + 1, kind, state)]
    chosen.sort(key=_began, reverse=True)
    sessions: list[AgentsOfSession] = []
    for known in homes:
        mine = [agent for agent in chosen[:limit] if agent.home == known.key]
        if mine:
            sessions += _by_session(known, mine)
    sessions.sort(key=lambda each: max(map(_began, each.agents)), reverse=True)
    return sessions, len(chosen) > limit


def _of_home(known: KnownHome, limit: int, kind: str, state: str) -> list[Agent]:
    with suppress(NothingRecordedError), known.store() as store:
        found = store.agents(kind=kind, state=state, limit=limit)
        return [Agent(home=known.key, **entry) for entry in found]
    return []


def _by_session(known: KnownHome, found: list[Agent]) -> list[AgentsOfSession]:
    """Return a home's agents (`found`, newest first) grouped by session, with their costs."""
    of: dict[str, list[Agent]] = {}
    ids = {agent.session_id or "" for agent in found}
    with known.store() as store:
        added = bills(store, ("session", "agent"), sessions=ids).of
        about = store.titles(ids)
    prices = prices_in_force(known.home)
    costs = {key: bill.cost(prices).rounded for key, bill in added.items()}
    for agent in reversed(found):
        session = agent.session_id or ""
        cost = costs.get((session, agent.id))
        with_cost = agent if cost is None else replace(agent, cost_usd=cost)
        of.setdefault(session, []).append(with_cost)
    return [
        AgentsOfSession(
            home=known.key,
            session_id=session,
            name=name_of(session, about.get(session)),
            title=about.get(session, {}).get("objective") or "",
            project=about.get(session, {}).get("project") or known.project,
            agents=nested(each),
        )
        for session, each in of.items()
    ]


def nested(found: Sequence[Agent]) -> tuple[Agent, ...]:
    """Return agents with their depths, oldest first; each agent comes after its parent."""
    ids = {agent.id for agent in found}
    of: dict[str | None, list[Agent]] = {}
    for agent in reversed(found):
        of.setdefault(agent.parent_id if agent.parent_id in ids else None, []).append(agent)
    placed: list[Agent] = []
    left = [(agent, 0) for agent in of.pop(None, [])]
    while left:
        agent, depth = left.pop()
        placed.append(replace(agent, depth=depth) if depth else agent)
        left += [(each, depth + 1) for each in of.pop(agent.id, [])]
    # Agents whose parents form a cycle, in metadata that another program wrote, come last.
    return (*placed, *(agent for each in of.values() for agent in each))


def _began(agent: Agent) -> str:
    return agent.created_at or ""

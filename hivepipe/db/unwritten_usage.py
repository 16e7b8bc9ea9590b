"""Usage by requests that no transcript has as messages: compactions and titles.

Newer versions (2.1.330, not 2.1.197) write `cost-state` lines with the total usage of the session
since its first run. The usage of the session's messages is subtracted from this total. A fork
continues its parent's count and has the parent's start time, so the parent's count up to the fork
is subtracted too.
"""

import json
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from hivepipe.costs.prices import plain_name
from hivepipe.costs.tokens import Tokens
from hivepipe.db.database import Database
from hivepipe.db.listings import Entry, Listings

Used = dict[tuple[str, str], Tokens]  # key: the session and the plain name of the model


class Unseen(NamedTuple):
    """A session's usage of one model beyond its messages; `time` is when it was last counted."""

    time: str
    session: str
    model: str
    tokens: Tokens


class State(NamedTuple):
    """One `cost-state` count: a session, its start, its running time, its usage by model."""

    session: str
    started_ms: int
    duration_ms: int
    time: str
    models: dict[str, Tokens]


def record(db: Database, session: str, started_ms: int, duration_ms: int, model: str, time: str,
           tokens: Tokens) -> None:  # fmt: skip
    """Store one model's part of a `cost-state` count. Repeated storing changes nothing."""
    key = {"session_id": session, "started_ms": started_ms, "duration_ms": duration_ms}
    db.insert("cost_states", {**key, "model": model, "created_at": time, **tokens._asdict()})


def unseen(
    store: Listings, since: str = "", sessions: Collection[str] | None = None
) -> Iterator[Unseen]:
    """Yield the usage that is in no message, of all sessions or only of `sessions`.

    Sessions are left out if their last count is before `since`, a UTC time in the store's format.
    """
    chosen = _chosen(store, since, sessions)
    if chosen:
        yield from remaining(chosen, _states(store, chosen), _used(store, chosen))


def remaining(chosen: list[str], states: Iterable[State], used: Used) -> Iterator[Unseen]:
    """Yield the counts of the sessions `chosen` minus the usage of their messages.

    `states` are the counts of the sessions and of their forks, sorted by start and running time.
    """
    by_start: dict[int | str, list[State]] = {}
    by_session: dict[str, set[int]] = {}
    for state in states:
        by_start.setdefault(_line_of_forks(state.session, state.started_ms), []).append(state)
        by_session.setdefault(state.session, set()).add(state.started_ms)
    for own in chosen:
        totals: dict[str, Tokens] = {}
        time = ""
        for started_ms in by_session[own]:
            counted = _since_fork(own, by_start[_line_of_forks(own, started_ms)])
            time = max(time, counted.time)
            for model, tokens in counted.models.items():
                totals[model] = totals.get(model, Tokens()).plus(tokens)
        for model, tokens in sorted(totals.items()):
            rest = _less(tokens, used.get((own, plain_name(model)), Tokens()))
            if any(rest):
                yield Unseen(time, own, model, rest)


def _line_of_forks(session: str, started_ms: int) -> int | str:
    """Return a key that a session shares with its forks: its start time, or its id if unknown."""
    return started_ms or session


def _chosen(store: Listings, since: str, sessions: Collection[str] | None) -> list[str]:
    """Return the sorted ids of the sessions, all or of `sessions`, with a count since a time."""
    which = "WHERE session_id IN (SELECT value FROM json_each(:sessions))"
    sql = f"""
        SELECT session_id FROM cost_states {"" if sessions is None else which}
        GROUP BY session_id HAVING MAX(created_at) >= :since ORDER BY session_id
    """
    parameters = {"sessions": json.dumps([*(sessions or ())]), "since": since}
    return [row["session_id"] for row in store.rows(sql, parameters)]


def _states(store: Listings, sessions: list[str]) -> Iterable[State]:
    """Return the `cost-state` counts of sessions and forks, sorted by start and running time."""
    sql = """
        SELECT * FROM cost_states WHERE started_ms IN (SELECT started_ms FROM cost_states
          WHERE session_id IN (SELECT value FROM json_each(:sessions)))
        ORDER BY started_ms, duration_ms, session_id, model
    """
    found: dict[tuple[str, int, int], State] = {}
    for row in store.rows(sql, {"sessions": json.dumps(sessions)}):
        add_state(found, row)
    return found.values()


def add_state(found: dict[tuple[str, int, int], State], row: Entry) -> None:
    """Add a row of `cost_states`, one model's part of a count, to the counts found so far."""
    key = (row["session_id"], row["started_ms"], row["duration_ms"])
    state = found.setdefault(key, State(*key, row["created_at"], {}))
    state.models[row["model"]] = Tokens.of(row)


def _since_fork(session: str, states: list[State]) -> State:
    """Return a session's last count, minus the last count of its parent before the fork, if any."""
    own = [state for state in states if state.session == session]
    others = (state for state in states if state.session != session)
    before = [state for state in others if _is_before(state, own[0])]
    base = before[-1].models if before else {}
    models = {model: _less(all, base.get(model, Tokens())) for model, all in own[-1].models.items()}
    return own[-1]._replace(models=models)


def _is_before(one: State, other: State) -> bool:
    """Tell whether the count `other` can be a continuation of the count `one`."""
    return one.duration_ms < other.duration_ms and all(
        not any(_less(tokens, other.models.get(model, Tokens())))
        for model, tokens in one.models.items()
    )


def _used(store: Listings, sessions: list[str]) -> Used:
    """Return the usage of these sessions' messages, by session and plain model name."""
    sums = ", ".join(f"SUM({name}) AS {name}" for name in Tokens._fields)
    sql = f"""
        SELECT session_id, model, {sums} FROM usage_sums
        WHERE session_id IN (SELECT value FROM json_each(:sessions)) GROUP BY session_id, model
    """
    found: Used = {}
    for row in store.rows(sql, {"sessions": json.dumps(sessions)}):
        add_used(found, row)
    return found


def add_used(found: Used, row: Entry) -> None:
    """Add a row of usage sums (one session and model) to the sums found so far."""
    key = (row["session_id"], plain_name(row["model"]))
    found[key] = found.get(key, Tokens()).plus(Tokens.of(row))


def _less(one: Tokens, other: Tokens) -> Tokens:
    return Tokens(*(max(mine - theirs, 0) for mine, theirs in zip(one, other, strict=True)))

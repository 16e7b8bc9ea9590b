"""The guard's Lua scripts and the Python of `hivepipe guard replay` give the same results."""

import fakeredis
from hypothesis import given, settings
from hypothesis import strategies as st

from hivepipe.guard.client import NOTE_FIELDS, SCRIPT, VERDICT_SCRIPT, Note
from hivepipe.guard.replay import Memory
from hivepipe.queue.client import eval_command

CALLS = st.lists(
    st.tuples(
        st.sampled_from(
            ["call", "call", "result", "result", "batch", "wait", "prompt", "stop", "judge"]
        ),
        st.sampled_from(["", *[f"{n:016x}" for n in range(12)]]),
        st.sampled_from(["a" * 16, "b" * 16]),
        st.sampled_from(["c", "e", "f", "w"]),
        st.sampled_from(["0", "1"]),
        st.sampled_from(["", "task-1", "waiting"]),
    ),
    max_size=120,
)


def run(redis: fakeredis.FakeRedis, note: Note) -> str:
    """Run one of the scripts as a hook does; return its result."""
    answer = redis.execute_command(*eval_command([], *note))
    return answer.decode() if isinstance(answer, bytes) else str(answer)


@settings(max_examples=25, deadline=None)
@given(CALLS)
def test_the_scripts_and_the_replay_return_and_store_the_same(
    entries: list[tuple[str, str, str, str, str, str]],
) -> None:
    redis, memory = fakeredis.FakeRedis(), Memory()
    keys = ["hivepipe:calls:s", "hivepipe:activity:s", "s"]
    for number, (verb, id, pattern, kind, flag, task) in enumerate(entries):
        if verb == "judge":
            if keys[0] not in memory.calls:
                continue
            note = (VERDICT_SCRIPT, [*keys, id or "0" * 16, flag, task])
        else:
            is_result = verb == "result"
            id = id or ("" if is_result else f"{number + 100:016x}")
            result = pattern[::-1].replace("a", kind) if is_result else ""
            failed = flag if is_result else ""
            batch = f"{id or '0' * 16} {pattern} {pattern[::-1]} {flag}"
            rest = [verb, id, pattern, kind, result, failed, f"{number}", "1", task, ""]
            rest += [task, f"{batch} {'f' * 16} {pattern} {pattern} 1"]
            note = (SCRIPT, [*keys, *rest])
            assert len(note[1]) == len(NOTE_FIELDS)
        assert run(redis, note) == memory.run(note)
    kept = [entry.decode() for entry in redis.lrange(keys[0], 0, -1)]
    assert kept == memory.calls.get(keys[0], [])
    found = {key.decode(): value.decode() for key, value in redis.hgetall(keys[1]).items()}
    for name, value in memory.activity.get(keys[1], {}).items():
        assert found.get(name, "0") == str(value)

"""The llm worker of a running stack runs only while summaries are enabled."""

from contextlib import suppress

import psutil

from tests.sandbox import ONE_OF_EACH, Sandbox, eventually


def served_queues(sandbox: Sandbox) -> dict[str, list[str]]:
    report = sandbox.report()
    workers = report["workers"]
    assert isinstance(workers, list)
    return {each["role"]: each["queues"] for each in workers if each["alive"]}


def test_the_llm_worker_starts_and_ends_with_the_setting(sandbox: Sandbox) -> None:
    config = sandbox.configure("")
    sandbox.run("up", "-d")
    eventually(lambda: served_queues(sandbox).get("slow") == ["slow", "llm"])
    assert sandbox.counts() == ONE_OF_EACH
    assert sandbox.status()["healthy"]

    config.write_text("summaries = true\n")
    eventually(lambda: served_queues(sandbox).get("llm") == ["llm"])
    eventually(lambda: served_queues(sandbox).get("slow") == ["slow"])
    assert sandbox.counts() == ONE_OF_EACH | {"llm": 1}
    assert sandbox.status()["healthy"]
    with suppress(psutil.NoSuchProcess):
        psutil.Process(old := sandbox.pid("llm")).kill()
    eventually(lambda: [p.pid for p in sandbox.processes().get("llm", [])] not in ([], [old]))

    config.write_text("")
    eventually(lambda: sandbox.counts() == ONE_OF_EACH)
    eventually(lambda: served_queues(sandbox).get("slow") == ["slow", "llm"])
    assert sandbox.status()["healthy"]
    sandbox.run("down")
    assert not sandbox.counts()

"""Summaries end to end: a session ends, one call is made, a row is written and read back."""

import json
from collections.abc import Iterator

import pytest

from tests.conftest import Home, Server, until
from tests.llm_server import Provider, provider
from tests.summary_scene import CANARY, SECRET_IN_WORDS, SESSION, Scene, said


@pytest.fixture
def scene(private_home: Home, redis_server: Server) -> Iterator[Scene]:
    made = Scene(private_home, redis_server)
    yield made
    made.close()


@pytest.fixture
def llm() -> Iterator[Provider]:
    with provider() as server:
        yield server


def test_a_session_that_ends_is_summarised_once(scene: Scene, llm: Provider) -> None:
    scene.use(llm)
    scene.start()
    scene.end()
    row = scene.until_summary()
    until(lambda: scene.executed() == 1, "the job was not acknowledged")
    assert (row["kind"], row["model"], row["reason"]) == ("llm", "gpt-5.4-mini", "")
    assert json.loads(row["files"]) == ["src/parser.py"]
    assert row["cost_usd"] == pytest.approx(1000 * 0.75e-6 + 100 * 4.5e-6)

    ((path, headers, body),) = llm.requests
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == f"Bearer {CANARY}"
    assert body["response_format"]["json_schema"]["schema"]["required"][0] == "summary"
    sent = json.dumps(body["messages"])
    assert "the parser drops its last line" in sent
    assert SECRET_IN_WORDS not in sent

    listed = json.loads(scene.command("summaries", "list", "--json"))["summaries"]
    assert [entry["session_id"] for entry in listed] == [SESSION]
    shown = scene.command("summaries", "show", SESSION[:6])
    assert "The parser was mended" in shown
    assert "The changelog lacks a line." in shown

    # Resumed: nothing was said, nothing is asked. Then it grew.
    scene.end()
    until(lambda: scene.executed() == 2, "the second job was not executed")
    assert len(llm.requests) == 1
    more = said(55, "user", "and the changelog?") + said(56, "assistant", "is written")
    with (scene.transcripts / f"{SESSION}.jsonl").open("ab") as file:
        file.write(more)
    scene.end()
    assert scene.until_summary(number=2)["kind"] == "llm"
    assert len(llm.requests) == 2

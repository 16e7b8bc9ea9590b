"""A session ends, one call is made, and the summary is stored and read back."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hivepipe.operations.declared import PERIODIC
from tests.conftest import ROOT, Home, Server, hook_answer, until
from tests.llm_server import SUMMARY, Provider, success
from tests.payloads import SESSION_END, SESSION_START, STOP, changed
from tests.summary_scene import CANARY, SECRET_IN_WORDS, SESSION, Scene, conversation, message_line

TRANSCRIPTS = ROOT / "tests" / "transcripts"

(IDLE_ROW,) = [row for row in PERIODIC if row.operation == "summarise_idle"]


@pytest.fixture
def scene(private_home: Home, redis_server: Server) -> Iterator[Scene]:
    made = Scene(private_home, redis_server)
    yield made
    made.close()


def test_with_a_damaged_ledger_a_session_gets_a_plain_summary(scene: Scene, llm: Provider) -> None:
    scene.use(llm)
    ledger = scene.home.root / "state" / "hivepipe" / "spending.db"
    ledger.write_bytes(b"no database " * 1000)
    scene.start()
    scene.end()
    row = scene.wait_for_summary()
    assert (row["kind"], llm.requests) == ("plain", [])
    assert row["reason"].startswith(f"cannot use {ledger}: ")


def test_an_ended_session_is_summarised_once(scene: Scene, llm: Provider) -> None:
    scene.use(llm)
    scene.start()
    scene.end()
    row = scene.wait_for_summary()
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

    context = scene.home.path / "context"
    until(
        lambda: any("The parser was mended" in it.read_text() for it in context.glob("*.txt")),
        "the next session's context lacks it",
    )

    # A resumed session without new messages causes no call. Then it grows and is left for another
    # one.
    scene.end(reason="logout")
    until(lambda: scene.executed() == 2, "the second job was not executed")
    assert len(llm.requests) == 1
    more = message_line(55, "user", "and the changelog?") + message_line(
        56, "assistant", "is written"
    )
    with (scene.transcripts / f"{SESSION}.jsonl").open("ab") as file:
        file.write(more)
    scene.end(reason="resume")
    assert scene.wait_for_summary(number=2)["kind"] == "llm"
    assert len(llm.requests) == 2


def test_a_session_that_was_summarised_by_hand_is_not_paid_for_again(
    scene: Scene, llm: Provider
) -> None:
    scene.configure(openai_url=f"{llm.url}/v1")
    scene.keep("OPENAI_API_KEY")
    scene.start()
    scene.end()
    assert scene.wait_for_summary()["kind"] == "plain"
    scene.command("summaries", "enable", "--yes")
    scene.command("summaries", "run", SESSION)
    until(lambda: scene.executed() == 1, "the job was not acknowledged")
    scene.end(reason="logout")
    until(lambda: scene.executed() == 2, "the second job was not executed")
    assert len(llm.requests) == 1


def test_without_agreement_no_call_is_made(scene: Scene, llm: Provider) -> None:
    """A key alone is no agreement. Without agreement, the summary is made from archived data."""
    scene.configure(openai_url=f"{llm.url}/v1")
    scene.keep("OPENAI_API_KEY")
    scene.start()
    scene.end()
    row = scene.wait_for_summary()
    assert (row["kind"], row["model"], row["cost_usd"]) == ("plain", "", None)
    assert row["reason"].endswith("`hivepipe summaries enable`")
    assert "7 messages" in row["summary"]
    assert "Mended 2" in row["summary"]
    assert llm.requests == []
    assert "  metadata  " in scene.command("summaries", "list")
    refused = scene.command("summaries", "show", "absent", expect=1)
    assert "no session with a summary has the id absent" in refused
    assert "nothing is sent" in scene.command("what")


def test_short_sessions_and_a_switched_off_project_cause_no_call(
    scene: Scene, llm: Provider
) -> None:
    scene.use(llm)
    scene.write(lines=message_line(1, "user", "hi") + message_line(2, "assistant", "hello"))
    scene.start()
    scene.end()
    assert scene.wait_for_summary()["reason"] == "too short for a language model"
    empty = "5e551011-0000-4000-8000-00000000000e"
    scene.write(empty, message_line(1, "system", "nobody said anything", empty))
    scene.end(empty)
    off = "5e551011-0000-4000-8000-00000000000f"
    scene.end(off)
    scene.command("off")
    until(lambda: scene.executed() == 3, "not executed")
    assert [row["session_id"] for row in scene.summaries()] == [SESSION]
    assert llm.requests == []


def test_a_session_that_ends_with_megabytes_of_images_has_a_summary(scene: Scene) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "A" * (5 << 20)}
    line = json.loads(message_line(51, "user", ""))
    line["message"]["content"] = [{"type": "image", "source": source}]
    scene.write(lines=conversation() + json.dumps(line).encode() + b"\n")
    scene.start()
    scene.end()
    row = scene.wait_for_summary()
    assert row["kind"] == "plain"
    assert "Mended 2" in row["summary"]


def test_enable_shows_what_is_sent_first(scene: Scene, llm: Provider) -> None:
    assert "no credential" in scene.command("summaries", "enable", "--yes", expect=1)
    hint = scene.command("summaries", "enable", "--yes", expect=1, ANTHROPIC_API_KEY=CANARY)
    assert "`hivepipe credentials set ANTHROPIC_API_KEY --from-environment`" in hint
    refused = scene.command("credentials", "set", "OPENAI_API_KEY", data="two\nlines\n", expect=1)
    assert "one line of ASCII" in refused
    kept = scene.command(
        "credentials", "set", "ANTHROPIC_API_KEY", "--from-environment", ANTHROPIC_API_KEY=CANARY
    )
    shown = scene.command("summaries", "enable", data="n\n", expect=1)
    for words in (
        "the last 20 kB of each session's redacted transcript",
        "Anthropic (https://api.anthropic.com)",
        "ANTHROPIC_API_KEY, from ",
        "claude-haiku-5-5",
        " USD a session",
        "20 calls, 200,000 tokens, 0.50 USD, for all your projects together",
        "language models stay off",
    ):
        assert words in shown
    assert "enabled; " in scene.command("summaries", "enable", "--yes")
    assert "redacted ends of transcripts" in scene.command("what")
    listed = scene.command("credentials", "list")
    assert "disabled: nothing is sent" in scene.command("summaries", "disable")
    scene.configure(summaries=True)
    assert "still on for all projects" in scene.command("summaries", "disable", expect=1)
    scene.configure(llm_model="a-model-that-nobody-priced")
    unpriced = scene.command("summaries", "enable", "--yes", expect=1)
    assert "no price of a-model-that-nobody-priced is known" in unpriced
    scene.command("credentials", "remove", "ANTHROPIC_API_KEY")
    assert CANARY not in kept + shown + listed + hint
    assert not [p for p, data in scene.everything().items() if CANARY.encode() in data]


def test_a_summary_can_be_requested_by_a_command(scene: Scene, llm: Provider) -> None:
    """`summaries run` on another harness's text with rated memories sends what --dry-run shows."""
    ratings = [{"name": "parser", "useful": True}, {"name": "never asked", "useful": True}]
    llm.otherwise = success({**SUMMARY, "memories": ratings})
    scene.use(llm, memory_rating=True)
    text, memories = scene.home.root / "text", scene.home.root / "memories"
    text.write_text("Mend the parser.\n" * 3_000 + f"Done, the token is {SECRET_IN_WORDS}")
    known = [{"name": "parser", "text": "x"}, {"name": "parser", "text": "again"}]
    memories.write_text("".join(json.dumps(one) + "\n" for one in known))
    words = ("summaries", "run", "codex-1", "--file", str(text), "--harness", "codex")
    words += ("--memories", str(memories))
    shown: dict[str, Any] = json.loads(scene.command(*words, "--dry-run"))
    assert llm.requests == []
    assert "parser: useful" in scene.command(*words)
    ((_, _, body),) = llm.requests
    system, user = (message["content"] for message in body["messages"])
    assert (shown["instructions"].strip(), shown["text"]) == (system.strip(), user)
    schema = body["response_format"]["json_schema"]["schema"]
    assert shown["schema"]["required"] == schema["required"]
    assert CANARY not in json.dumps(shown)
    assert SECRET_IN_WORDS not in json.dumps(shown)
    assert 18_000 < len(shown["text"]) < 21_000
    (row,) = scene.summaries()
    assert (row["session_id"], row["harness"], row["kind"]) == ("codex-1", "codex", "llm")
    (rated,) = scene.home.rows("SELECT * FROM memory_ratings")
    assert (rated["memory"], rated["source"], rated["useful"]) == ("parser", "llm", 1)


def test_a_key_can_be_printed_by_a_command(scene: Scene, llm: Provider, tmp_path: Path) -> None:
    """The command runs only for a call, and the key is stored nowhere."""
    (tmp_path / "key").write_text(CANARY)
    prints = tmp_path / "prints"
    prints.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\ncat {tmp_path}/key\n")
    prints.chmod(0o700)
    scene.configure(openai_url=f"{llm.url}/v1")
    output = scene.command("credentials", "set", "OPENAI_API_KEY", "--command", f"{prints} openai")
    output += scene.command("credentials", "list") + scene.command("summaries", "enable", "--yes")
    text = scene.home.root / "text"
    text.write_text("Mend the parser.\n" * 100)
    words = ("summaries", "run", "codex-1", "--file", str(text))
    output += scene.command(*words, "--dry-run")
    assert "a command in " in output
    assert not (tmp_path / "runs").exists()
    output += scene.command(*words)
    assert (tmp_path / "runs").read_text() == "run\n"
    ((_, headers, _),) = llm.requests
    assert headers["authorization"] == f"Bearer {CANARY}"
    assert CANARY not in output
    assert not [path for path, data in scene.everything().items() if CANARY.encode() in data]
    (tmp_path / "key").write_text("")
    output = scene.command(*words)
    assert "metadata (the command for the key did not print one: not a line of ASCII)" in output
    assert len(llm.requests) == 1
    assert scene.spent()["ever"]["calls"] == 1


def test_claude_codes_own_summary_is_kept_until_a_better_one(scene: Scene, llm: Provider) -> None:
    scene.use(llm)
    scene.write(lines=(TRANSCRIPTS / "compaction" / "main.jsonl").read_bytes())
    scene.start()
    scene.begin(source="compact")
    own = scene.wait_for_summary()
    assert (own["kind"], own["provider"], own["cost_usd"]) == ("plain", "compaction", None)
    assert own["summary"] == "Redis 8 was read about."
    assert "Claude Code" in scene.command("summaries", "list")
    assert llm.requests == []
    scene.end()
    assert scene.wait_for_summary(number=2)["kind"] == "llm"
    scene.redis.delete("rq:finished:llm")
    done = scene.executed()
    compacted = conversation() + message_line(70, "user", "another", isCompactSummary=True)
    with (scene.transcripts / f"{SESSION}.jsonl").open("ab") as file:
        file.write(compacted)
    scene.begin(source="compact")
    until(lambda: scene.executed() > done, "not executed")
    assert [row["provider"] for row in scene.summaries()].count("compaction") == 1
    assert len(llm.requests) == 1


def test_ratings_rank_later_searches(scene: Scene, llm: Provider) -> None:
    """Memories shown in a session are rated with its summary and ranked from then on."""
    memories = scene.transcripts / "memory"
    memories.mkdir()
    for name in ("a.md", "b.md"):
        (memories / name).write_text("The checkout rounds to cents.")
    ratings = [{"name": "a.md", "useful": False}, {"name": "b.md", "useful": True}]
    llm.otherwise = success({**SUMMARY, "memories": ratings})
    scene.use(llm, memory_rating=True)
    scene.start()
    scene.end()
    until(lambda: scene.home.count("sessions") == 1, "no session is stored")

    def found(**env: str) -> list[str]:
        report = json.loads(scene.command("memory", "search", "rounds", "--json", **env))
        return [Path(entry["path"]).name for entry in report["memories"]]

    assert found(HIVEPIPE_SESSION_ID=SESSION) == ["a.md", "b.md"]
    assert scene.wait_for_summary()["kind"] == "llm"
    ((_, _, body),) = llm.requests
    assert "a.md: The checkout rounds" in json.dumps(body["messages"])
    rated = scene.home.rows("SELECT memory, source, useful FROM memory_ratings ORDER BY memory")
    assert [tuple(row.values()) for row in rated] == [("a.md", "llm", 0), ("b.md", "llm", 1)]
    assert found() == ["b.md", "a.md"]


def test_an_idle_open_session_is_summarised(scene: Scene, llm: Provider) -> None:
    """A session silent for half an hour is summarised once; a busy one is not."""
    scene.use(llm)
    env = scene.home.with_env(INSTANCE_ID="inst-a")
    silent, busy = SESSION, "5e551011-0000-4000-8000-00000000000b"
    for session in (silent, busy):
        where = {"session_id": session, "transcript_path": str(scene.write(session))}
        hook_answer("SessionStart", changed(SESSION_START, **where), env)
        hook_answer("Stop", changed(STOP, **where), env)
    scene.start()
    until(lambda: scene.home.count("sessions") == 2, "no session is stored")
    until(lambda: scene.make_due("slow") or scene.archived() == 2, "not archived")
    with closing(sqlite3.connect(scene.home.database, timeout=30)) as db:
        earlier = f"{datetime.now(UTC) - timedelta(hours=1):%Y-%m-%dT%H:%M:%S}.000Z"
        db.execute("UPDATE sessions SET updated_at = ? WHERE id = ?", (earlier, silent))
        db.execute("UPDATE activity SET last_active_at = ? WHERE session_id = ?", (earlier, silent))
        db.commit()
    scene.tick(IDLE_ROW, 1)
    assert scene.wait_for_summary()["session_id"] == silent
    scene.tick(IDLE_ROW, 2)
    scene.tick(IDLE_ROW, 3)
    until(lambda: not scene.redis.llen("rq:queue:llm"), "not executed")
    assert [row["session_id"] for row in scene.summaries()] == [silent]
    assert len(llm.requests) == 1


def test_on_the_direct_path_no_call_is_made(scene: Scene, llm: Provider) -> None:
    """The hook's own process does the work and may be killed at any moment, so it makes no call."""
    scene.use(llm)
    where = {"session_id": SESSION, "transcript_path": str(scene.write())}
    env = scene.home.with_env(INSTANCE_ID="inst-a", USE_QUEUE="false")
    hook_answer("SessionStart", changed(SESSION_START, **where), env)
    hook_answer("SessionEnd", changed(SESSION_END, **where), env)
    row = until(scene.summaries, "no summary")[0]
    assert (row["kind"], "use_queue is off" in row["reason"]) == ("plain", True)
    assert llm.requests == []

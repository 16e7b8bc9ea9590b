"""A value that was redacted once in a session is redacted everywhere in it."""

import json
import os
import random
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from hivepipe.archive import upkeep
from hivepipe.archive.archive_files import LEARNED, ArchiveFiles
from hivepipe.archive.archives import Archives
from hivepipe.archive.found_values import Learning
from hivepipe.jobs.origin import Origin
from hivepipe.operations.archive import callbacks_of
from hivepipe.operations.job_context import JobContext
from hivepipe.redact import found_values
from hivepipe.redact.found_values import FoundValues
from hivepipe.redact.redactor import FOUND_BEFORE, Redactor
from tests.archive_scene import REDACTOR, SESSION, Scene, line, lines
from tests.learned_secrets import Secrets, agent_lines, environment, main_lines, secrets, spellings
from tests.redaction_corpus import expand

TAG = re.compile(r"\*\*\*REDACTED:([a-z-]+):([a-z2-7]{6})\*\*\*")


def remaining_secrets(values: Secrets, folder: Path) -> list[tuple[str, str]]:
    """Return the secrets that are left below a folder, each with its file. Hidden files count."""
    return [
        (name, str(path.relative_to(folder)))
        for path in folder.rglob("*")
        if path.is_file()
        for name, secret in values._asdict().items()
        if any(each in path.read_bytes() for each in spellings(secret))
    ]


def test_clearing_lines_removes_a_search_index_also_if_it_is_damaged(tmp_path: Path) -> None:
    index = tmp_path / "search.db"
    index.write_bytes(b"no database " * 1000)
    context = JobContext(str(tmp_path), "", lambda _job, _jobs: None)
    job = Origin(id="1", operation="archive_transcript", event_time_ns=1)
    callbacks_of(context, job).on_cleared("s-1", 3)
    assert not index.exists()


@pytest.mark.parametrize("seed", range(4))
def test_a_session_keeps_none_of_its_secrets(scene: Scene, seed: int) -> None:
    values = secrets(seed)
    agent = scene.agent_path()
    for path, written in ((scene.path, main_lines(values)), (agent, agent_lines(values))):
        for count in range(1, len(written) + 1):
            path.write_bytes(b"".join(written[:count]))
            scene.extend(path)
            scene.fresh()  # a new process continues
    assert remaining_secrets(values, scene.root / "shop")  # lines before those that reveal a secret
    for path in (scene.path, agent):
        scene.extend(path, settled=True)
    assert remaining_secrets(values, scene.root / "shop") == []
    assert [problems for _, problems in upkeep.verify(scene.archives) if problems] == []
    tags = {tag for _, tag in TAG.findall(scene.archived.decode())}
    assert len(tags) == 7


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"known": [1]}', b'{"known": [], "edition": "a"}'])
def test_damaged_learned_secrets_count_as_none(scene: Scene, data: bytes) -> None:
    values = secrets("damaged")
    said = line(0, environment(values))
    scene.path.write_bytes(said)
    scene.extend()
    scene.only(f"*{LEARNED}").write_bytes(data)
    scene.fresh()
    scene.path.write_bytes(said + line(1, environment(values)))
    scene.extend(settled=True)
    assert len(scene.archived.splitlines()) == 2
    assert remaining_secrets(values, scene.root / "shop") == []


def test_secrets_are_read_once_and_new_ones_are_seen_whatever_the_time_of_a_folder_is(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder may keep its time: after the clock was set back, or if times have seconds."""
    reads, of = list[ArchiveFiles](), Learning.of
    monkeypatch.setattr(Learning, "of", lambda kept: reads.append(kept) or of(kept))

    def known(archives: Archives) -> list[str]:
        for folder in scene.kept.rglob("*/"):
            os.utime(folder, (1.7e9, 1.7e9))
        reads.clear()
        return archives.known_of(SESSION)

    paths = [scene.path, *(scene.agent_path(f"a{number}") for number in range(4))]
    for number, path in enumerate(paths):
        path.write_bytes(lines(1))
        scene.extend(path)
        assert known(scene.archives) == []
        assert len(reads) == 1, f"{number} older archives"
    other = Scene(scene.root)
    for number, path in enumerate(paths):  # a main session, then subagents
        assert known(scene.archives) == known(other.archives)
        path.write_bytes(lines(1) + line(1, environment(secrets(f"late {number}"))))
        other.extend(path)
        assert len(known(scene.archives)) == 6 * (number + 1)
        assert known(other.archives) == known(scene.archives)
        assert reads == []


@pytest.mark.parametrize("is_written", [True, False])
def test_a_secret_is_seen_after_its_writer_was_killed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    scene.path.write_bytes(lines(1))
    scene.extend()
    assert scene.archives.known_of(SESSION) == []
    other, write = Scene(scene.root), Learning.write

    def killed(learning: Learning, kept: ArchiveFiles) -> None:
        assert scene.archives.known_of(SESSION) == []  # must not be remembered
        if is_written:
            write(learning, kept)
        raise KeyboardInterrupt

    scene.path.write_bytes(lines(1) + line(1, environment(secrets("killed"))))
    with monkeypatch.context() as kill:
        kill.setattr(Learning, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            other.extend()
    assert bool(scene.archives.known_of(SESSION)) == is_written
    other.fresh()
    other.extend()
    assert len(scene.archives.known_of(SESSION)) == 6


def test_later_lines_are_redacted_at_once(scene: Scene) -> None:
    values = secrets("later")
    scene.path.write_bytes(line(0, environment(values)))
    scene.extend()
    scene.fresh()
    scene.path.write_bytes(line(0, environment(values)) + line(1, f"call with {values.shop}"))
    scene.extend()
    first, second = scene.archived.decode().splitlines()
    (tag,) = TAG.findall(second)
    assert tag == TAG.findall(first)[0]
    assert tag[0] == "api-key"


ODD = b'{"timestamp":"2026-01-10T00:00:00Z","n":1e400,"a":"\\ud83d \\/ \\u00e9","a":1}\n'


def test_a_session_without_secrets_keeps_every_byte(scene: Scene) -> None:
    scene.path.write_bytes(ODD + lines(20) + line(20, "password = get_password()"))
    scene.extend()
    scene.extend(settled=True)
    assert scene.archived == scene.path.read_bytes()
    assert list(scene.kept.rglob(".*.learned")) == []


def test_lines_that_need_no_change_keep_every_byte(scene: Scene) -> None:
    values = secrets("bytes")
    changed = (line(1, f"with {values.shop}"), line(2, environment(values)))
    written = [ODD, changed[0], ODD, changed[1], ODD, *[line(3)] * 3]
    scene.path.write_bytes(b"".join(written))
    scene.extend(settled=True)
    kept = scene.archived.splitlines(keepends=True)
    pairs = zip(written, kept, strict=True)
    assert [each for each, other in pairs if each != other] == list(changed)
    (shown,) = TAG.findall(kept[1].decode())
    assert json.loads(kept[1])["message"]["content"][0]["text"] == (
        f"with ***REDACTED:{shown[0]}:{shown[1]}***"
    )


def test_clearing_keeps_the_time_of_an_archive_and_reports_its_lines(scene: Scene) -> None:
    values = secrets("time")
    scene.path.write_bytes(line(0, values.shop) + line(1, environment(values)))
    scene.extend()
    before = scene.only("*.jsonl").stat().st_mtime_ns, scene.archived
    cleared: list[tuple[str, int]] = []
    callbacks = replace(scene.callbacks(), on_cleared=lambda *found: cleared.append(found))
    with scene.source() as source:
        scene.archives.extend(source, callbacks, settled=True)
    assert cleared == [(source.key, 1)]
    assert scene.only("*.jsonl").stat().st_mtime_ns == before[0]
    assert scene.archived != before[1]
    scene.path.write_bytes(scene.path.read_bytes() + line(2))
    assert scene.extend() == 1  # it is the same archive, not taken for an edited one
    assert len(list(scene.kept.rglob("*.jsonl"))) == 1


def test_a_value_found_in_a_subagent_is_removed_from_a_compressed_archive_too(scene: Scene) -> None:
    values = secrets("packed")
    scene.path.write_bytes(line(0, f"take {values.agents}"))
    scene.extend(settled=True)
    assert values.agents.encode() in scene.archived
    old = time.time() - 40 * 86400
    os.utime(scene.only("*.jsonl"), (old, old))
    assert upkeep.compress(scene.archives, lambda: None) == 1
    agent = scene.agent_path()
    agent.write_bytes(line(1, f"AGENT_TOKEN={values.agents}"))
    scene.extend(agent, settled=True)
    assert remaining_secrets(values, scene.root / "shop") == []
    assert [problems for _, problems in upkeep.verify(scene.archives) if problems] == []
    assert upkeep.compress(scene.archives, lambda: None) == 1


def test_an_edited_archive_is_not_cleared(scene: Scene) -> None:
    values = secrets("edited")
    scene.path.write_bytes(line(0, values.agents))
    scene.extend(settled=True)
    mine = scene.archived.replace(b"assistant", b"Assistant")
    scene.only("*.jsonl").write_bytes(mine)
    agent = scene.agent_path()
    agent.write_bytes(line(1, f"AGENT_TOKEN={values.agents}"))
    scene.extend(agent, settled=True)
    assert mine == scene.archived


def test_metadata_and_totals_are_cleared_too(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hivepipe.archive.totals.GROWTH_PER_SIZE", 0.1)
    values = secrets("title")
    title = b'{"type":"custom-title","customTitle":"use %s"}\n' % values.shop.encode()
    scene.path.write_bytes(title + lines(30) + line(30, environment(values)))
    scene.extend()
    scene.extend(settled=True)
    assert remaining_secrets(values, scene.root / "shop") == []
    assert scene.meta["message_count"] == 31


def test_lines_that_come_again_are_not_archived_twice(scene: Scene) -> None:
    values = secrets("again")
    whole = line(0, f"with {values.shop}") + line(1, environment(values)) + lines(5, 2)
    scene.path.write_bytes(whole)
    scene.extend(settled=True)
    cleared = scene.archived
    scene.path.write_bytes(line(9) + whole)  # another file of the same session
    scene.extend(settled=True)
    assert scene.archived == cleared + line(9)


def session_redactor() -> Redactor:
    return REDACTOR.of_session()


COMMON = [
    *("hunter2x", "password1", "admin1234", "correct-horse-battery", "12345678901234"),
    *("localhost5432", "get_token_v2", "_AzureApiKeyT", "Ed448PublicKey", "SECRET_KEY_BASE_2"),
    *("7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111", "toolu_01A2b3C4d5E6f7G8h9", "x" * 40),
]


def test_a_common_value_or_an_address_is_not_learned() -> None:
    for value in COMMON:
        assert not FoundValues(lambda: b"k" * 32).learn(value.encode(), "password"), value
    session = session_redactor()
    session.redact_line(b"mail a1B2c3D4@shop.io")
    assert session.known == []


def test_each_password_of_a_list_is_learned() -> None:
    session, passwords = session_redactor(), ("Kj8#mq2LpTx", "Zt5!pw9QxVn")
    session.redact_line(json.dumps({"text": f"passwords = {json.dumps(passwords)}"}).encode())
    for password in passwords:
        assert password not in session.redact_line(f"tried {password}".encode())[0].decode()


def test_no_part_of_a_value_is_stored() -> None:
    values, session = secrets("kept"), session_redactor()
    session.redact_line(json.dumps(environment(values)).encode())
    written = "\n".join(session.known)
    assert len(session.known) == 6
    for secret in values:
        pieces = {secret[at : at + 4] for at in range(len(secret) - 3)}
        assert not [
            piece for piece in pieces if re.search(rf"(?<![0-9a-f]){re.escape(piece)}", written)
        ]
    other = Redactor().of_home(lambda: b"o" * 32).of_session(session.known)
    line = json.dumps(f"with {values.shop}").encode()
    assert other.redact_line(line) == (line, ())  # the key of another home matches nothing


def test_damaged_lines_are_harmless() -> None:
    for damage in ("", "x", "00 1", f"{'0' * 32} 9999 9999 0123 password"):
        session = REDACTOR.of_session([damage])
        assert session.redact_line(b"a" * 5000) == (b"a" * 5000, ()), damage


def test_a_value_is_found_in_any_context() -> None:
    rng = random.Random(7)
    for round in range(20):
        value = expand(
            rng.choice(["<A32>", "<A12>", "<h40>", "<A6>/<A6>+<A9>=", '<A8>"<A4>\\<A7>']), rng
        )
        session = session_redactor()
        session._found_values.learn(value.encode(), "password")  # type: ignore[union-attr]
        if not session.known:
            continue
        for around in (
            "{}",
            "x{}y",
            "--t={};",
            "'{}'",
            "\x1b[1m{}\x1b[0m",
            "/{}/",
            "{}{}",
            "\n{}\n",
        ):
            text = around.replace("{}", value)
            for spelled in (
                json.dumps(text),
                json.dumps([json.dumps({"a": text})]),
                json.dumps({"k": {"x": text}}),
            ):
                clean, rules = session.redact_line(spelled.encode())
                assert set(rules) == {FOUND_BEFORE}, (round, value, spelled)
                json.loads(clean)


def test_a_long_list_leaves_room_for_other_secrets() -> None:
    rng, session = random.Random(4), session_redactor()
    keys = [expand("<A20>", rng) for _ in range(2 * found_values.MOST)]
    words = ["word-of-words"] * found_values.MOST  # are not remembered
    session.redact_line(json.dumps({"text": f"api_keys = {json.dumps(words + keys)}"}).encode())
    session.redact_line(json.dumps({"password": (other := expand("<A20>", rng))}).encode())
    assert b"***REDACTED:api-key:" in session.redact_line(keys[0].encode())[0]
    assert b"***REDACTED:password:" in session.redact_line(other.encode())[0]


def test_values_that_differ_only_at_their_ends_are_searched_within_a_second() -> None:
    rng, learned = random.Random(5), FoundValues(lambda: b"key")
    values = [expand("aB3dE5gH7jK9mN1p!<A14>", rng).encode() for _ in range(found_values.MOST)]
    assert all(learned.learn(value, "password") for value in values)
    text = b"aB3dE5gH7jK9mN1p" * 12_500 + values[-1]
    found = list(learned.find(text, time.thread_time() + 1))
    assert found == [(200_000, len(text), found_values.MOST - 1)]


def test_a_session_learns_a_limited_number_of_values_and_none_without_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(found_values, "MOST", 20)
    rng, session = random.Random(3), session_redactor()
    for _ in range(25):
        session.redact_line(json.dumps({"password": expand("<A20>", rng)}).encode())
    assert len(session.known) == 20
    values, session = secrets("none"), Redactor().of_session()
    session.redact_line(environment(values).encode())
    assert session.redact_line(values.shop.encode()) == (values.shop.encode(), ())

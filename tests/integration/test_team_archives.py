"""Archived transcripts reach a team's store once, can be read there, and are deleted on demand."""

import gzip
import hashlib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from errno import ENOSPC
from pathlib import Path
from typing import Any

import obstore.store
import psycopg
import pytest

from hivepipe.archive.archives import Archives
from hivepipe.archive.catalog import Catalog
from hivepipe.archive.found_values import Learning
from hivepipe.archive.locks import locked
from hivepipe.cli.team.deleted_lines import show_deleted
from hivepipe.db.location import database_path
from hivepipe.errors import TeamAwayError, TeamError, TeamRefusedError
from hivepipe.files.manifest import Manifest
from hivepipe.home import kept_folder
from hivepipe.summaries.providers import TEAM_ARCHIVE_KEY, TEAM_STORE, write_credential
from hivepipe.team import deletion, final_send, membership, schema_steps
from hivepipe.team.archives import cipher, cutting, export, leftovers, place
from hivepipe.team.archives.reading import archives_of_session, placed_lines
from hivepipe.team.archives.sending import Pass, Sent
from hivepipe.team.archives.stores import Bucket
from hivepipe.team.connection import connected, one
from tests.archive_scene import AGENT, SESSION, Scene, lines
from tests.object_store import KEY, ObjectStore
from tests.team_scene import TABLES, HomeOfTeam, Team

OTHER = "5e55104a-0000-4000-8000-00000000beef"


def archived_lines(connection: "psycopg.Connection[Any]", home: int, agent: str = "") -> bytes:
    """Return the archived lines of the session or of one of its subagents."""
    return b"".join(
        line
        for archive in archives_of_session(connection, home, SESSION)
        if archive.agent_id == agent
        for _, line in placed_lines(connection, archive)
    )


def with_store(team: Team, store: str) -> Team:
    """Share everything, with this store of archives."""
    team.query("SELECT hivepipe.set_policy('*', 'everything')")
    team.query("SELECT hivepipe.set_archive_store(%s)", store)
    write_credential(TEAM_STORE, KEY)
    return team


@pytest.fixture(params=["s3", "database"])
def shared(request: Any, team: Team, bucket: ObjectStore) -> Team:
    return with_store(team, bucket.place if request.param == "s3" else place.DATABASE)


@pytest.fixture
def in_s3(team: Team, bucket: ObjectStore) -> Team:
    return with_store(team, bucket.place)


@pytest.fixture
def in_database(team: Team) -> Team:
    return with_store(team, place.DATABASE)


class Member:
    """A machine with a session and its archive."""

    def __init__(self, root: Path, team: Team, name: str = "ann") -> None:
        self.team = team
        self.joined = team.joined(name)
        self.scene = Scene(root / name)
        self.kept = Path(kept_folder(str(self.scene.home)))
        self.scene.kept = self.kept
        self.scene.archives = Archives(str(self.kept), Manifest(str(self.scene.home)))
        path = Path(database_path(str(self.scene.home)))
        self.home = HomeOfTeam(path, self.joined.writes)
        self.home.work(SESSION, 1, "/p/shop")
        self.home.ship()

    def grow(self, count: int, start: int = 0) -> None:
        with self.scene.path.open("ab") as transcript:
            transcript.write(lines(count, start))
        self.extend()

    def extend(self, path: Path | None = None, **fields: Any) -> None:
        self.scene.extend(path, claude_folder=str(self.scene.root / ".claude"), **fields)

    def send(self, share: str = "everything") -> Sent:
        with connected(self.joined.writes) as connection:
            return Pass(connection, str(self.scene.home), {"*": share}).run()

    def read(self, agent: str = "") -> bytes:
        with connected(self.joined.reads) as connection:
            return archived_lines(connection, self.number, agent)

    @property
    def number(self) -> int:
        return int(
            self.team.rows(f"SELECT id FROM hivepipe.homes WHERE uuid = '{self.home.id()}'")[0][0]
        )

    @property
    def archived(self) -> bytes:
        return self.scene.archived


def sender(root: Path, team: Team, count: int = 20) -> Member:
    """Return a machine that has sent an archive of some lines."""
    made = Member(root, team)
    made.grow(count)
    made.send()
    return made


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments of 2 kB, so that an archive has many."""
    for module in ("cutting", "sending"):
        monkeypatch.setattr(f"hivepipe.team.archives.{module}.SEGMENT_BYTES", 2048)


def test_a_damaged_archive_holds_up_no_others(in_database: Team, tmp_path: Path) -> None:
    ann = Member(tmp_path, in_database)
    ann.grow(20)
    agent = ann.scene.agent_path()
    agent.write_bytes(lines(20))
    ann.extend(agent, session=SESSION)
    path = ann.scene.only(f"*_{SESSION}.jsonl")
    path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes())[:-20])
    path.unlink()
    for _ in range(2):
        with pytest.raises(TeamError, match=rf"1 archive cannot be sent, such as .*{SESSION}"):
            ann.send()
        assert ann.read(AGENT) == ann.scene.only(f"*_{AGENT}.jsonl").read_bytes()


def test_archives_of_sessions_without_a_row_are_counted(in_database: Team, tmp_path: Path) -> None:
    ann = Member(tmp_path, in_database)
    ann.grow(20)
    other = ann.scene.path.with_name(f"{OTHER}.jsonl")
    other.write_bytes(lines(20))
    ann.extend(other)
    assert ann.send().left_out == 1
    assert in_database.rows("SELECT session_id FROM hivepipe.archives") == [[SESSION]]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("shared", "is_encrypted"), [("s3", False), ("database", True)], indirect=["shared"]
)
@pytest.mark.usefixtures("small_segments")
def test_an_export_has_only_the_archives_of_its_member(
    shared: Team, tmp_path: Path, is_encrypted: bool
) -> None:
    if is_encrypted:
        write_credential(TEAM_ARCHIVE_KEY, cipher.new_key())
    ann, bob = Member(tmp_path, shared), Member(tmp_path, shared, "bob")
    for each in (ann, bob):
        each.grow(40)
        each.send()
    folder = tmp_path / "out"
    with connected(shared.admin) as connection:
        rows = [*deletion.exported(connection, "ann", folder)]
        (listed,) = [row for row in rows if row["table"] == "archives"]
        assert len(listed["segments"]) > 1
        (path,) = folder.iterdir()
        assert str(path) == listed["file"]
        assert path.read_bytes() == ann.archived
        assert path.stat().st_mode & 0o777 == 0o600
        # an existing file is not overwritten
        with pytest.raises(TeamError, match="cannot be written"):
            [*deletion.exported(connection, "ann", folder)]
        if is_encrypted:
            write_credential(TEAM_ARCHIVE_KEY, None)
            with pytest.raises(TeamError, match="encrypted with the key"):
                [*deletion.exported(connection, "ann", tmp_path / "other")]
            assert not [*(tmp_path / "other").iterdir()]
    assert {row[0] for row in shared.rows("SELECT owner FROM hivepipe.audit")} == {"1"}


@pytest.mark.parametrize("is_encrypted", [False, True])
@pytest.mark.usefixtures("small_segments")
def test_archives_are_read_back_unchanged(
    shared: Team, tmp_path: Path, bucket: ObjectStore, is_encrypted: bool
) -> None:
    if is_encrypted:
        write_credential(TEAM_ARCHIVE_KEY, cipher.new_key())
    ann = Member(tmp_path, shared)
    ann.grow(100)
    path = ann.scene.agent_path()
    path.write_bytes(lines(20, 500))
    ann.extend(path, session=SESSION)
    sent = ann.send()
    assert sent.segments > 10
    assert digest(ann.read()) == digest(ann.archived)
    assert ann.read(AGENT).count(b"\n") == 20
    assert ann.send() == Sent()  # nothing is sent twice
    stored = [*bucket.objects().values()] or [
        bytes.fromhex(row[0])
        for row in shared.rows("SELECT encode(content, 'hex') FROM hivepipe.archive_contents")
    ]
    assert len(stored) == sent.segments
    assert sum(map(len, stored)) == sent.bytes
    assert bucket.are_named_by_hash()
    for content in stored:
        if is_encrypted:
            with pytest.raises(gzip.BadGzipFile):
                gzip.decompress(content)
        else:
            assert b"answer" in gzip.decompress(content)


@pytest.mark.usefixtures("small_segments")
def test_only_new_parts_of_an_archive_are_sent(in_s3: Team, tmp_path: Path) -> None:
    ann = Member(tmp_path, in_s3)
    ann.grow(100)
    first = ann.send()
    ann.grow(1, 100)
    assert ann.send().segments == 1  # a longer last segment, or a new one
    ann.grow(40, 101)
    assert 0 < ann.send().segments < first.segments
    assert ann.read() == ann.archived
    assert in_s3.count("archive_leftovers", "due_at > now()") == 0


@pytest.mark.usefixtures("small_segments")
def test_a_replaced_last_segment_is_deleted(
    in_s3: Team, tmp_path: Path, bucket: ObjectStore
) -> None:
    ann = Member(tmp_path, in_s3)
    for number in range(12):
        ann.grow(1, number)
        ann.send()
    assert 0 < len(bucket.objects()) == in_s3.count("archive_segments") < 5
    assert in_s3.count("archive_leftovers") == 0
    assert ann.read() == ann.archived


class _KilledError(Exception):
    """Raised instead of a kill."""


def _killed_put(where: str) -> Callable[[Bucket, str, bytes], None]:
    """Return a `put` that fails at its second object, before or after writing it."""
    whole, calls = Bucket.put, []

    def put(self: Bucket, name: str, content: bytes) -> None:
        calls.append(name)
        if len(calls) == 2 and where == "before":
            raise _KilledError
        whole(self, name, content)
        if len(calls) == 2:
            raise _KilledError

    return put


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.usefixtures("small_segments")
def test_a_kill_between_object_and_row_loses_and_repeats_nothing(
    in_s3: Team, tmp_path: Path, bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    ann = Member(tmp_path, in_s3)
    ann.grow(60)
    for start in range(60, 80, 3):
        with monkeypatch.context() as patch:
            patch.setattr(Bucket, "put", _killed_put(where))
            with pytest.raises(_KilledError):
                ann.send()
        ann.grow(3, start)  # objects that were written and not listed are not written again
    ann.send()
    assert ann.read() == ann.archived
    listed = in_s3.count("archive_segments")
    waiting = in_s3.count("archive_leftovers")
    assert len(bucket.objects()) <= listed + waiting
    in_s3.server.psql(
        "UPDATE hivepipe.archive_leftovers SET due_at = now()", in_s3.database
    )  # as if an hour had passed
    ann.send()
    assert len(bucket.objects()) == listed
    assert ann.read() == ann.archived


def test_a_truncated_object_is_written_again(
    in_s3: Team, tmp_path: Path, bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = Member(tmp_path, in_s3)
    ann.grow(30)

    def cut(self: Bucket, name: str, content: bytes) -> None:
        self._store.put(name, content[: len(content) // 2])
        raise TeamAwayError("the wire was cut")

    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "put", cut)
        with pytest.raises(TeamAwayError):
            ann.send()
    assert not bucket.are_named_by_hash()
    ann.send()
    assert bucket.are_named_by_hash()
    assert ann.read() == ann.archived


def test_an_unreachable_or_refusing_store_is_reported(
    in_s3: Team, tmp_path: Path, bucket: ObjectStore
) -> None:
    ann = Member(tmp_path, in_s3)
    ann.grow(3)
    write_credential(TEAM_STORE, None)
    with pytest.raises(TeamRefusedError, match="hivepipe credentials set HIVEPIPE_TEAM_STORE"):
        ann.send()
    assert in_s3.count("archive_leftovers") == 0
    write_credential(TEAM_STORE, KEY)
    in_s3.query(
        "SELECT hivepipe.set_archive_store(%s)", bucket.place.replace("team-archives", "nix")
    )
    with pytest.raises(TeamError):
        ann.send()
    in_s3.query("SELECT hivepipe.set_archive_store(%s)", "s3://none?endpoint=http://127.0.0.1:9")
    with pytest.raises(TeamAwayError, match=r": Connection refused$"):
        ann.send()


def test_a_stricter_policy_removes_archives(
    shared: Team, tmp_path: Path, bucket: ObjectStore
) -> None:
    ann = sender(tmp_path, shared)
    places = shared.query("SELECT hivepipe.set_policy('shop', 'prompts')")
    assert [name for name in places if "archive segments" in name]
    assert shared.count("archive_segments") == shared.count("archive_contents") == 0
    ann.send()
    assert not bucket.objects()
    assert ann.read() == b""
    shared.query("SELECT hivepipe.set_policy('shop', 'everything')")
    ann.send()
    assert ann.read() == ann.archived
    assert ann.send("prompts").dropped == 1  # the user's own policy
    assert not bucket.objects()
    assert shared.count("archive_segments") == shared.count("archive_contents") == 0


def test_the_server_refuses_what_the_policy_does_not_share(shared: Team, tmp_path: Path) -> None:
    ann = Member(tmp_path, shared)
    ann.grow(30)
    with connected(ann.joined.writes) as connection:
        late = Pass(connection, str(ann.scene.home), {"*": "everything"})
        shared.query("SELECT hivepipe.set_policy('*', 'metadata')")
        with pytest.raises(TeamAwayError, match="policies"):
            late.run()
    assert shared.count("archive_segments") == 0


@pytest.mark.parametrize("by", ["administrator", "machine"])
def test_a_forgotten_session_is_deleted_from_list_and_store(
    shared: Team, tmp_path: Path, bucket: ObjectStore, by: str
) -> None:
    ann = sender(tmp_path, shared)
    ann.home.work(OTHER, 1, "/p/shop")
    ann.home.ship()
    path = ann.scene.path.with_name(f"{OTHER}.jsonl")
    path.write_bytes(lines(20, 100))
    ann.extend(path, session=OTHER)
    ann.send()
    add_rows_to_all_tables(shared, SESSION)
    before = tables_with(SESSION, shared, tmp_path / "before")
    assert {"archives", *TABLES} <= {name.removesuffix("_other") for name in before}
    kept = tables_with(OTHER, shared, tmp_path / "kept")
    assert {"archives", "archive_segments", "sessions", "prompts_2026_11"} <= kept
    if by == "administrator":
        proof = shared.query("SELECT hivepipe.forget_session(%s)", SESSION)
        assert [name for name in proof["places"] if "archive segments" in name]
    else:
        ann.home.sql(
            f"INSERT INTO forgotten_sessions (id, forgotten_at) VALUES ('{SESSION}', '2026')"
        )
        ann.home.ship()
    is_in_s3 = shared.query("SELECT hivepipe.archive_store()") != place.DATABASE
    assert shared.count("archive_segments") == 1
    assert shared.count("archive_contents") == (0 if is_in_s3 else 1)
    ann.send()  # the archive is still on the machine
    assert len(bucket.objects()) == (1 if is_in_s3 else 0)
    assert shared.count("archives") == 1
    assert shared.count("archive_leftovers") == 0
    if is_in_s3:
        causes = [row[0] for row in shared.rows("SELECT cause FROM hivepipe.deletions")]
        assert "objects of a forgotten session" in causes
    assert tables_with(SESSION, shared, tmp_path / "backup") == {"forgotten", "deletions"}
    assert tables_with(OTHER, shared, tmp_path / "kept") == kept


def add_rows_to_all_tables(team: Team, session: str) -> None:
    """Store a row of a session in each shared table, as if its home had sent it."""
    sql = "SELECT tbl, session_column, by_month FROM hivepipe.shared_tables"
    for table, column, by_month in team.rows(sql):
        month = ", '2026-01-01'::date AS month" if by_month == "t" else ""
        row = f"SELECT id AS home, 'k' AS key, 1 AS version, '{session}' AS {column}{month}"
        names = f"home, key, version, {column}{', month' if month else ''}"
        team.rows(f"INSERT INTO hivepipe.{table} ({names}) {row} FROM hivepipe.homes")


def tables_with(text: str, team: Team, backup: Path) -> set[str]:
    """Return the tables whose rows contain a text in a backup of the team's database."""
    team.server.dump(team.database, backup, plain=True)
    _, *parts = re.split(r"^COPY hivepipe\.(\w+) ", backup.read_text(errors="replace"), flags=re.M)
    named = zip(parts[::2], parts[1::2], strict=True)
    return {name for name, rows in named if text in rows.partition("\n\\.\n")[0]}


def test_no_segment_of_a_forgotten_member_is_added_late(shared: Team, tmp_path: Path) -> None:
    ann = Member(tmp_path, shared)
    ann.grow(5)
    with (
        connected(ann.joined.writes) as machine,
        connected(shared.admin) as admin,
        ThreadPoolExecutor() as threads,
    ):
        late = Pass(machine, str(ann.scene.home), {"*": "everything"})
        with admin.transaction():
            admin.execute("SELECT hivepipe.forget_member('ann')")
            sending = threads.submit(late.run)
            with pytest.raises(TimeoutError):
                sending.result(1)
        with pytest.raises(TeamError):
            sending.result(20)
    for table in ("archives", "archive_segments", "archive_contents"):
        assert shared.count(table) == 0


def test_a_segment_that_outlived_its_member_is_deleted(older_team: Team) -> None:
    older_team.rows(
        "INSERT INTO hivepipe.archives (home, member, name, session_id, project) "
        "VALUES (1, 1, 'a', 's', 'p')"
    )
    older_team.rows("INSERT INTO hivepipe.archive_contents VALUES (1, repeat('0', 64), 'bytes')")
    older_team.rows(
        "INSERT INTO hivepipe.archive_segments "
        "VALUES (1, 0, 0, 9, 0, repeat('0', 64), 5, '', '', 1, 1, 's')"
    )
    with connected(older_team.admin) as connection:
        schema_steps.apply(connection)
    assert older_team.count("archive_contents") == 0


def test_a_deletion_is_proved_even_if_the_store_is_away(
    in_s3: Team, tmp_path: Path, bucket: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise TeamAwayError

    sender(tmp_path, in_s3)
    with connected(in_s3.admin) as connection:
        with monkeypatch.context() as away:
            away.setattr(Bucket, "delete", fails)
            proof = deletion.forget(connection, deletion.find(connection, "ann"))
        assert proof["places"]["archive segments, listed"] == 1
        assert proof["places"][leftovers.WAITING] == 1
        assert leftovers.delete_now(connection) == {leftovers.DELETED: 1}
    assert not bucket.objects()


def test_objects_that_wait_are_not_reported_as_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    show_deleted({"table sessions": 2, leftovers.WAITING: 3})
    said = capsys.readouterr()
    assert said.out == "deleted: table sessions: 2\n"
    assert said.err == f"3 {leftovers.WAITING}\n"


def test_an_export_that_ends_early_leaves_no_file(tmp_path: Path) -> None:
    def parts(error: BaseException) -> Iterator[bytes]:
        yield b"a line\n"
        raise error

    path = tmp_path / "new/1.jsonl"
    for error in (OSError(ENOSPC, "full"), TeamError("damaged"), KeyboardInterrupt()):
        with pytest.raises((TeamError, KeyboardInterrupt)):
            export._write(path, parts(error))
        assert not path.exists()
    path.write_text("of somebody")
    with pytest.raises(TeamError, match="exists"):
        export._write(path, parts(OSError()))
    assert path.read_text() == "of somebody"


@pytest.mark.usefixtures("small_segments")
def test_secrets_found_later_are_removed_from_the_team(
    in_s3: Team, tmp_path: Path, bucket: ObjectStore
) -> None:
    ann = sender(tmp_path, in_s3, 60)
    before = {*bucket.objects()}
    catalog = Catalog(str(ann.kept), Manifest(str(ann.scene.home)))
    (entry,) = catalog.index.entries().values()
    with catalog.opened(entry) as kept, kept.open_to_read() as file:
        changed = [line.replace(b"answer 7", b"[gone]") for line in file]
        with locked(catalog.root, SESSION):
            learning = Learning.of(kept)
            Learning(learning.known, 1, learning.edition + 1).write(kept)
            kept.replace_lines(changed, kept.offsets())  # type: ignore[arg-type]
    assert ann.send().dropped == 1
    assert ann.read() == ann.archived == b"".join(changed)
    stored = bucket.objects()
    assert not any(b'"answer 7"' in gzip.decompress(each) for each in stored.values())
    assert len({*stored} & before) > 0  # equal segments have equal names
    assert len(stored) == in_s3.count("archive_segments")


def test_an_older_backup_of_a_machine_replaces_nothing(in_database: Team, tmp_path: Path) -> None:
    ann = Member(tmp_path, in_database)
    ann.grow(10)
    older = {path: path.read_bytes() for path in ann.kept.rglob("*") if path.is_file()}
    ann.grow(10, 10)
    ann.send()
    newest = ann.archived
    for path, content in older.items():
        path.write_bytes(content)
    assert ann.send() == Sent()
    assert ann.read() == newest


def test_a_key_is_needed_to_read_and_another_one_is_refused(in_s3: Team, tmp_path: Path) -> None:
    key = cipher.new_key()
    write_credential(TEAM_ARCHIVE_KEY, key)
    ann = sender(tmp_path, in_s3)
    for other in (None, cipher.new_key()):
        write_credential(TEAM_ARCHIVE_KEY, other)
        with pytest.raises(TeamError, match="archive-key --set"):
            ann.read()
    write_credential(TEAM_ARCHIVE_KEY, key)
    assert ann.read() == ann.archived
    write_credential(TEAM_ARCHIVE_KEY, None)
    assert ann.send().dropped == 1  # without encryption the names differ, so all is sent again
    assert ann.read() == ann.archived


def test_a_changed_object_is_noticed(in_s3: Team, tmp_path: Path, bucket: ObjectStore) -> None:
    ann = sender(tmp_path, in_s3)
    ((name, content),) = bucket.objects().items()
    bucket.write(name, content + b"x")
    with pytest.raises(TeamError, match="was changed in the store"):
        ann.read()


def test_another_member_reads_only_with_the_right_and_is_audited(
    in_database: Team, tmp_path: Path
) -> None:
    ann = sender(tmp_path, in_database)
    boss, member = in_database.joined("boss", sees="all"), in_database.joined("eve")
    with connected(boss.reads) as connection:
        assert archived_lines(connection, ann.number) == ann.archived
    assert in_database.count("audit", "what = 'archive'") == 1
    with connected(member.reads) as connection:
        with pytest.raises(TeamRefusedError, match="may not read"):
            archives_of_session(connection, ann.number, SESSION)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not read"):
            one(connection, "SELECT hivepipe.segment_content(%s, %s, %s)", *stored(in_database))
    assert in_database.count("audit") == 1


def stored(team: Team) -> tuple[int, str, str]:
    """Return home, session and hash of a segment."""
    rows = team.rows("SELECT home, session_id, hash FROM hivepipe.archive_segments")
    return int(rows[0][0]), rows[0][1], rows[0][2]


def test_nothing_is_read_without_a_committed_audit_entry(shared: Team, tmp_path: Path) -> None:
    sender(tmp_path, shared)
    home, session, digest = stored(shared)
    boss = shared.joined("boss", sees="all")
    queries = (
        ("SELECT hivepipe.session_segments(%s, %s)", (home, session)),
        ("SELECT hivepipe.segment_content(%s, %s, %s)", (home, session, digest)),
    )
    with connected(boss.reads) as connection:
        for sql, values in queries:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not read"):
                connection.execute(sql, values)
            with connection.transaction(force_rollback=True):
                one(connection, "SELECT hivepipe.note_read(%s, %s, 'x')", home, session)
                with (
                    pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not read"),
                    connection.transaction(),
                ):
                    connection.execute(sql, values)
        with pytest.raises(TeamRefusedError), connection.transaction():
            archives_of_session(connection, home, session)
        assert shared.count("audit") == 0
        one(connection, "SELECT hivepipe.note_read(%s, %s, 'x')", home, session)
        assert one(connection, queries[0][0], *queries[0][1])["hash"] == digest
        in_database = shared.count("archive_contents") > 0
        content = one(connection, queries[1][0], *queries[1][1])
        assert (content is not None) == in_database
        # A note on one session gives access to no segment of another.
        one(connection, "SELECT hivepipe.note_read(%s, 'other', 'x')", home)
        assert one(connection, queries[1][0], home, "other", digest) is None
    assert shared.count("audit") == 2


def test_an_expired_audit_entry_gives_no_access(in_database: Team, tmp_path: Path) -> None:
    ann = sender(tmp_path, in_database)
    boss = in_database.joined("boss", sees="all")
    with connected(boss.reads) as connection:
        (archive,) = archives_of_session(connection, ann.number, SESSION)
        age = "UPDATE hivepipe.audit SET at = at - interval '11 minutes'"
        in_database.rows(age)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="may not read"):
            connection.execute("SELECT hivepipe.session_segments(%s, %s)", (ann.number, SESSION))
        assert b"".join(line for _, line in placed_lines(connection, archive)) == ann.archived


def test_a_machine_cannot_access_another_home(in_database: Team, tmp_path: Path) -> None:
    ann = sender(tmp_path, in_database)
    eve = in_database.joined("eve")
    for sql in (
        "SELECT hivepipe.listed_archives(%s)",
        "SELECT hivepipe.drop_archives(%s, NULL)",
        "SELECT hivepipe.announce_object(%s, 's', 'ann/1/x')",
    ):
        with pytest.raises(TeamError), connected(eve.writes) as connection:
            one(connection, sql, ann.home.id())
    for table in ("archives", "archive_segments", "archive_contents", "archive_leftovers"):
        for login in (eve.writes, eve.reads):
            with pytest.raises(TeamRefusedError), connected(login) as connection:
                connection.execute(f"SELECT * FROM hivepipe.{table}")
    assert ann.read() == ann.archived


def test_an_invalid_or_unsafe_store_is_refused() -> None:
    for text in (
        "s3://",
        "s3://bucket?endpoint=http://elsewhere.example",
        "s3://key:secret@bucket",  # pragma: allowlist secret
        "s3://bucket?secret=x",
        "file:///tmp",
    ):
        with pytest.raises(TeamError):
            place.parse(text)


def test_segment_boundaries_depend_only_on_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(lines(9000))
    with path.open("rb") as file:
        made = [*cutting.segments(file, cutting.Point(), path.stat().st_size, None, "")]
        again = [*cutting.segments(file, made[0].after, path.stat().st_size, None, "")]
    assert made[1:] == again
    assert all(gzip.decompress(each.content).endswith(b"\n") for each in made)
    assert obstore.store.S3Store  # the extra is installed


INVALID = (
    (b"", 3),
    (b"no gzip", 3),
    (gzip.compress(b"a\nb\n")[:-4], 4),
    (gzip.compress(b"a\nb\n") + b"more", 4),
    (gzip.compress(b"\n" * 10_000_000), 4),  # a bomb
    (gzip.compress(b"a\nb\n"), 5),
)


def test_an_invalid_segment_is_reported() -> None:
    for content, length in INVALID:
        with pytest.raises(TeamError, match="the segment at byte 7 is damaged"):
            cutting.opened(content, None, "", 7, 7 + length)


def test_the_final_send_of_a_machine_includes_archives(
    in_database: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = Member(tmp_path, in_database)
    ann.grow(10)
    monkeypatch.setattr(membership, "of_environment", lambda: ann.joined.writes.url)
    assert final_send.send(str(ann.scene.home), 30).segments == 1
    assert ann.read() == ann.archived

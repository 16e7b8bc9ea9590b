"""Memories are indexed on change, found by words and by meaning, and forgotten on request."""

import json
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner

from hivepipe.agents.memory.index import AGENT, SWARM, Folder, MemoryIndex
from hivepipe.cli.main import main
from hivepipe.home import short_hash
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.memory import index_folders
from tests import payloads
from tests.conftest import Home, Process, Server, Writer, hook_answer, until
from tests.hook_contract import checked
from tests.loopback import QuietHandler, served
from tests.payloads import SESSION, changed

KEY = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 6
TOPICS = ("tea", "deploy", "checkout")


class Scene:
    """A project whose session keeps memories beside its transcript."""

    def __init__(self, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.monkeypatch = monkeypatch
        self.claude = home.root / ".claude" / "projects" / "-shop"
        self.folder = self.claude / "memory"
        self.folder.mkdir(parents=True)
        self.config = home.root / ".config" / "hivepipe" / "config.toml"

    def configure(self, text: str = "") -> None:
        """Write the user's settings, which name the folder of memories, and make the home."""
        self.home.path.mkdir(exist_ok=True)
        self.config.parent.mkdir(parents=True)
        self.config.write_text(f'memory_dirs = ["{self.folder}"]\n{text}')

    @property
    def context(self) -> JobContext:
        return JobContext(str(self.home.path), "", lambda _job, _jobs: None)

    def fire(self, event: dict[str, Any]) -> None:
        changed_event = changed(event, transcript_path=str(self.claude / f"{SESSION}.jsonl"))
        hook_answer(event["hook_event_name"], changed_event, self.home.env)

    def write(self, name: str, text: str) -> Path:
        """Write a memory as Claude does."""
        path = self.folder / name
        path.write_text(text)
        call = {"file_path": str(path), "content": text}
        self.fire(changed(payloads.POST_WRITE, tool_input=call, tool_use_id=f"toolu_{name}"))
        return path

    def run(self, *arguments: str, code: int = 0, **variables: str) -> str:
        self.home.use_environment(self.monkeypatch)
        for name, value in variables.items():
            self.monkeypatch.setitem(__import__("posix").environ, name.encode(), value.encode())
        self.monkeypatch.chdir(self.home.project)
        result = CliRunner().invoke(main, list(arguments))
        assert result.exit_code == code, result.output
        return result.stdout + result.stderr

    def found(self, *words: str, **variables: str) -> list[str]:
        output = self.run("memory", "search", "--json", *words, **variables)
        return [Path(entry["path"]).name for entry in json.loads(output)["memories"]]

    def index(self, sql: str) -> list[tuple[Any, ...]]:
        path = self.home.path / "memory.db"
        if not path.exists():
            return []
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(sql).fetchall()
        except sqlite3.OperationalError:  # the index is being created
            return []
        finally:
            connection.close()


@pytest.fixture
def scene(private_home: Home, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(private_home, monkeypatch)


def test_a_memory_that_claude_writes_is_indexed_and_found(
    scene: Scene, redis_server: Server, writer: Writer, slow_worker: Process
) -> None:
    writer.start()
    slow_worker.start()
    scene.fire(payloads.SESSION_START)
    scene.write("tea.md", f"# Tea\n\nThe user likes green tea. Key {KEY}\n\n# Other\n\nNothing.")
    until(lambda: scene.index("SELECT * FROM chunks"), "not indexed")
    assert not scene.index(f"SELECT * FROM chunks WHERE text LIKE '%{KEY[:30]}%'")
    for name in ("memory.db", "memory.db-wal"):
        path = scene.home.path / name
        assert not path.exists() or KEY.encode() not in path.read_bytes()
    # An edit of a file outside the folder is not indexed.
    other = {"file_path": str(scene.home.project / "memory" / "x.md"), "content": ""}
    scene.fire(changed(payloads.POST_WRITE, tool_input=other, tool_use_id="toolu_other"))
    assert writer.end() == 0
    assert slow_worker.end() == 0
    assert scene.found("green") == ["tea.md"]
    assert scene.found("coffee") == []
    assert (scene.home.path / "memory.db").stat().st_mode & 0o777 == 0o600
    # Memories shown in a session are stored, for the rating of its summary.
    assert scene.found("tea", HIVEPIPE_SESSION_ID=SESSION) == ["tea.md"]
    (shown,) = scene.home.rows("SELECT session_id, memory FROM retrievals")
    assert shown == {"session_id": SESSION, "memory": "tea.md"}


def test_the_index_follows_the_files(scene: Scene) -> None:
    scene.configure()
    (scene.folder / "a.md").write_text("Green tea.")
    (scene.folder / "deep").mkdir()
    (scene.folder / "deep" / "b.txt").write_text("Green deploys.")
    (scene.folder / "c.py").write_text("green = 1")
    (scene.folder / "link.md").symlink_to("/etc/passwd")
    assert sorted(scene.found("green")) == ["a.md", "b.txt"]
    before = scene.index("SELECT id FROM chunks ORDER BY id")
    (scene.folder / "a.md").touch()
    assert scene.found("tea") == ["a.md"]
    # the text is the same, so it is not indexed again
    assert scene.index("SELECT id FROM chunks ORDER BY id") == before
    (scene.folder / "a.md").write_text("Black coffee.")
    (scene.folder / "deep" / "b.txt").unlink()
    assert scene.found("green") == []
    assert scene.found("coffee") == ["a.md"]
    assert "is removed from the index" in scene.run("memory", "forget", str(scene.folder / "a.md"))
    assert scene.found("coffee") == []
    assert (scene.folder / "a.md").exists()
    (scene.folder / "a.md").write_text("Black coffee, no sugar.")
    assert scene.found("coffee") == ["a.md"]
    listed = json.loads(scene.run("memory", "list", "--json"))["files"]
    assert [(Path(entry["path"]).name, entry["forgotten"]) for entry in listed] == [("a.md", 0)]
    scene.run("memory", "forget", "/nowhere", code=1)


def test_files_that_sqlite_cannot_store_leave_the_others(scene: Scene) -> None:
    """A name that is not UTF-8, and a time after the year 2262."""
    scene.configure()
    Path(f"{scene.folder}/a-\udcff.md").write_text("Green tea.")
    for name, year_ns in (("late.md", 2**34 * 10**9), ("old.md", 0)):
        (scene.folder / name).write_text("Green tea.")
        os.utime(scene.folder / name, ns=(year_ns, year_ns))
    assert sorted(scene.found("green")) == ["late.md", "old.md"]
    before = scene.index("SELECT id FROM chunks ORDER BY id")
    assert len(scene.found("green")) == 2
    assert scene.index("SELECT id FROM chunks ORDER BY id") == before


def test_a_damaged_index_is_named_by_every_command(scene: Scene) -> None:
    scene.configure()
    (scene.folder / "a.md").write_text("Green tea. " * 3000)
    assert scene.found("tea") == ["a.md"]
    path = scene.home.path / "memory.db"
    data = bytearray(path.read_bytes())
    for page in range(3 * 4096, len(data), 4096):  # the tables, not the schema
        data[page : page + 2000] = b"\xff" * 2000
    path.write_bytes(data)
    MemoryIndex(path).close()
    for words in (("list",), ("search", "tea"), ("forget", str(scene.folder / "a.md"))):
        said = scene.run("memory", *words, code=1)
        assert f"cannot use {path}: " in said
        assert "delete it to rebuild it" in said


@pytest.mark.parametrize("damaged_from", [0, 3 * 4096])
def test_a_damaged_index_holds_up_no_job(
    scene: Scene, caplog: pytest.LogCaptureFixture, damaged_from: int
) -> None:
    scene.home.path.mkdir()
    (scene.folder / "a.md").write_text("Green tea. " * 3000)
    folder = Folder(str(scene.folder), SWARM, "")
    index_folders(scene.context, [folder])
    path = scene.home.path / "memory.db"
    data = bytearray(path.read_bytes())
    data[damaged_from:] = b"\xff" * len(data[damaged_from:])
    path.write_bytes(data)
    index_folders(scene.context, [folder])
    assert f"memories are not indexed: cannot use {path}: " in caplog.text
    assert "delete it to rebuild it" in caplog.text


@pytest.mark.parametrize(
    ("sql", "is_retried"),
    [("BEGIN IMMEDIATE", True), ("SELECT 1", False), ("DROP TABLE folders", False)],
)
def test_a_job_is_retried_while_the_index_is_locked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, sql: str, is_retried: bool
) -> None:
    scene.home.path.mkdir()
    path = scene.home.path / "memory.db"
    MemoryIndex(path).close()
    monkeypatch.setattr("hivepipe.agents.memory.index.BUSY_TIMEOUT_SECS", 0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(sql)
        expected = pytest.raises(sqlite3.OperationalError, match="locked")
        with expected if is_retried else nullcontext():
            index_folders(scene.context, [Folder(str(scene.folder), SWARM, "")])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_an_index_that_may_not_be_written_holds_up_no_job() -> None:
    with TemporaryDirectory() as home:
        path = Path(home, "memory.db")
        MemoryIndex(path).close()
        path.chmod(0o400)
        for each in (path.parent, *path.parent.iterdir()):
            os.chown(each, 65534, 65534)
        pid = os.fork()
        if not pid:
            status = 1
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                with suppress(PermissionError):
                    path.open("r+b")
                    os._exit(2)
                context = JobContext(home, "", lambda _job, _jobs: None)
                index_folders(context, [Folder(home, SWARM, "")])
                status = 0
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_job_is_retried_after_too_many_open_files(scene: Scene) -> None:
    scene.home.path.mkdir()
    MemoryIndex(scene.home.path / "memory.db").close()
    index_folders(scene.context)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, before[1]))  # none left for the -wal
    try:
        with pytest.raises(sqlite3.OperationalError, match="unable to open"):
            index_folders(scene.context)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    index_folders(scene.context)


def test_an_index_that_cannot_be_opened_holds_up_no_job_unless_its_folder_is_missing(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.home.path.write_text("")  # no folder: the job is retried
    with pytest.raises(FileExistsError):
        index_folders(scene.context)
    scene.home.path.unlink()
    path = scene.home.path / "memory.db"
    path.mkdir(parents=True)
    index_folders(scene.context)
    assert f"memories are not indexed: cannot use {path}: no plain file" in caplog.text


class Endpoint(QuietHandler):
    """An embeddings endpoint with three topics."""

    texts: list[str]
    works: bool

    def do_POST(self) -> None:
        asked = json.loads(self.content())
        assert self.path == "/v1/embeddings"
        type(self).texts += asked["input"]
        data = [
            {"index": n, "embedding": [1.0 if topic in text.lower() else 0.1 for topic in TOPICS]}
            for n, text in enumerate(asked["input"])
        ]
        self.send(200 if type(self).works else 503, json.dumps({"data": data[::-1]}).encode())


@pytest.fixture
def endpoint() -> Iterator[str]:
    Endpoint.texts, Endpoint.works = [], True
    with served(Endpoint) as address:
        yield f"{address}/v1"


def test_with_an_endpoint_memories_are_found_by_meaning(scene: Scene, endpoint: str) -> None:
    scene.configure(f'embeddings_url = "{endpoint}"\nembeddings_model = "m"\n')
    (scene.folder / "drinks.md").write_text(f"Tea, always green. Key {KEY}")
    (scene.folder / "ops.md").write_text("How we deploy on Tuesdays.")
    # No word of the query is in the file.
    assert scene.found("TEA-ish", "things")[0] == "drinks.md"
    assert len(Endpoint.texts) == 3  # two files and one query
    assert not any(KEY in text for text in Endpoint.texts)
    assert scene.found("deploying?")[0] == "ops.md"
    assert len(Endpoint.texts) == 4  # the files are not sent again
    (scene.folder / "ops.md").write_text("How we deploy on Mondays.")
    assert scene.found("deploy")[0] == "ops.md"
    assert len(Endpoint.texts) == 6
    Endpoint.works = False
    assert scene.found("mondays") == ["ops.md"]  # found by words


def test_without_a_key_that_can_be_trusted_memories_are_found_by_words(
    scene: Scene, endpoint: str
) -> None:
    scene.configure(f'embeddings_url = "{endpoint}"\nembeddings_model = "m"\n')
    credentials = scene.config.with_name("credentials.env")
    credentials.write_text(f"HIVEPIPE_EMBEDDINGS_KEY={KEY}\n")
    credentials.chmod(0o644)
    (scene.folder / "drinks.md").write_text("Tea, always green.")
    (scene.folder / "ops.md").write_text("How we deploy on Tuesdays.")
    assert scene.found("green") == ["drinks.md"]
    assert Endpoint.texts == []
    credentials.chmod(0o600)
    assert scene.found("green")[0] == "drinks.md"
    assert len(Endpoint.texts) == 3


def test_a_repository_cannot_set_the_endpoint(scene: Scene, endpoint: str) -> None:
    scene.home.path.mkdir()
    (scene.home.path / "config.toml").write_text(f'embeddings_url = "{endpoint}"\n')
    assert "belongs in" in scene.run("config", code=1)


def test_memories_are_added_to_a_prompt_if_enabled(
    scene: Scene, redis_server: Server, writer: Writer, slow_worker: Process
) -> None:
    writer.start()
    slow_worker.start()
    (scene.folder / "cart.md").write_text(f"The checkout asks the tax service. Key {KEY}")
    prompt = changed(payloads.USER_PROMPT_SUBMIT, prompt="Why is the tax service slow at checkout?")

    def context_of(event: dict[str, Any], *, wanted: bool = False) -> str:
        scene.home.set(**({"memory_recall": True} if wanted else {}))
        changed_event = changed(event, transcript_path=str(scene.claude / f"{SESSION}.jsonl"))
        name = event["hook_event_name"]
        found = checked(name, hook_answer(name, changed_event, scene.home.env))
        return str(found.get("additionalContext", ""))

    context_of(payloads.SESSION_START)
    assert context_of(prompt) == ""
    context_of(payloads.SESSION_START, wanted=True)  # this indexes the folder
    ready = scene.home.path / "recall"
    until(lambda: list(ready.glob("swarm-*.txt")), "no text is prepared")
    assert KEY not in "".join(path.read_text() for path in ready.iterdir())
    assert context_of(prompt) == ""  # recall is still off
    text = context_of(prompt, wanted=True)
    assert str(scene.folder / "cart.md") in text
    assert "The checkout asks the tax service." in text
    assert "cart.md" not in context_of(prompt, wanted=True)
    until(lambda: scene.home.rows("SELECT * FROM retrievals"), "not stored")
    (shown,) = scene.home.rows("SELECT session_id, memory, text FROM retrievals")
    assert (shown["session_id"], shown["memory"]) == (SESSION, "cart.md")
    assert "The checkout asks the tax service." in shown["text"]
    context_of(changed(payloads.SESSION_START, source="compact"), wanted=True)
    assert "cart.md" in context_of(prompt, wanted=True)
    assert writer.end() == 0
    assert slow_worker.end() == 0
    # `context` shows the same beforehand, and `forget` applies at once.
    asked = ("context", "--prompt", "tax service")
    assert "The checkout asks the tax service." in scene.run(*asked)
    scene.run("memory", "forget", str(scene.folder / "cart.md"))
    assert scene.run(*asked).strip() == "nothing"
    assert "tax service" not in "".join(path.read_text() for path in ready.iterdir())


def test_forgetting_a_text_reaches_the_index_and_the_texts_for_prompts(scene: Scene) -> None:
    scene.configure("memory_recall = true\n")
    (scene.folder / "a.md").write_text("Mister Wagtail asks for the invoice.")
    (scene.folder / "b.md").write_text("The invoice is printed twice.")
    (scene.home.path / "spool").mkdir()
    scene.run("drain")
    assert sorted(scene.found("invoice")) == ["a.md", "b.md"]
    held = lambda: [  # noqa: E731
        path.name for path in scene.home.path.rglob("*") if path.is_file() and says(path)
    ]
    says = lambda path: b"agtail" in path.read_bytes().lower()  # noqa: E731
    assert {"all.txt"} < set(held())
    output = scene.run("forget", "--matching", "Wagtail", "--yes")
    assert "memories" in output
    assert held() == []
    assert scene.found("invoice") == ["b.md"]
    assert (scene.folder / "a.md").exists()  # it is the user's own file
    assert json.loads(scene.run("disk", "--json"))["stores"]["memory"] > 0


def test_a_search_is_limited_to_the_swarm_and_the_profile(scene: Scene) -> None:
    folders = {name: scene.home.root / name for name in ("bank", "ada", "bob", "users")}
    for folder in (scene.folder, *folders.values()):
        folder.mkdir(exist_ok=True)
        (folder / f"{folder.name}.md").write_text("Green tea.")
    scene.config.parent.mkdir(parents=True)
    scene.config.write_text(f'memory_dirs = ["{folders["users"]}"]\n')
    swarm = f"swarm-{short_hash(str(scene.home.project))}"
    with closing(MemoryIndex(scene.home.path / "memory.db")) as index:
        index.remember_folder(Folder(str(scene.folder), SWARM, swarm))
        index.remember_folder(Folder(str(folders["bank"]), SWARM, "swarm-bank"))
        for name in ("ada", "bob"):
            index.remember_folder(Folder(str(folders[name]), AGENT, name))
    assert sorted(scene.found("tea")) == ["ada.md", "bob.md", "memory.md", "users.md"]
    assert sorted(scene.found("tea", HIVEPIPE_AGENT_ID="ada")) == [
        "ada.md",
        "memory.md",
        "users.md",
    ]
    every = ["ada.md", "bank.md", "bob.md", "memory.md", "users.md"]
    assert sorted(scene.found("tea", "--all")) == every
    assert sorted(scene.found("tea", "--all", "--scope", "agent")) == ["ada.md", "bob.md"]
    of_bank = {"HIVEPIPE_SWARM_ID": "swarm-bank"}
    assert sorted(scene.found("tea", **of_bank)) == ["ada.md", "bank.md", "bob.md", "users.md"]
    assert len(scene.found("tea", "--limit", "1", **of_bank)) == 1

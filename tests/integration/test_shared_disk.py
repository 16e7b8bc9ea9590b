"""The shared disk: a profile may write only into its own folder, also by links."""

import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hivepipe import settings
from hivepipe.events.claude_code import PostToolUseFailure, PreToolUse
from hivepipe.guard import shared_disk, shared_root
from hivepipe.guard.check import silence_path
from hivepipe.guard.rules import Verdict
from hivepipe.guard.shared_disk import READ_ONLY, SharedDisk
from tests import payloads
from tests.conftest import Home, Server, Writer, hook_answer, until
from tests.hook_contract import checked
from tests.payloads import changed

Fire = Callable[..., dict[str, Any]]


@pytest.fixture
def root(private_home: Home) -> Path:
    """A shared root with folders of two profiles, and links between them."""
    root = private_home.root / "shared"
    for folder in ("thoughts/ana", "thoughts/bob", "misc/bob"):
        (root / folder).mkdir(parents=True)
    (root / "thoughts/ana/to-bob").symlink_to("../bob")
    (root / "thoughts/bob/to-ana").symlink_to(root / "thoughts/ana")
    (private_home.project / "link").symlink_to(root / "thoughts/bob")
    (private_home.root / "alias").symlink_to(root)
    (private_home.root / "to-above").symlink_to(private_home.root)
    return root


@pytest.fixture
def fire_as_ana(private_home: Home, root: Path) -> Fire:
    """Return a function that fires an event as the profile `ana` and returns the hook's output."""

    def run(payload: dict[str, Any], **env: str) -> dict[str, Any]:
        profile = {"SHARED_ROOT": str(root), "AGENT_ID": "ana", **env}
        event = payload["hook_event_name"]
        given = {name: value for name, value in profile.items() if value}
        return checked(event, hook_answer(event, payload, private_home.with_env(**given)))

    return run


def write_to(path: str | Path, **fields: Any) -> dict[str, Any]:
    tool_input = {"file_path": str(path), "content": "x"}
    return changed(payloads.PRE_WRITE, tool_input=tool_input, **fields)


def shell(command: str, cwd: Path) -> dict[str, Any]:
    return changed(payloads.PRE_BASH, tool_input={"command": command}, cwd=str(cwd))


FOREIGN = [
    "{root}/thoughts/bob/a.md", "{root}/thoughts/bob", "{root}/thoughts", "{root}/a.md",
    "{root}/misc/ana2/a.md", "{root}/thoughts/ana/../bob/a.md",
    "{root}/thoughts/ana/to-bob/a.md", "{root}/thoughts/ana/to-bob/new/../a.md",
    "{project}/link/a.md", "{root}/../alias/thoughts/bob/a.md",
    "{project}/../shared/thoughts/bob/a.md",
]  # fmt: skip
OWN = [
    "{root}/thoughts/ana/a.md",
    "{root}/thoughts/ana/new/deep/a.md",
    "{root}/new-category/ana/a.md",
    "{root}/thoughts/bob/../ana/a.md",
    "{root}/thoughts/bob/to-ana/a.md",
    "{root}/../alias/misc/ana/a.md",
    "{project}/a.md",
    "{root}2/thoughts/bob/a.md",
]


def disk(root: Path) -> SharedDisk:
    return SharedDisk(str(root), "ana", is_silent=False)


def judged(root: Path, payload: dict[str, Any]) -> Verdict | None:
    """Judge a call of the profile `ana`, as its hook does."""
    return disk(root).verdict(PreToolUse("PreToolUse", payload, b"", []))


def test_a_write_elsewhere_is_denied_with_the_own_path(
    private_home: Home, root: Path, fire_as_ana: Fire
) -> None:
    for path in (each.format(root=root, project=private_home.project) for each in FOREIGN):
        for event in (write_to(path), shell(f"cat > '{path}'", private_home.project)):
            verdict = judged(root, event)
            assert verdict, path
            assert verdict.deny
            assert "/ana/" in verdict.subject
    output = fire_as_ana(event)
    assert output["permissionDecision"] == "deny"
    assert "rule shared-disk" in output["permissionDecisionReason"]
    assert verdict.subject in output["permissionDecisionReason"]


def test_writes_to_the_own_folder_and_off_the_disk_are_allowed(
    private_home: Home, root: Path, fire_as_ana: Fire
) -> None:
    for path in (each.format(root=root, project=private_home.project) for each in OWN):
        for event in (write_to(path), shell(f"cat > '{path}'", private_home.project)):
            assert judged(root, event) is None, path
    assert fire_as_ana(event) == {}


ABOVE = [
    *("rm -rf {above}", "rm -fr {above}/", "rm --recursive {above}/*", "rm -r /", "sudo rm -rf /*"),
    *(
        "rm -rf ..", "cd {above} && rm -rf *", "cd {root}; rm -rf *", "rm -rf {root}*",
        "rm -r ../*/",
    ),
    *("sh -c 'rm -rf {above}'", "mv {above} /x", "mv -t /x {above}", "mv {above}/* /x"),
    *("chmod -R 777 {above}", "chown -R ana: ../..", "rm -rf '{above}'", "rm -r a {above}/./b/.."),
    *("rm -rf {{*.o,{above}}}", "rm -rf '{above}'{{,*.o}}"),
    *("rm -rf {above}/sh*", "rm -rf {above}/[s]h?red", "rm -rf {root}/*", "cd {above}; rm -r s*d"),
    *("find {above} -exec rm -rf {{}} +", "find {above} -mindepth 1 -delete", "find .. -delete"),
    *("find {above} -type f -exec rm {{}} \\;", "find {above} -exec sudo -g x rm -rf {{}} +"),
    *("rsync -a --delete a/ {above}", "rsync -a --del . ..", "rsync -a --delete b/shared {above}"),
    *("rm -rf {above}/to-above/", "chmod -R u+w ../to-above", "cd ~; rm -rf ../../*"),
    *("cd $X; rm -rf {above}", "cd $X; cd {above}; rm -rf *", "cd {above}/x; cd -; rm -rf ../*"),
    *("find {above} -mtime +9 -delete", "find .. -type f -ls -delete"),
    *("find .. -mindepth 1 -maxdepth 1 -type d -exec rm -rf {{}} +", "rm -rf {above}/[^a]*"),
    *("rsync --remove-source-files -a {above}/ /x", "trap 'rm -rf {above}' EXIT"),
]  # fmt: skip
BESIDE = [
    *("ls {above}", "mkdir {above}/x", "rm {above}/file", "rm -rf {above}/other", "rmdir {above}"),
    *("rm -rf {above}/other/*", "rm -rf '{above}/*'", "rm -rf {above}/*.log", "rm -f {above}/*"),
    *(
        "mv a {above}", "mv -t {above} a", "mv a b {above}/", "chmod 755 {above}",
        "chmod -r {above}",
    ),
    *("cp -r a {above}", "rm -rf $X/*", "rm -rf {root}2", "rm -rf {root}/thoughts/ana/old"),
    *("(cd / && ls); rm -rf ./other", "rm -rf '~'", "rm -rf {above}/to-above", "mv to-above x"),
    *(
        "rm -rf {above}/x*", "rm -rf {above}/*/ana", "rm -r */*.log", "rm -rf {above}/.*",
        "rm {above}/alias",
    ),
    *("find . -name x -delete", "find . -name x -exec rm -rf {{}} +", "find . -maxdepth 1 -delete"),
    *("rsync -a a/ {above}", "rsync -a --delete a {above}", "rsync --delete -a a/ x:{above}"),
    *("rsync -a --delete --exclude shared b/ .", "cd /; cd - && rm -rf {above}/other"),
    *("find {above} -name x -exec chmod -R a+r {{}} +", "find . -maxdepth 1 -type f -delete"),
    *("echo 'rm -rf {above}'", 'cd "$X" && rm -rf *', "(cd $(mktemp -d); chmod -R u+w .)"),
]  # fmt: skip


def test_a_deletion_of_a_folder_above_the_root_is_denied(root: Path) -> None:
    for command in ABOVE:
        verdict = judged(root, shell(command.format(root=root, above=root.parent), root))
        assert verdict, command
        assert verdict.deny
        assert verdict.subject.endswith(f"{root}/<category>/ana/")
    for command in BESIDE:
        event = shell(command.format(root=root, above=root.parent), root.parent)
        assert judged(root, event) is None, command


def test_a_pattern_that_matches_only_folders_of_others_is_denied(
    private_home: Home, root: Path
) -> None:
    for pattern in (
        "{root}/thoughts/*",
        "{root}/thoughts/bob/*",
        "{root}/*/bob",
        "{root}/thoughts/b?b/*.md",
        "link/*",
    ):
        verdict = judged(root, shell(f"rm -f {pattern.format(root=root)}", private_home.project))
        assert verdict, pattern
        assert verdict.deny, pattern
    for pattern in ("{root}/thoughts/ana/*", "{root}/*/ana", "{root}/thoughts/a*/b", "a/*"):
        verdict = judged(root, shell(f"rm -f {pattern.format(root=root)}", private_home.project))
        assert not (verdict and verdict.deny), pattern


def test_a_command_that_replaces_a_link_writes_beside_it(private_home: Home, root: Path) -> None:
    (root / "thoughts/bob/a.md").touch()
    (private_home.project / "file").symlink_to(root / "thoughts/bob/a.md")
    for command in (
        *("mv b file", "ln -sf b file", "ln -sfn b link", "cp --remove-destination b file"),
        *("install b file", "sed -i p file", "mv -T b link", "cd link/..; touch a"),
    ):
        assert judged(root, shell(command, private_home.project)) is None, command
    for command in ("mv b link", "ln -s b link", "cp b file", "mv -n b link", "touch link/../a"):
        verdict = judged(root, shell(command, private_home.project))
        assert verdict, command
        assert verdict.deny, command


def test_links_that_a_command_makes_are_followed(private_home: Home, root: Path) -> None:
    (private_home.project / "folder").mkdir()
    for command in (
        *("ln -s {root}/thoughts/bob l && rm l/a", "ln -s {root}/thoughts/bob l; cd l; touch a"),
        *("ln -sfn {root} l; touch l/thoughts/bob/a", "ln -s ../shared l; rm -r l/thoughts"),
        *("ln -s {root}/thoughts/bob folder; touch folder/bob/a", "ln -s / l; rm -rf l/*"),
        *("cd -P link; cd ..; touch a", "cd -P link/..; touch a", "cd -P link; rm $PWD/../a"),
    ):
        verdict = judged(root, shell(command.format(root=root), private_home.project))
        assert verdict, command
        assert verdict.deny, command
    for command in (
        *("ln -s {root}/thoughts/bob l; cat l/a; rm l", "ln -s {root}/thoughts/ana l; touch l/a"),
        *("cd link; cd ..; touch a", "cd -P folder; cd ..; touch a", "cd -P .; cd x; cd ..; rm a"),
    ):
        assert judged(root, shell(command.format(root=root), private_home.project)) is None, command


def test_a_command_with_many_folders_resolves_each_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    monkeypatch.setattr(shared_disk, "_link_target", lambda path: looks.append(path) or "")
    assert judged(root, shell("cd a; rm x; " * 400, root.parent)) is None
    assert len(looks) < 3 * 400


def test_the_reason_names_the_place_in_the_own_folder(private_home: Home, root: Path) -> None:
    for command, advice in {
        "cp a.md {root}/thoughts/bob/": "thoughts/ana/",
        "cp a.md {root}/thoughts/bob": "thoughts/ana/",
        "cp a.md {root}/thoughts/carl/": "thoughts/ana/",
        "mv a.md b.md {root}/thoughts/bob/.": "thoughts/ana/",
        "cp a.md {root}/thoughts/": "thoughts/ana/",
        "cp a.md {root}/thoughts": "thoughts/ana/",
        "cp a.md {root}/thoughts/bob/new/b.md": "thoughts/ana/new/b.md",
        "touch {root}/thoughts/plan.md": "thoughts/ana/plan.md",
        "echo x > {root}/thoughts/bob/plan.md": "thoughts/ana/plan.md",
        "echo x > {root}/plan.md": "<category>/ana/",
    }.items():
        verdict = judged(root, shell(command.format(root=root), private_home.project))
        assert verdict, command
        assert verdict.subject.endswith(f"your own folder only: {root}/{advice}"), command


def test_relative_paths_are_resolved_from_the_events_cwd(root: Path, fire_as_ana: Fire) -> None:
    inside = str(root / "thoughts")
    assert "permissionDecision" in fire_as_ana(write_to("bob/a.md", cwd=inside))
    assert fire_as_ana(write_to("ana/a.md", cwd=inside)) == {}
    assert "permissionDecision" in fire_as_ana(shell("touch bob/a.md", root / "thoughts"))
    assert "permissionDecision" in fire_as_ana(
        shell("cd ../bob && touch a.md", root / "thoughts/ana")
    )
    assert fire_as_ana(shell("cd ana && touch a.md", root / "thoughts")) == {}


def test_reading_is_allowed(private_home: Home, root: Path, fire_as_ana: Fire) -> None:
    read = changed(
        payloads.PRE_BASH, tool_name="Read", tool_input={"file_path": f"{root}/thoughts/bob/a.md"}
    )
    assert fire_as_ana(read) == {}
    for command in (f"cat {root}/thoughts/bob/a.md", f"cp {root}/misc/bob/a {root}/misc/ana/a"):
        assert fire_as_ana(shell(command, private_home.project)) == {}


def test_an_unreadable_command_is_named(private_home: Home, root: Path, fire_as_ana: Fire) -> None:
    output = fire_as_ana(shell(f"python make.py {root}/thoughts/bob", private_home.project))
    assert "permissionDecision" not in output
    assert f"{root}/<category>/ana/" in output["additionalContext"]
    assert fire_as_ana(shell("python make.py", private_home.project)) == {}


@pytest.mark.parametrize("env", [{"AGENT_ID": ""}, {"SHARED_ROOT": ""}, {"GUARD": "off"}])
def test_without_profile_root_or_guard_there_is_no_rule(
    root: Path, fire_as_ana: Fire, env: dict[str, str]
) -> None:
    assert fire_as_ana(write_to(root / "thoughts/bob/a.md"), **env) == {}


def test_the_settings_file_sets_the_root_too(
    private_home: Home, root: Path, fire_as_ana: Fire
) -> None:
    private_home.path.mkdir()
    text = f'{{"v": 1, "values": {{"HIVEPIPE_SHARED_ROOT": "{root}"}}}}'
    (private_home.path / "hook-settings.json").write_text(text)
    assert "permissionDecision" in fire_as_ana(write_to(root / "misc/bob/a"), SHARED_ROOT="")


@pytest.mark.parametrize("named", ["misc/ana/a.md", "misc/bob/a.md"])
def test_the_own_folder_is_created_when_it_is_first_needed(
    root: Path, fire_as_ana: Fire, named: str
) -> None:
    assert not (root / "misc/ana").exists()
    output = fire_as_ana(shell(f"cat > {root}/{named}", root))
    assert ("permissionDecision" in output) == ("bob" in named)
    assert (root / "misc/ana").is_dir()
    fire_as_ana(
        shell(f"cat > {root}/new/ana/a.md", root)
    )  # a category without folders of other profiles
    fire_as_ana(shell(f"cat {root}/thoughts/bob/a.md", root))
    assert sorted(path.name for path in root.iterdir()) == ["misc", "thoughts"]


def test_circular_links_are_handled(private_home: Home, root: Path, fire_as_ana: Fire) -> None:
    (private_home.project / "round").symlink_to("round")
    assert fire_as_ana(write_to(private_home.project / "round" / "a.md")) == {}
    (root / "misc/round").symlink_to("round")
    assert "permissionDecision" in fire_as_ana(write_to(root / "misc/round/a.md"))


def failed(tool: str, error: str) -> dict[str, Any]:
    return changed(payloads.FAILED_BASH, tool_name=tool, error=error)


@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed")
def test_the_error_of_node_on_a_read_only_file_system_is_recognised() -> None:
    code = "console.log(require('util').getSystemErrorMap().get(-30).join(': '))"
    output = subprocess.run(["node", "-e", code], capture_output=True, text=True, check=True).stdout
    assert any(term in output.lower() for term in READ_ONLY)
    assert output.startswith("EROFS: read-only file system")


# Messages of node 20.20 and coreutils 9.1 on a file system that is mounted read-only.
FAILURES = [
    failed("Write", "EROFS: read-only file system, open '/s/thoughts/bob/a.md'"),
    failed("NotebookEdit", "EROFS: nur lesbar, open '/s/a'"),
    failed("Write", "The file cannot be written: read-only\n  file system"),
    failed("Bash", "Exit code 1\ntouch: cannot touch '/s/y': Read-only file system"),
]
STDERR = "cp: cannot create regular file '/s/hostname': Read-only file system"
WROTE_STDERR = changed(payloads.POST_BASH, tool_response={"stdout": "", "stderr": STDERR})


def test_a_read_only_failure_gets_the_hint(root: Path, fire_as_ana: Fire) -> None:
    for payload in FAILURES:
        event = PostToolUseFailure("PostToolUseFailure", payload, b"", [])
        assert f"{root}/<category>/ana/" in disk(root).hint(event), payload
    for payload in (FAILURES[0], WROTE_STDERR):
        assert f"{root}/<category>/ana/" in fire_as_ana(payload)["additionalContext"]
        assert fire_as_ana(payload, AGENT_ID="") == {}


def test_other_failures_get_no_hint(fire_as_ana: Fire) -> None:
    assert fire_as_ana(payloads.FAILED_BASH) == {}
    assert fire_as_ana(payloads.POST_BASH) == {}


# ---- a disk that hangs
def test_a_disk_that_does_not_answer_is_not_accessed(
    private_home: Home, root: Path, fire_as_ana: Fire
) -> None:
    private_home.path.mkdir()
    Path(silence_path(str(private_home.path))).write_text("silent\n")
    assert "permissionDecision" in fire_as_ana(write_to(root / "thoughts/ana/../bob/a.md"))
    assert fire_as_ana(write_to(root / "thoughts/ana/to-bob/a.md")) == {}


def test_a_hanging_disk_is_detected_at_the_start(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    private_home.path.mkdir()
    monkeypatch.setattr(settings, "_from_files", {"HIVEPIPE_SHARED_ROOT": "/hung"})
    monkeypatch.setattr(shared_root, "ANSWER_SECS", 0.5)
    silence = Path(silence_path(str(private_home.path)))
    with monkeypatch.context() as hung:
        hung.setattr(shared_root, "_LOOK", "import posix, time; time.sleep(600)")
        shared_root.check_shared_root(str(private_home.path))
    assert "/hung" in silence.read_text()
    shared_root.check_shared_root(str(private_home.path))
    assert not silence.exists()


def test_a_writer_checks_the_disk_when_it_starts(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    silence = Path(silence_path(str(private_home.path)))
    silence.write_text("of an earlier day\n")
    writer.start()
    until(lambda: not silence.exists(), "the disk was not checked")
    assert writer.end(signal.SIGTERM) == 0

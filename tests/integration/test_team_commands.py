"""The commands of a team as used by an administrator, a member and a CI job."""

import json
import os
import posix
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CLI, COMMANDS, PATIENCE_SECS, Home, fire, until
from tests.payloads import EVENTS, changed
from tests.team_scene import ADMIN, SECRET, Team

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(private_home: Home, team: Team, tmp_path: Path) -> Run:
    """Run a command in the home; the fixture `team` set the folder of settings."""
    (tmp_path / "pgpass").write_text(f"*:*:*:{ADMIN}:{SECRET}\n")
    (tmp_path / "pgpass").chmod(0o600)

    def call(*words: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        env = {**private_home.env, "XDG_CONFIG_HOME": str(tmp_path / "config")}
        env |= {"PGPASSFILE": str(tmp_path / "pgpass"), **more}
        done = COMMANDS.run(words, "", env, tmp_path, PATIENCE_SECS)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return call


def fire_sample(home: Home, event: str, **fields: object) -> None:
    fire(event, changed(EVENTS[event], **fields), home.env)


def log_of_team(home: Home) -> str:
    path = Path(home.path, "uplink.json")
    return path.read_text() if path.exists() else ""


def alerts(run: Run) -> set[str]:
    report = json.loads(run("status", "--json", code=1).stdout)
    return {each["name"] for each in report["alerts"]}


def address_of(team: Team) -> str:
    return team.server.url(team.database, ADMIN)


def invited(run: Run, *words: str) -> str:
    return str(json.loads(run("team", "invite", *words, "--json").stdout)["secret"])


def test_a_team_from_init_to_leave(
    run: Run, team: Team, private_home: Home, tmp_path: Path
) -> None:
    assert "0 steps" in run("team", "init", address_of(team)).stdout
    run("team", "policy", "*", "prompts", "--team")
    word = invited(run, "ann")
    output = run("team", "join", word, "--yes", "--machine", "desk").stdout
    assert "prompts, titles, summaries" in output
    assert "joined as ann, machine desk" in output
    config = tmp_path / "config" / "hivepipe"
    assert {
        (config / name).stat().st_mode & 0o777 for name in ("team.json", "credentials.env")
    } == {0o600}
    assert "joined already" in run("team", "join", word, "--yes", code=1).stderr
    assert "uplink    not started yet" in run("team", "status").stdout
    assert "sent to the team that you joined" in json.loads(run("what", "--json").stdout)["leaves"]

    fire_sample(private_home, "UserPromptSubmit", prompt="to the team")
    report = json.loads(run("drain", "--uplink", "--json").stdout)
    assert report["sent"]["waiting"] == 0
    assert "lag       none: the server had all" in run("team", "status").stdout
    assert team.rows("SELECT prompt FROM hivepipe.prompts") == [["to the team"]]
    members = json.loads(run("team", "members", "--json").stdout)["members"]
    assert [(each["member"], each["machine"], each["state"]) for each in members] == [
        ("ann", "desk", "joined")
    ]

    assert (
        "metadata" in run("team", "policy", "*", "metadata").stdout + run("team", "policy").stdout
    )
    run("drain", "--uplink")
    assert team.count("prompts") == 0
    assert team.count("sessions") == 1

    lines = [json.loads(line) for line in run("team", "export", "ann").stdout.splitlines()]
    assert {"members", "machines", "homes", "sessions", "audit"} <= {
        line["table"] for line in lines
    }

    assert "table sessions" in run("team", "leave", "--purge", "--yes").stdout
    assert team.count("sessions") == 0
    assert not (config / "team.json").exists()
    assert "HIVEPIPE_TEAM" not in (config / "credentials.env").read_text()
    assert "no team is joined" in run("team", "status").stdout


def test_a_ci_job_sends_its_rows_with_a_shared_secret(
    run: Run, team: Team, private_home: Home
) -> None:
    run("team", "init", address_of(team))
    url = invited(run, "ci", "--ci")
    fire_sample(private_home, "UserPromptSubmit", prompt="in a job")
    began = time.monotonic()
    output = run("drain", "--uplink", "--within", "10", HIVEPIPE_TEAM=url).stdout
    assert "sent to" in output
    assert time.monotonic() - began < 10
    assert team.count("sessions") == 1
    assert not log_of_team(private_home)  # that server is not the one of a membership
    assert url.split(":")[2].split("@")[0] not in output

    run("team", "revoke", "ci/ci")
    failed = run("drain", "--uplink", "--within", "1", HIVEPIPE_TEAM=url, code=1)
    assert "not valid" in failed.stderr


def test_an_invite_for_a_known_name_says_so(run: Run, team: Team) -> None:
    run("team", "init", address_of(team))
    assert "already" not in run("team", "invite", "ann").stderr
    assert "ann is a member already" in run("team", "invite", "ann").stderr


def test_the_status_of_an_uplink_at_rest_names_a_refusal(
    run: Run, team: Team, private_home: Home
) -> None:
    run("team", "init", address_of(team))
    run("team", "join", invited(run, "ann"), "--machine", "desk", "--yes")
    fire_sample(private_home, "SessionStart")
    run("drain", "--uplink", "--within", "10")
    assert "resting" in run("team", "status").stdout
    run("team", "revoke", "ann/desk")
    assert "refused" in run("team", "status", code=1).stdout


def test_forget_reports_the_deleted_rows_by_table(run: Run, team: Team, private_home: Home) -> None:
    run("team", "init", address_of(team))
    run("team", "join", invited(run, "ann"), "--yes")
    fire_sample(private_home, "SessionStart", session_id="a-session-of-ann")
    run("drain", "--uplink")
    session = "a-session-of-ann"
    assert "no session" in run("team", "forget", "nobody-here", "--yes", code=1).stderr
    proof = json.loads(run("team", "forget", session[:8], "--yes", "--json").stdout)["proof"]
    assert proof["session_id"] == session
    assert proof["places"]["table sessions"] == 1
    assert team.count("sessions") == 0
    run("drain", "--uplink")
    assert team.count("sessions") == 0  # it is not accepted again

    proof = json.loads(run("team", "forget", "ann", "--yes", "--json").stdout)["proof"]
    assert proof["places"]["logins"] == 3
    assert team.count("members") == team.count("machines") == team.count("homes") == 0
    assert "not valid" in run("drain", "--uplink", "--within", "1", code=1).stderr


def test_an_invite_is_not_used_up_while_its_secret_cannot_be_stored(
    run: Run, team: Team, tmp_path: Path
) -> None:
    run("team", "init", address_of(team))
    word = invited(run, "ann")
    path = tmp_path / "config/hivepipe/credentials.env"
    path.write_text("OPENAI_API_KEY=k\n")
    path.chmod(0o644)
    assert "chmod 600" in run("team", "join", word, "--yes", code=1).stderr
    path.chmod(0o600)
    assert "joined as ann" in run("team", "join", word, "--yes").stdout
    assert "OPENAI_API_KEY=k" in path.read_text()


@pytest.mark.parametrize("content", ["", "{}", '{"member": '])
def test_a_damaged_membership_can_be_renewed_or_left(
    run: Run, team: Team, tmp_path: Path, content: str
) -> None:
    run("team", "init", address_of(team))
    for last in ("joined as ann", "left the team"):
        run("team", "join", invited(run, "ann"), "--yes")
        path = tmp_path / "config/hivepipe/team.json"
        path.write_text(content)
        assert "damaged" in run("team", "policy", code=1).stderr
        words = ("join", invited(run, "ann")) if "joined" in last else ("leave",)
        assert last in run("team", *words, "--yes").stdout
        if "joined" in last:
            run("team", "leave")
    assert not path.exists()
    assert "no team is joined" in run("team", "leave", code=1).stderr
    assert team.count("machines", "revoked_at IS NULL") == 1  # that of the damaged membership


def test_a_secret_in_the_address_is_refused_and_not_shown(run: Run, team: Team) -> None:
    with_secret = address_of(team).replace(f"{ADMIN}@", f"{ADMIN}:{SECRET}@")
    failed = run("team", "init", with_secret, code=1)
    assert "leave it out" in failed.stderr
    assert SECRET not in failed.stderr + failed.stdout


def test_invalid_invites_are_reported(run: Run) -> None:
    for word in ("hivepipe-", "hivepipe-abc", "hivepipe-e30"):
        assert "not an invite" in run("team", "join", word, "--yes", code=1).stderr
    assert "address" in run("team", "join", "https://x", "--yes", code=1).stderr
    assert "neither an invite" in run("team", "join", "x", "--yes", code=1).stderr
    assert "required" in run("team", "join", code=64).stderr
    assert "team init" in run("team", "members", code=1).stderr


def test_the_uplink_ships_rows_and_its_lag_is_reported(
    run: Run, team: Team, private_home: Home
) -> None:
    """The uplink runs as a process; its lag is in status, alerts and metrics."""
    run("team", "init", address_of(team))
    run("team", "join", invited(run, "ann"), "--yes")
    env = {**private_home.env, "XDG_CONFIG_HOME": os.fsdecode(posix.environ[b"XDG_CONFIG_HOME"])}
    uplink = subprocess.Popen([CLI[0], "-I", "workers/uplink.py"], env=env)
    try:
        fire_sample(private_home, "SessionStart")
        run("drain")
        until(lambda: team.count("sessions") == 1, "no row at the server", 30)
        report = json.loads(run("status", "--json", code=1).stdout)["team"]
        assert (report["state"], report["member"]) == ("connected", "ann")
        until(
            lambda: json.loads(run("status", "--json", code=1).stdout)["team"]["lag_rows"] == 0,
            "rows still wait",
        )
        assert re.search(
            r"^lag +none: the server had all \d+ s ago$", run("team", "status").stdout, re.M
        )
        run("team", "revoke", "ann/" + report["machine"])
        fire_sample(private_home, "SessionStart", session_id="later")
        run("drain")
        until(lambda: '"refused"' in log_of_team(private_home), "no refusal", 60)
        refused = json.loads(run("team", "status", "--json", code=1).stdout)["team"]
        assert refused["lag_rows"] > 0
        until(lambda: "uplink" in alerts(run), "no alert")
        run("team", "leave")
        assert uplink.wait(10) == 0
    finally:
        uplink.kill()
        uplink.wait()

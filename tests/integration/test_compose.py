"""compose.yaml, the Procfile and `hivepipe up` agree; a container's processes work."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import redis
import yaml

from hivepipe.home import read_record
from hivepipe.queue.ticks import LOCK_KEY
from hivepipe.stack import kernel, processes
from hivepipe.stack.redis_server import LIMITS
from hivepipe.stack.registration import change_records
from tests.conftest import ROOT, Home, Process, find_server, fire, until
from tests.integration.test_other_redis import PASSWORD, URL_PASSWORD, TheirRedis
from tests.outcome import outcome_of
from tests.payloads import SESSION_START

TEXT = (ROOT / "compose.yaml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
OF_THE_STACK = {
    entry.name: entry
    for entry in processes.processes_with("rediss://elsewhere")
    if entry.is_in_containers and not entry.is_extra
}


def test_the_services_are_the_processes_in_starting_order() -> None:
    assert list(SERVICES) == ["redis", *OF_THE_STACK, "web"]
    in_procfile = {line.partition(":")[0] for line in processes.procfile().splitlines()}
    # In containers, hooks connect to Redis directly, so no forwarder is needed.
    assert in_procfile == (SERVICES.keys() - {"web", "forwarder"}) | {"intake"}
    (redis_here,) = (entry for entry in processes.PROCESSES if entry.if_redis == "own")
    assert SERVICES["redis"]["stop_grace_period"] == f"{redis_here.stop_secs}s"


def test_the_services_differ_only_in_their_command_and_limits() -> None:
    own = {"build", "command", "healthcheck", "profiles", "stop_grace_period"}
    common = [
        {key: value for key, value in SERVICES[name].items() if key not in own}
        for name in OF_THE_STACK
    ]
    assert all(each == common[0] for each in common)
    assert common[0]["environment"] == {
        "HIVEPIPE_HOME": "/data/home",
        "XDG_STATE_HOME": "/data/state",
        "XDG_DATA_HOME": "/data/share",
        "XDG_RUNTIME_DIR": "/run/hivepipe",
        "REDIS_URL": "redis://:${HIVEPIPE_REDIS_PASSWORD:?set it in .env}@redis:6379/0",
    }
    assert [name for name in SERVICES if "build" in SERVICES[name]] == ["writer"]


@pytest.mark.parametrize("name", OF_THE_STACK)
def test_a_service_equals_the_supervisors_program(name: str) -> None:
    service, entry = SERVICES[name], OF_THE_STACK[name]
    assert service["command"] == ["python", "-I", "-m", "hivepipe.stack.container", name]
    assert service["stop_grace_period"] == f"{entry.stop_secs}s"
    assert service["healthcheck"]["test"][-2:] == ["--check", name]
    program = processes.render("rediss://elsewhere").split(f"[program:{name}]")[1]
    assert f"stopwaitsecs={entry.stop_secs}" in program
    assert entry.script in program.splitlines()[1]


def test_only_the_page_is_published() -> None:
    assert [name for name in SERVICES if "ports" in SERVICES[name]] == ["web"]


def test_a_process_started_on_demand_has_a_profile() -> None:
    on_demand = {name for name, entry in OF_THE_STACK.items() if entry.is_on_demand}
    assert {name for name in SERVICES if "profiles" in SERVICES[name]} == on_demand == {"llm"}


def test_redis_is_durable_and_requires_a_password() -> None:
    command = SERVICES["redis"]["command"][-1]
    assert "--appendonly yes --appendfsync everysec --dir /data" in command
    assert "requirepass" in command
    for option, value in LIMITS.items():
        assert f"--{option} {value or repr('')}" in command
    # the container expands it, so that it is not on the command line
    assert "$$REDISCLI_AUTH" in command


def test_the_password_is_never_in_the_arguments(tmp_path: Path) -> None:
    """Run the command of the service with the Redis server of this machine."""
    script = SERVICES["redis"]["command"][-1].replace("$$", "$").replace("/data", str(tmp_path))
    server = find_server()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = script.replace("redis-server ", f"{server} --port {port} ")
    running = Process(
        ["sh", "-c", command],
        tmp_path / "log",
        {"REDISCLI_AUTH": PASSWORD, "PATH": "/bin"},
        tmp_path,
    )
    running.start()
    try:
        client = redis.Redis(port=port, password=PASSWORD)
        until(lambda: _pings(client), "no answer")
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=port).ping()
        words = Path(f"/proc/{running.pid}/cmdline").read_bytes()
        assert b"redis-server" in words  # Redis itself, because a shell would not pass signals on
        assert PASSWORD.encode() not in words
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        client.close()
    finally:
        assert running.end(signal.SIGTERM) == 0


def _pings(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def test_the_image_gets_all_that_the_package_is_built_of(tmp_path: Path) -> None:
    """The files that .dockerignore lets through, and the build of the Dockerfile."""
    patterns = (ROOT / ".dockerignore").read_text().split()
    assert patterns[0] == "*"
    for name in (pattern[1:] for pattern in patterns if pattern.startswith("!")):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            shutil.copy(ROOT / name, tmp_path)
    words = ["--no-deps", "--no-index", "--no-build-isolation", "-w", str(tmp_path / "built")]
    command = [sys.executable, "-m", "pip", "-q", "wheel", *words, str(tmp_path)]
    env = {**os.environ, "HIVEPIPE_BUILD": "pure"}  # the image has no compiler
    subprocess.run(command, env=env, check=True, timeout=600)
    assert list((tmp_path / "built").glob("hivepipe-*.whl"))


@pytest.fixture
def their_redis(tmp_path: Path) -> Iterator[TheirRedis]:
    made = TheirRedis(tmp_path, "--requirepass", PASSWORD)
    yield made
    made.end()


def test_the_processes_register_the_home_and_run_its_jobs(
    private_home: Home, their_redis: TheirRedis
) -> None:
    url = f"redis://:{URL_PASSWORD}@127.0.0.1:{their_redis.port}/0"
    env = private_home.env | {"REDIS_URL": url}

    def command(*words: str) -> list[str]:
        return [sys.executable, "-I", "-m", "hivepipe.stack.container", *words]

    running = [
        Process(command(name), private_home.root / f"{name}.log", env, private_home.root)
        for name in ("writer", "slow", "scheduler")
    ]
    try:
        for process in running:
            process.start()

        def is_healthy(name: str) -> bool:
            check = command("--check", name)
            return subprocess.run(check, env=env, check=False).returncode == 0

        until(lambda: is_healthy("writer"), "not healthy")
        fire("SessionStart", SESSION_START, private_home.env)
        until(lambda: private_home.count("sessions") == 1, "not stored")
        until(lambda: private_home.count("slots") >= 3, "no periodic job ran")
        until(lambda: not private_home.spool, "the spool is not empty")
        until(lambda: is_healthy("scheduler"), "the scheduler is not healthy")
        running[2].signal(signal.SIGSTOP)
        with redis.Redis.from_url(url) as client:
            client.expire(LOCK_KEY, 0)  # instead of waiting until it expires
        assert not is_healthy("scheduler")
        running[2].signal(signal.SIGCONT)
        until(lambda: is_healthy("scheduler"), "it does not act again")
    finally:
        codes = [process.end() for process in running if process.is_running]
    assert codes == [0, 0, 0]


def test_a_hook_starts_no_second_stack_while_the_containers_are_stopped(
    private_home: Home, their_redis: TheirRedis
) -> None:
    """As in Claude Code's container, while `docker compose up` recreates the others."""
    url = f"redis://:{URL_PASSWORD}@127.0.0.1:{their_redis.port}/0"
    env = private_home.env | {"REDIS_URL": url}
    command = [sys.executable, "-I", "-m", "hivepipe.stack.container", "writer"]
    writer = Process(command, private_home.root / "writer.log", env, private_home.root)
    writer.start()
    until(lambda: Path(private_home.path, "hive.db").exists(), "no writer")
    in_namespace(private_home.path, "pid:[1]")
    assert kernel.is_used_by_another_namespace(str(private_home.path)), (
        "another container may start a stack"
    )
    assert outcome_of(command, env).stderr.startswith("hivepipe: the stack of another machine or")
    change = "from hivepipe.stack.registration import change_records as change\nchange"
    up_elsewhere = f"{change}({{{str(private_home.path)!r}}}, containers='')"
    outcome_of([sys.executable, "-c", up_elsewhere], env)
    refused = outcome_of([*command[:-1], "slow"], env).stderr
    assert refused.startswith("hivepipe: the stack of another machine or"), "it took the events"
    outcome_of([sys.executable, "-c", up_elsewhere.replace("''", "'yes'")], env)
    assert writer.end() == 0
    assert not kernel.is_used_by_another_namespace(str(private_home.path))
    (folder,) = (private_home.root / "run" / "hivepipe").iterdir()
    starting = folder / "starting"
    starter = [sys.executable, "-I", "-m", "hivepipe.stack.starter", str(starting)]
    assert subprocess.run(starter, env=private_home.env, check=False).returncode == 1
    assert "this stack runs in containers" in starting.read_text()
    assert "or `hivepipe up -d --embedded` to run it here" in starting.read_text(), "a way back"
    hivepipe = [sys.executable, "-I", "-m", "hivepipe.cli.main"]
    without_claude = env | {"PATH": "/nowhere"}
    done = outcome_of([*hivepipe, "doctor", "--json"], without_claude, private_home.root)
    report = json.loads(done.stdout)
    found = {each["check"]: each for each in report["findings"]}
    assert found["autostart"]["mend"] == "docker compose up -d"
    assert found["hooks"]["is_note"], "the hooks are in the container of Claude Code"
    change_records({home := str(private_home.path)}, version="1.0.0")
    writer.start()
    until(lambda: not starting.exists(), "status still calls the stack broken")
    until(lambda: read_record(home)["version"] == version("hivepipe"), "an old version is recorded")
    in_namespace(private_home.path, "pid:[1]")
    refused = outcome_of([*hivepipe, "up", "-d"], env, private_home.root)
    assert "run `docker compose stop` there" in refused.stderr
    assert read_record(home)["containers"] == "yes"
    writer.end()
    change_records({home}, state="down")  # by `hivepipe down`, while the containers are stopped
    writer.start()
    until(lambda: read_record(home)["state"] == "on", "hooks keep events on disk")
    writer.end()


def in_namespace(home: Path, namespace: str) -> None:
    """Have the claim of a home name another pid namespace, as between two containers."""
    machine, boot, _ = (home / "kernel").read_text().splitlines()
    (home / "kernel").write_text(f"{machine}\n{boot}\n{namespace}")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["redis"], "no process of a stack in containers is called 'redis'"),
        (["writer"], "a container needs REDIS_URL and HIVEPIPE_HOME"),
    ],
)
def test_a_missing_setting_is_reported_in_one_line(
    private_home: Home, words: list[str], reason: str
) -> None:
    done = outcome_of(
        [sys.executable, "-I", "-m", "hivepipe.stack.container", *words], private_home.env
    )
    assert (done.returncode, done.stderr) == (1, f"hivepipe: {reason}\n")

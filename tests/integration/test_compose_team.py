"""compose.team.yaml: confined servers of a team with TLS, published on the loopback only."""

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
import yaml

from hivepipe.team import address
from hivepipe.team.archives import place
from hivepipe.web.listening import listen
from tests.conftest import CLI, ROOT

PATH = ROOT / "compose.team.yaml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(PATH.read_text())["services"]
SECRETS = {"POSTGRES_PASSWORD": "x", "STORE_PASSWORD": "y"}
NAMES = {"PAGE_URL": "https://hive", "OIDC_ISSUER": "https://id", "OIDC_CLIENT": "hivepipe"}


def test_the_services_are_a_database_a_store_and_a_page() -> None:
    assert list(SERVICES) == ["postgres", "objects", "page"]
    assert all(service["ports"] for service in SERVICES.values())
    assert SERVICES["page"]["profiles"] == ["page"]  # the page needs a login of the database first
    image, _, version = SERVICES["postgres"]["image"].partition(":")
    assert image == "postgres"
    assert int(version.partition("-")[0]) >= 15


def test_the_command_of_the_page_starts_it(tmp_path: Path) -> None:
    """Run the command with a configuration folder like the service's."""
    page = SERVICES["page"]
    config = tmp_path / "config" / "hivepipe"
    config.mkdir(parents=True)
    secrets = config / "credentials.env"
    secrets.write_text(
        "HIVEPIPE_TEAM_PAGE=postgresql://hivepipe_reader_0:x@db.example.org/team\n"
        "HIVEPIPE_TEAM_OIDC_SECRET=x\n"
    )
    secrets.chmod(0o600)
    program, *words = [re.sub(r"\$\{(\w+):.*\}", _value_of, word) for word in page["command"]]
    assert program == "hivepipe"
    words = [word.replace("0.0.0.0", "127.0.0.1") for word in words]
    listening = listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    listening.close()
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": str(config.parent)}
    running = subprocess.Popen([*CLI, *words, f"--port={port}"], env=env, stderr=subprocess.PIPE)
    try:
        probe = page["healthcheck"]["test"][-1].replace(":9183", f":{port}")
        assert _succeeds([sys.executable, "-c", probe]), running.stderr
        answer = httpx2.get(f"http://127.0.0.1:{port}/now", headers={"Host": "hive"}, timeout=60)
        assert answer.status_code == 401
    finally:
        running.terminate()
        running.communicate(timeout=20)


def _value_of(found: re.Match[str]) -> str:
    return NAMES[found[1]]


def _succeeds(command: list[str]) -> bool:
    """Run a command until it succeeds, or return False after 20 s."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if not subprocess.run(command, capture_output=True).returncode:
            return True
        time.sleep(0.2)
    return False


def test_no_secret_is_in_the_file_or_in_the_environment_of_the_page() -> None:
    assert set(SERVICES["page"]["environment"]) == {"HOME", "XDG_CONFIG_HOME"}
    assert "SECRET" not in " ".join(SERVICES["page"]["command"])
    for name in NAMES:
        assert f"${{{name}:-}}" in PATH.read_text()


def test_both_servers_use_tls_and_require_a_secret() -> None:
    command = SERVICES["postgres"]["command"]
    assert {"ssl=on", "ssl_cert_file=/certs/server.crt"} <= {*command}
    assert SERVICES["objects"]["environment"]["VGW_CERT"] == "/certs/server.crt"
    for name in SECRETS:
        assert f"${{{name}:?set it in .env}}" in PATH.read_text()


def test_the_documentation_names_the_addresses_of_the_servers() -> None:
    page = (ROOT / "docs" / "team.md").read_text()
    assert "docker compose -f compose.team.yaml up -d" in page
    settings = SERVICES["postgres"]["environment"]
    url = f"postgresql://{settings['POSTGRES_USER']}@db.example.org/{settings['POSTGRES_DB']}"
    assert url in page
    assert address.parse(url).port == 5432
    store = "s3://archives?endpoint=https://db.example.org:9000"
    assert store in page
    assert place.parse(store).bucket in SERVICES["objects"]["entrypoint"][-1]

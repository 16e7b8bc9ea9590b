"""compose.team.yaml: the servers of a team, confined, with TLS, reachable on loopback alone."""

import shutil
import subprocess
from typing import Any

import pytest
import yaml
from compose_spec import PyCompose

from hivepipe.team import address
from hivepipe.team.archives import place
from tests.conftest import ROOT

PATH = ROOT / "compose.team.yaml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(PATH.read_text())["services"]
SECRETS = {"POSTGRES_PASSWORD": "x", "STORE_PASSWORD": "y"}


def test_the_services_are_a_database_and_a_store() -> None:
    assert list(SERVICES) == ["postgres", "objects"]
    image, _, version = SERVICES["postgres"]["image"].partition(":")
    assert image == "postgres"
    assert int(version.partition("-")[0]) >= 15


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_can_do_more_than_it_must(name: str) -> None:
    service = SERVICES[name]
    assert int(service["user"].partition(":")[0]) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def test_both_speak_tls_and_ask_for_a_secret_that_has_no_default() -> None:
    command = SERVICES["postgres"]["command"]
    assert {"ssl=on", "ssl_cert_file=/certs/server.crt"} <= {*command}
    assert SERVICES["objects"]["environment"]["VGW_CERT"] == "/certs/server.crt"
    for name in SECRETS:
        assert f"${{{name}:?set it in .env}}" in PATH.read_text()


def test_the_page_names_what_they_serve() -> None:
    page = (ROOT / "docs" / "team.md").read_text()
    assert "docker compose -f compose.team.yaml up -d" in page
    settings = SERVICES["postgres"]["environment"]
    url = f"postgresql://{settings['POSTGRES_USER']}@db.example.org/{settings['POSTGRES_DB']}"
    assert url in page
    assert address.parse(url).port == 5432
    store = "s3://archives?endpoint=https://db.example.org:9000"
    assert store in page
    assert place.parse(store).bucket in SERVICES["objects"]["entrypoint"][-1]


def test_the_schema_accepts_it() -> None:
    merged = yaml.safe_load(PATH.read_text())  # merge keys are YAML's, not the schema's
    merged.pop("x-confined")
    assert set(PyCompose.from_yaml(yaml.safe_dump(merged)).service_names()) == SERVICES.keys()


def test_docker_compose_accepts_it() -> None:
    docker = shutil.which("docker")
    asked = docker and subprocess.run([docker, "compose", "version"], capture_output=True)
    if not asked or asked.returncode:
        pytest.skip("no docker compose here: the schema was checked by a library")
    subprocess.run(
        [str(docker), "compose", "-f", str(PATH), "config", "--quiet"],
        env=SECRETS | {"PATH": "/usr/bin:/bin:/usr/local/bin"},
        check=True,
    )

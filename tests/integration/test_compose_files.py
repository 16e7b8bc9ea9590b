"""What holds for each compose file: confined services, and a form that Docker accepts."""

import re
import shutil
import subprocess

import pytest
import yaml

from tests.conftest import ROOT

SECRETS = {
    "compose.yaml": ("HIVEPIPE_REDIS_PASSWORD", "HIVEPIPE_WEB_TOKEN"),
    "compose.team.yaml": ("POSTGRES_PASSWORD", "STORE_PASSWORD"),
}
TEXTS = {name: (ROOT / name).read_text() for name in SECRETS}
FILES = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
SERVICES = [(file, name) for file in FILES for name in FILES[file]["services"]]
each_file = pytest.mark.parametrize("file", FILES)


@pytest.mark.parametrize(("file", "name"), SERVICES)
def test_services_are_confined(file: str, name: str) -> None:
    service = FILES[file]["services"][name]
    assert int(service["user"].partition(":")[0]) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["healthcheck"]["test"]
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


@each_file
def test_the_schema_accepts_the_file_and_rejects_an_unknown_key(file: str) -> None:
    from compose_spec import PyCompose  # noqa: PLC0415  takes half a second

    # apply defaults, as compose does
    merged = yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", TEXTS[file]))
    for name in [name for name in merged if name.startswith("x-")]:
        del merged[name]  # the schema knows no YAML merge keys
    services = FILES[file]["services"].keys()
    assert set(PyCompose.from_yaml(yaml.safe_dump(merged)).service_names()) == services
    with pytest.raises(ValueError, match="comand"):
        PyCompose.from_yaml("services: {a: {image: b, comand: c}}")


@each_file
def test_a_profile_requires_no_variable_of_its_own(file: str) -> None:
    """Docker compose requires the variables of a service also without its profile."""
    required: dict[bool, set[str]] = {True: set(), False: set()}
    for service in FILES[file]["services"].values():
        required["profiles" in service] |= set(re.findall(r"\$\{(\w+):\?", str(service)))
    assert required[False] == set(SECRETS[file])
    assert required[True] <= required[False]


@each_file
def test_docker_compose_accepts_it(file: str) -> None:
    docker = shutil.which("docker")
    asked = docker and subprocess.run([docker, "compose", "version"], capture_output=True)
    if not asked or asked.returncode:
        pytest.skip("no docker compose here: the schema was checked by a library")
    subprocess.run(
        [str(docker), "compose", "-f", str(ROOT / file), "config", "--quiet"],
        env=dict.fromkeys(SECRETS[file], "https://x") | {"PATH": "/usr/bin:/bin:/usr/local/bin"},
        check=True,
    )

"""requirements.lock has every package of an installation, with the version in constraints.txt."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = ("embedded", "summaries", "team", "web")
# Needed on other platforms or Pythons only, so no constraint pins them.
ELSEWHERE = {"async-timeout", "httpx2-jsfetch"}


def locked() -> dict[str, tuple[str, list[str]]]:
    """Return name -> version and hashes."""
    text = (ROOT / "requirements.lock").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        pin = re.match(r"([\w.-]+)==([^ ;]+)", line)
        assert pin, line
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})\b", line)
        found[canonicalize_name(pin[1])] = (pin[2], hashes)
    return found


def constrained() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line.partition("==") for line in lines]
    return {canonicalize_name(name): version for name, _, version in pins}


def needed() -> set[str]:
    """Return the names of the packages of an installation with their dependencies."""
    project = PROJECT["project"]
    extras = [text for name in EXTRAS for text in project["optional-dependencies"][name]]
    texts = [*project["dependencies"], *extras, *PROJECT["build-system"]["requires"]]
    todo, found = [Requirement(text) for text in texts], set()
    while todo:
        requirement = todo.pop()
        marker = requirement.marker
        contexts = [{"extra": extra} for extra in (*requirement.extras, "")]
        if marker and not any(marker.evaluate(context) for context in contexts):
            continue
        key = canonicalize_name(requirement.name)
        if key in found and not requirement.extras:
            continue
        found.add(key)
        try:
            theirs = [Requirement(text) for text in requires(requirement.name) or ()]
        except PackageNotFoundError:
            continue
        for each in theirs:
            asked = [{"extra": extra} for extra in (*requirement.extras, "")]
            if not each.marker or any(each.marker.evaluate(context) for context in asked):
                each.marker = None
                todo.append(each)
    return found


def test_every_package_that_is_needed_is_locked_with_hashes() -> None:
    lock = locked()
    assert needed() - lock.keys() == set()
    assert [name for name, (_, hashes) in lock.items() if not hashes] == []


def test_lock_and_constraints_agree() -> None:
    lock, pins = locked(), constrained()
    assert lock.keys() - pins.keys() == ELSEWHERE
    versions = {name: version for name, (version, _) in lock.items() if name not in ELSEWHERE}
    assert versions == {name: pins[name] for name in versions}


def test_the_oldest_pydantic_ai_allowed_is_the_one_that_is_tested() -> None:
    """Its classes of errors, which hivepipe reads by name, change between minor versions."""
    (text,) = PROJECT["project"]["optional-dependencies"]["summaries"]
    requirement = Requirement(text)
    (oldest,) = [it.version for it in requirement.specifier if it.operator == ">="]
    assert constrained()[requirement.name].startswith(f"{oldest}.")


def test_the_lock_names_no_index_and_no_path() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert not re.search(r"://|--index|--find-links|file:", text)


def test_make_lock_asks_for_the_projects_own_build_backend() -> None:
    (backend,) = PROJECT["build-system"]["requires"]
    assert f"'{backend}\\n'" in (ROOT / "Makefile").read_text()


def test_every_page_installs_by_the_lock() -> None:
    found = (ROOT / "docs").glob("*.md")
    pages = [page for page in found if page.name not in ("decisions.md", "security.md")]
    install = re.compile(r"pip install|pipx install|uv tool|uvx")
    for page in (ROOT / "README.md", ROOT / "Dockerfile", *pages):
        for line in filter(install.search, page.read_text().splitlines()):
            assert "requirements.lock" in line or "--no-deps" in line, f"{page.name}: {line}"


def test_no_message_installs_an_extra_without_the_lock() -> None:
    """A plain `pip` may be another environment's, and asks the index for hivepipe itself."""
    code = {path: path.read_text() for path in (ROOT / "hivepipe").rglob("*.py")}
    assert [str(path) for path, text in code.items() if "pip install 'hivepipe" in text] == []

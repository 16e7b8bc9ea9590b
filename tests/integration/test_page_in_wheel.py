"""The wheel has each part of the page with its hash, and the page loads nothing from elsewhere."""

import base64
import csv
import hashlib
import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import ROOT
from tests.wheels import Wheels

FOLDERS = ("static", "pages")
PARTS = [
    path
    for folder in FOLDERS
    for path in (ROOT / "hivepipe/web" / folder).rglob("*")
    if path.is_file()
]
# Addresses that a browser loads: attributes of tags, imports of scripts, addresses in styles.
LOADS = re.compile(rb"""(?:\b(?:src|href)=["']?|@import\s|\bimport\s[^;]*from\s["']|url\(["']?)""")


@pytest.fixture
def wheel(wheels: Wheels) -> ZipFile:
    return ZipFile(wheels.built())


def test_each_part_of_the_page_is_in_the_wheel_with_its_hash(wheel: ZipFile) -> None:
    (record,) = [name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")]
    rows = csv.reader(wheel.read(record).decode().splitlines())
    hashes = {path: recorded_hash for path, recorded_hash, _ in rows}
    assert len(PARTS) > 10
    for path in PARTS:
        name = str(path.relative_to(ROOT))
        kept = wheel.read(name)
        assert kept == path.read_bytes(), name
        digest = base64.urlsafe_b64encode(hashlib.sha256(kept).digest()).rstrip(b"=").decode()
        assert hashes[name] == f"sha256={digest}", name


def test_the_licence_is_in_the_wheel_and_no_part_is_of_a_third_party(wheel: ZipFile) -> None:
    licences = [name for name in wheel.namelist() if name.endswith("/licenses/LICENSE")]
    assert [wheel.read(name) for name in licences] == [(ROOT / "LICENSE").read_bytes()]
    scripts = [name for name in wheel.namelist() if Path(name).suffix in (".js", ".css", ".html")]
    own = {str(path.relative_to(ROOT)) for path in PARTS}
    assert {name for name in scripts if name.startswith("hivepipe/web/")} <= own
    assert not any("min.js" in name or "vendor" in name for name in scripts)


def test_the_page_loads_nothing_from_elsewhere() -> None:
    for path in PARTS:
        for found in LOADS.finditer(text := path.read_bytes()):
            address = text[found.end() : found.end() + 8]
            assert not re.match(rb"\w+:|//", address), f"{path.name}: {address!r}"

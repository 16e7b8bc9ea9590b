"""Equal secrets have equal tags and different ones different tags, wherever they occur."""

import functools
import json
import multiprocessing
import os
import random
import re
import time
from pathlib import Path

import pytest

from hivepipe.redact import home_key
from hivepipe.redact.home_key import FILE, key_of
from hivepipe.redact.redactor import Redactor
from tests.redaction_corpus import expand
from tests.unit.test_redaction_rules import all_samples

TOKEN = expand("ghp_<A36>", random.Random(1))
OTHER = expand("ghp_<A36>", random.Random(2))
TAGGED = re.compile(r"\*\*\*REDACTED:([a-z-]+):([a-z2-7]{6})\*\*\*")


@functools.cache
def keyed(letter: bytes = b"a") -> Redactor:
    return Redactor().of_home(lambda: letter * 32)


def tags(text: str) -> list[tuple[str, str]]:
    return TAGGED.findall(text)


def test_the_same_value_has_the_same_tag_and_another_one_another() -> None:
    first, again, other = tags(keyed().redact_text(f"{TOKEN}\nx={TOKEN} and {OTHER}"))
    assert first == again
    assert first[0] == other[0] == "api-key"
    assert first[1] != other[1]
    # No two rules give one value two tags.
    found = keyed().redact_text(f"{TOKEN} password={TOKEN} Authorization: Bearer {TOKEN}")
    assert len({tag for _, tag in tags(found)}) == 1


@pytest.mark.parametrize(
    "spelled",
    [
        json.dumps({"k": TOKEN}),
        json.dumps([json.dumps({"k": TOKEN})]),
        json.dumps({"k": f"\x1b[31m{TOKEN}\x1b[0m"}),
        json.dumps({"k": f"{TOKEN[:9]}\x1b[1m{TOKEN[9:]}"}),
        json.dumps({"k": TOKEN.replace("g", "%67").replace("_", "%5F")}),
        json.dumps({"k": TOKEN}).replace("h", "\\u0068"),
        json.dumps({"k": TOKEN.replace("p", "\\x70")}),
        json.dumps({"k": TOKEN.replace("_", "&#95;")}),
    ],
)
def test_a_tag_depends_on_the_value_not_on_its_spelling(spelled: str) -> None:
    (expected,) = tags(keyed().redact_text(TOKEN))
    assert tags(keyed().redact_line(spelled.encode())[0].decode()) == [expected]


def test_a_tag_depends_on_the_key() -> None:
    assert tags(keyed(b"a").redact_text(TOKEN)) != tags(keyed(b"b").redact_text(TOKEN))


def test_each_kind_is_named() -> None:
    text = (
        "AKIAIOSFODNN7EXAMPLE ana@shop.io bo@shop.io password='hunter2' "
        "-----BEGIN EC PRIVATE KEY-----\nMHcCAQE\n-----END EC PRIVATE KEY-----"
    )
    found = tags(keyed().redact_text(text))
    assert [kind for kind, _ in found] == ["aws-key", "email", "email", "password", "private-key"]
    assert len({tag for _, tag in found}) == 5


def test_redacted_text_is_not_redacted_again() -> None:
    first, other, plain = keyed(), keyed(b"b"), Redactor()
    for _, text, _ in all_samples():
        once = first.redact_text(text)
        assert "***REDACTED:" in once
        for later in (first, other, plain):
            assert later.redact_text(once) == once
        line = json.dumps([json.dumps({"k": once})]).encode()
        assert other.redact_line(line) == (line, ())
        untagged = plain.redact_text(text)
        assert plain.redact_text(untagged) == untagged


@pytest.mark.parametrize("old", ["REDACTED", "EMAIL", "AWS_KEY", "SSH_KEY"])
def test_placeholders_of_older_releases_stay(old: str) -> None:
    for text in (f"password='***{old}***'", f"the password is ***{old}***", f"x://a:***{old}***@b"):
        assert keyed().redact_text(text) == text


def test_json_stays_json_at_any_level() -> None:
    line = json.dumps([json.dumps({"password": "hunter2", TOKEN: [OTHER]})]).encode()
    (inner,) = json.loads(keyed().redact_line(line)[0])
    clean = json.loads(inner)
    assert len(tags(" ".join([clean.pop("password"), *clean, *next(iter(clean.values()))]))) == 3


@pytest.mark.parametrize("left", [{}, {FILE: b"half"}, {f"{FILE}.tmp": b"of a killed process" * 9}])
def test_a_key_is_created_once_with_mode_0600(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: dict[str, bytes]
) -> None:
    """Processes that miss a key at once get the same one, also on a slow disk."""
    for name, content in left.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o600)
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (time.sleep(0.1), fsync(file)))
    with multiprocessing.get_context("fork").Pool(8) as pool:
        keys = pool.map(key_of, [str(tmp_path)] * 64)
    assert {*keys} == {(tmp_path / FILE).read_bytes()}
    assert len(keys[0]) == 32
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == [FILE]


def test_a_process_that_comes_late_returns_the_stored_key(tmp_path: Path) -> None:
    assert home_key._made(tmp_path / FILE) == home_key._made(tmp_path / FILE)
    assert os.listdir(tmp_path) == [FILE]


def test_without_a_home_nothing_is_written(tmp_path: Path) -> None:
    missing, in_tree = tmp_path / "missing", tmp_path / "shop" / ".hive-mind"
    in_tree.mkdir(parents=True)
    (in_tree / FILE).write_bytes(b"k" * 32)  # a clone may contain one
    assert key_of(str(missing)) == key_of(str(in_tree)) != b"k" * 32
    assert not missing.exists()


def test_a_key_is_read_only_if_there_is_a_secret() -> None:
    def refuse() -> bytes:
        raise AssertionError

    assert Redactor().of_home(refuse).redact_text("the password is unknown") == (
        "the password is unknown"
    )

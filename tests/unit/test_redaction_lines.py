"""Lines of transcripts are edited in place: all text but the secrets keeps its bytes."""

import base64
import hashlib
import io
import json
import random
import signal
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivepipe.redact import redact_line
from hivepipe.redact.redactor import UNREDACTABLE, Redactor
from hivepipe.redact.rule import Rule
from tests.redaction_corpus import expand

TOKEN = expand("ghp_<A36>", random.Random(1))
KEY = expand(
    "-----BEGIN RSA PRIVATE KEY-----\n<b64>\n<b64>\n-----END RSA PRIVATE KEY-----\n",
    random.Random(2),
)


def redacted(line: str) -> str:
    return redact_line(line.encode("utf-8", "surrogatepass"))[0].decode("utf-8", "surrogatepass")


# ---- in place
@pytest.mark.parametrize(
    "line",
    [
        '{"a":1}\n',
        '{ "a" : [ 1 , 2 ] }\r\n',
        '{"a":"caf\\u00e9 \\/ \\ud83d","b":123456789012345678901234567890,"c":NaN,"a":-1e400}',
        "not JSON at all",
        "",
        "\n",
        "\x00\x01",
    ],
)
def test_a_line_without_a_secret_is_returned_as_it_is(line: str) -> None:
    data = line.encode()
    clean, rules = redact_line(data)
    assert clean is data
    assert rules == ()


def test_around_a_secret_every_byte_stays() -> None:
    odd = (
        '{"e":"caf\\u00e9 \\/ \\ud83d \U0001f600","n":123456789012345678901234567890,"x":NaN,'
        '"d":1,"d":2, "i":-Infinity,"f":1e400,\t"s":"<>"}'
    )
    line = odd.replace("<>", f"\\u00e9 {TOKEN}\\n\\/")
    assert redacted(line) == odd.replace("<>", "\\u00e9 ***REDACTED***\\n\\/")


def test_every_secret_of_a_line_is_replaced_and_named() -> None:
    line = json.dumps({"a": [f"{TOKEN} {TOKEN}", {"b": "mail ana@shop.io"}]}).encode()
    clean, rules = redact_line(line)
    assert json.loads(clean) == {"a": ["***REDACTED*** ***REDACTED***", {"b": "mail ***EMAIL***"}]}
    assert rules == ("github", "github", "email")


@pytest.mark.parametrize(
    ("pattern", "text", "clean"),
    [
        ("code ([^ ]{4})", "code abcé, code xyz€ d", "code ***REDACTED***, code ***REDACTED*** d"),
        ("code .([^ ]{3})", "code éabc", "code ***REDACTED***c"),
    ],
)
def test_a_pattern_that_cuts_a_character_takes_all_of_it(
    pattern: str, text: str, clean: str
) -> None:
    """Patterns match bytes. Half a character would make JSON invalid."""
    redactor = Redactor([Rule("code", "code", pattern, sieve="code ")])
    assert redactor.redact_text(text) == clean
    assert json.loads(redactor.redact_line(json.dumps([text]).encode())[0]) == [clean]
    raw = json.dumps([text], ensure_ascii=False).encode()
    assert json.loads(redactor.redact_line(raw)[0]) == [clean]


def test_keys_are_redacted_and_identify_their_values() -> None:
    assert redacted(f'{{"{TOKEN}": {{"ana@shop.io": 1}}}}') == (
        '{"***REDACTED***": {"***EMAIL***": 1}}'
    )
    assert redacted('{"password" : "hunter2", "user": "hunter2"}') == (
        '{"password" : "***REDACTED***", "user": "hunter2"}'
    )
    line = json.dumps({"-----BEGIN PRIVATE KEY-----": f"{'a1' * 20} -----END PRIVATE KEY-----"})
    assert json.loads(redacted(line)) == {"***SSH_KEY***": "***SSH_KEY***"}


@pytest.mark.parametrize(
    "value",
    [
        {"adminPassword": {"value": "hunter2x"}},
        {"adminPassword": {"type": "securestring", "value": "hunter2x"}},
        {"env": [{"name": "HOME", "value": "a"}, {"name": "DB_PASSWORD", "value": "hunter2x"}]},
        {"element": "Password field", "ref": "e14", "text": "hunter2x", "submit": True},
        {"fields": [{"name": "Password", "type": "textbox", "ref": "e5", "Value": "hunter2x"}]},
        {"long": "x" * 900, "key": "DB_PASSWORD", "value": "hunter2x"},
        {"key": "DB_PASSWORD", "value": "hunter2x", "long": "x" * 900},
    ],
)
def test_strings_before_a_value_say_what_it_is(value: Any) -> None:
    line, rules = redact_line(json.dumps(value).encode())
    assert rules == ("password_apart",)
    assert json.loads(line).keys() == value.keys()
    assert b"hunter2x" not in line


def test_a_secret_before_a_long_value_is_removed() -> None:
    line, rules = redact_line(json.dumps({"password": "hunter2x", "text": "x y" * 900}).encode())
    assert b"hunter2x" not in line
    assert rules == ("password",)


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("kubectl get cm shop", "kubectl create secret generic s --from-literal=a=hunter2x"),
        ("passwd <<EOF\n", "password=hunter2x\nEOF\n"),
    ],
)
def test_strings_before_a_value_hide_no_secret_in_it_and_no_key(before: str, text: str) -> None:
    line, _ = redact_line(json.dumps([{"command": before}, {"text": text}]).encode())
    after: Any = json.loads(line)
    assert after[0] == {"command": before}
    assert "hunter2x" not in after[1]["text"]


def test_a_value_named_by_a_string_before_it_may_have_blanks() -> None:
    value = {"name": "Set-Cookie", "value": "sessionid=a8Hd7Gs6Kw9QzXc4VbN1mKj3; Path=/"}
    assert redact_line(json.dumps(value).encode())[1] == ("cookie",)


# ---- spellings
@pytest.mark.parametrize("arrow", ["\u2192", "\t"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_key_block_with_line_numbers_is_removed(arrow: str, whole: bool) -> None:
    lines = ["# key", *KEY.splitlines(), "# end"]
    text = "\n".join(f"{number:>6}{arrow}{line}" for number, line in enumerate(lines, 1))
    if not whole:
        text = text[: text.index("-----END") - 40]
    for ensure_ascii in (True, False):
        clean = json.loads(redacted(json.dumps({"content": text}, ensure_ascii=ensure_ascii)))
        kept = clean["content"]
        assert kept.startswith(f"     1{arrow}# key\n     2{arrow}***SSH_KEY***")
        assert not any(line in kept for line in KEY.splitlines()[1:3])
        assert not whole or kept.endswith(f"{arrow}# end")


def test_a_value_below_its_name_with_line_numbers_is_removed() -> None:
    text = "     3\u2192password:\n     4\u2192  'hunter2'\n"
    assert json.loads(redacted(json.dumps([text]))) == [text.replace("hunter2", "***REDACTED***")]


# ---- images, other texts
def image(data: str, **more: str) -> dict[str, Any]:
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": data, **more},
    }


def test_only_image_data_is_skipped() -> None:
    data = "AKIAIOSFODNN7EXAMPLE" + base64.b64encode(bytes(300)).decode()
    line = json.dumps([image(data), "AKIAIOSFODNN7EXAMPLE"])
    assert json.loads(redacted(line)) == [image(data), "***AWS_KEY***"]


@pytest.mark.parametrize(
    "source",
    [
        {"type": "url", "data": "AKIAIOSFODNN7EXAMPLE"},
        {"type": "base64", "data": f"not base64: {TOKEN}"},
        {"type": "base64", "data": ["AKIAIOSFODNN7EXAMPLE"]},
        {"type": "base64", "media_type": "AKIAIOSFODNN7EXAMPLE", "data": "AAAA"},
    ],
)
def test_a_malformed_image_is_not_skipped(source: Any) -> None:
    line = json.dumps({"source": source})
    assert "AKIA" not in redacted(line)
    assert TOKEN not in redacted(line)


def test_a_line_of_nothing_but_images_does_not_hang() -> None:
    """Searching the whole line for each of its strings would take minutes."""

    def hangs(*_: object) -> None:
        raise AssertionError("not done in time")

    images = [json.dumps(image(""))] * 20_000
    line = f'["{TOKEN}",{",".join(images)}]'
    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(15)
    try:
        assert redacted(line) == line.replace(TOKEN, "***REDACTED***")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "line", [f"GET {TOKEN}", f'{{"a": {TOKEN}}}', f'{{"a": "{TOKEN}', f"x\0{TOKEN}"]
)
def test_a_line_that_is_not_json_is_redacted_as_text(line: str) -> None:
    assert redacted(line + "\n") == line.replace(TOKEN, "***REDACTED***") + "\n"


def test_a_very_deeply_nested_line_and_bytes_that_are_no_text_are_redacted() -> None:
    line = "[" * 100_000 + f'"{TOKEN}"' + "]" * 100_000
    assert redacted(line) == line.replace(TOKEN, "***REDACTED***")
    data = b'\xff\xfe {"a": "\xc3\x28 %s"}\n' % TOKEN.encode()
    assert redact_line(data)[0] == data.replace(TOKEN.encode(), b"***REDACTED***")


# ---- fails closed
def test_a_leaf_that_takes_too_long_is_replaced_the_rest_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hivepipe.redact.redactor.LEAF_SECS", -1.0)
    values = {"content": f"caf\u00e9 {TOKEN}", "other": "text", "n": 1}
    clean, rules = redact_line(json.dumps(values).encode())
    leaf = f"caf\\u00e9 {TOKEN}".encode()
    digest = hashlib.sha256(leaf).hexdigest()
    shown = f"***UNREDACTABLE sha256={digest} bytes={len(leaf)}***"
    assert json.loads(clean) == {**values, "content": shown}
    assert rules == (UNREDACTABLE,)


def test_a_line_that_takes_too_long_is_replaced_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hivepipe.redact.redactor.LINE_SECS", -1.0)
    line = json.dumps([TOKEN, "text", f"{TOKEN}\n"]).encode()
    clean, rules = redact_line(line + b"\r\n")
    digest = hashlib.sha256(line).hexdigest()
    assert clean == b'"***UNREDACTABLE sha256=%s bytes=%d***"\r\n' % (digest.encode(), len(line))
    assert rules == (UNREDACTABLE,)


def test_the_memory_does_not_grow_with_the_strings_of_a_line() -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    line = json.dumps([*(f"word {number}" for number in range(10_000)), secret]).encode()
    redact_line(line[:100])
    tracemalloc.start()
    try:
        redacted, rules = redact_line(line)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(rules) == 1
    assert redacted.startswith(line[: line.index(b"ghp_")])
    assert peak < 8 * len(line)


def test_a_line_that_is_too_long_for_the_memory_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hivepipe.redact.redactor.MAX_LINE_BYTES", 100)
    long_line = json.dumps(TOKEN * 1000).encode() + b"\n"
    source = io.BytesIO(b'"short"\n' + long_line + b'"last"')
    first, left_out, last = Redactor().redact_stream(source)
    digest = hashlib.sha256(long_line).hexdigest()
    assert first == (b'"short"\n', ())
    assert json.loads(left_out[0]) == f"***UNREDACTABLE sha256={digest} bytes={len(long_line)}***"
    assert left_out[1] == (UNREDACTABLE,)
    assert last == (b'"last"', ())


# ---- any line

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([TOKEN, KEY, f"a {TOKEN}\n", "ana@shop.io", "password: 'hunter2'", "\ud83d"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.just("password"), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=150)
@given(VALUES, st.booleans(), st.integers(0, 2))
def test_json_stays_json_and_only_strings_change(value: Any, ascii_only: bool, depth: int) -> None:
    for _ in range(depth):
        value = {"inner": json.dumps(value, ensure_ascii=ascii_only)}
    line = json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    clean, rules = redact_line(line)
    assert (clean == line) == (not rules)
    text = clean.decode("utf-8", "surrogatepass")
    assert TOKEN not in text
    assert shape(json.loads(text)) == shape(value)
    assert redact_line(clean) == (clean, ())


def shape(value: Any) -> Any:
    """Return what redaction must not change: the value without its strings."""
    if isinstance(value, dict):
        return ["object", sorted(json.dumps(shape(inner)) for inner in value.values())]
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return "text" if isinstance(value, str) else repr(value)

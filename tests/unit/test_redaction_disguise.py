"""A token is found under colour codes, between invisible characters and in escaped form."""

import json
import random
import time
import tracemalloc
from collections.abc import Callable

import pytest

from hivepipe.redact import redact_line, redact_text
from hivepipe.redact.disguise import decoded_texts
from hivepipe.redact.escapes import OutOfTimeError
from tests.redaction_corpus import FORMS, NAMED_FORMS, WRAPPINGS, expand

Disguise = Callable[[str], str]
ESC = "\x1b"


def each(spell: str) -> Disguise:
    """Return a disguise that spells every character by its code point, in the format `spell`."""
    return lambda secret: "".join(spell.format(ord(letter)) for letter in secret)


def between(mark: str, every: int = 5) -> Disguise:
    """Return a disguise that puts a mark between groups of characters, like a highlight."""
    return lambda secret: mark.join(secret[at : at + every] for at in range(0, len(secret), every))


def around(before: str, after: str) -> Disguise:
    return lambda secret: f"{before}{secret}{after}"


DISGUISES: dict[str, Disguise] = {
    "plain": str,
    "red": around(f"{ESC}[31m", f"{ESC}[0m"),
    "red of 256": around(f"{ESC}[1;38;5;196m", f"{ESC}[m"),
    "red as in grep": around(f"{ESC}[01;31m{ESC}[K", f"{ESC}[m{ESC}[K"),
    "red of C1": around("\x9b31m", "\x9b0m"),
    "red, colon": around(f"{ESC}[38:2::255:0:0m", f"{ESC}[0m"),
    "a link": around(f"{ESC}]8;;https://shop.io/{ESC}\\", f"{ESC}]8;;{ESC}\\"),
    "a title": around(f"{ESC}]0;shop\x07", f"{ESC}]0;\x07"),
    "a line made anew": around(f"\r{ESC}[2K", ""),
    "a character set": around(f"{ESC}(B", f"{ESC}(B"),
    "red, escaped as in JSON": around("\\u001b[31m", "\\u001b[0m"),
    "red, escaped in hexadecimals": around("\\x1b[31m", "\\x1b[0m"),
    "red, escaped in octals": around("\\033[31m", "\\033[0m"),
    "red, escaped as in printf": around("\\e[31m", "\\e[0m"),
    "red, in a URL": around("%1B%5B31m", "%1B%5B0m"),
    "red, as cat -v shows it": around("^[[31m", "^[[0m"),
    "red, without its ESC": around("[31m", "[0m"),
    "parts of it red": between(f"{ESC}[31m"),
    "parts of it red, escaped": between("\\u001b[31m"),
    "a space without width": between("\u200b"),
    "a joiner": between("\u2060"),
    "a byte order mark": around("\ufeff", "\ufeff"),
    "a soft hyphen": between("\u00ad", 7),
    "a space without width, escaped": between("\\u200b"),
    "as JSON may": each("\\u{:04x}"),
    "as JavaScript may": each("\\u{{{:x}}}"),
    "in hexadecimals": each("\\x{:02x}"),
    "in octals": each("\\{:03o}"),
    "in a URL": each("%{:02X}"),
    "in a URL, in lower case": each("%{:02x}"),
    "in HTML": each("&#{};"),
    "in HTML, in hexadecimals": each("&#x{:X};"),
    "in HTML, without semicolons": each("&#{}"),
    "in Python, in eight digits": each("\\U{:08x}"),
    "NUL, as in UTF-16": between("\x00", 1),
    "a message to the terminal": between(f"{ESC}P+q544e{ESC}\\"),
}
GLUED = {"a letter": "x", "a digit": "7", "a low line": "_", "a word": "KEY"}
HOLDERS: dict[str, Disguise] = {
    "text": redact_text,
    "JSON": lambda text: json.loads(line_redacted(json.dumps({"k": [text]})))["k"][0],
    "JSON in JSON": lambda text: json.loads(
        json.loads(line_redacted(json.dumps([json.dumps([text])])))[0]
    )[0],
}


def line_redacted(line: str) -> str:
    return redact_line(line.encode())[0].decode()


def stays(secret: str, disguise: Disguise, clean: str) -> bool:
    """Return whether the disguised secret, or ten of its plain characters, are left in the text."""
    pieces = (secret[at : at + 10] for at in range(max(1, len(secret) - 9)))
    shown = disguise(secret)
    return shown in clean or any(piece in clean for piece in pieces)


@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_token_is_found_in_every_disguise(disguise: str) -> None:
    chance = random.Random(disguise)
    left = []
    for kind, form in FORMS.items():
        secret, holder = expand(form, chance), chance.choice([*HOLDERS])
        text = chance.choice(("{}", "see {} end"))
        clean = HOLDERS[holder](text.format(DISGUISES[disguise](secret)))
        if stays(secret, DISGUISES[disguise], clean):
            left.append((kind, text, holder))
    assert left == []


@pytest.mark.parametrize("code", [0x61C, 0x115F, 0x17B4, 0x180E, 0x2066, 0x206F, 0x3164, 0xFE0F])
def test_no_character_without_width_hides_a_token(code: int) -> None:
    secret = expand("ghp_<A36>", random.Random(code))
    shown = between(chr(code))(secret)
    assert redact_text(f"see {shown} end") == "see ***REDACTED*** end"
    for line in (json.dumps([shown]), json.dumps([shown], ensure_ascii=False)):
        assert line_redacted(line) == '["***REDACTED***"]'


@pytest.mark.parametrize("twice", ["{0}\b{0}", "_\b{0}"])
def test_overstruck_characters_are_read_once(twice: str) -> None:
    secret = expand("ghp_<A36>", random.Random(twice))
    shown = "".join(twice.format(letter) for letter in secret)
    for clean in (redact_text(f"see {shown} end"), line_redacted(json.dumps([f"see {shown} end"]))):
        assert secret[-9] * 2 not in clean.replace("\\b", "").replace("\b", "")
        assert "***REDACTED***" in clean


@pytest.mark.parametrize("before", GLUED)
def test_a_token_glued_to_a_word_is_found(before: str) -> None:
    chance = random.Random(before)
    left = []
    for kind, form in FORMS.items():
        secret, holder = expand(form, chance), chance.choice([*HOLDERS])
        if stays(secret, str, HOLDERS[holder](f"see {GLUED[before]}{secret} end")):
            left.append((kind, holder))
    assert left == []


@pytest.mark.parametrize("hashed", ["h1:hSWx{0}MbjagQ=", "sha512-YWWTjg{0}CAA==", "sha256:a{0}CA="])
def test_a_part_of_an_integrity_hash_is_no_token(hashed: str) -> None:
    for form in ("LTAI<A20>", "ABSK<A70>"):
        line = "github.com/ana/shop v1.2.2 " + hashed.format(expand(form, random.Random(hashed)))
        assert redact_text(line) == line


@pytest.mark.parametrize("disguise", sorted({*DISGUISES} - {"a line made anew"}))
def test_a_coloured_value_is_found_beside_its_name(disguise: str) -> None:
    """Each wrapping is tried with two values that only their name reveals, and with two tokens."""
    chance = random.Random(disguise)
    tokens = [("service_setting", form) for form in FORMS.values()]
    left = []
    for wrapping in WRAPPINGS:
        for name, form in chance.sample([*NAMED_FORMS.values()], 2) + chance.sample(tokens, 2):
            secret = expand(form, chance)
            shown = DISGUISES[disguise](secret)
            # The disguise is put in after the wrapping, because the one for URLs would encode it.
            text = WRAPPINGS[wrapping](name, "VALUE", chance)
            if stays(secret, str, redact_text(text.replace("VALUE", secret))):
                continue  # as plain text it is not found either
            text = text.replace("VALUE", shown)
            for holder, hold in HOLDERS.items():
                if stays(secret, DISGUISES[disguise], hold(text)):
                    left.append((name, form, wrapping, holder))
    assert left == []


@pytest.mark.parametrize(
    "text",
    [
        '{e}[36mpassword{e}[0m: {e}[32m"{s}"{e}[0m',
        '{e}[34;1m"password"{e}[0m{e}[39m:{e}[0m {e}[0;32m"{s}"{e}[0m',  # jq -C
        "{e}[32m+{e}[m{e}[32mDB_PASSWORD={s}{e}[m",  # git diff --color
        "{e}[01;31m{e}[KPASSWORD{e}[m{e}[K={s}",  # grep --color PASSWORD
        'password = "{e}[33m{s}{e}[0m"',
        "{{ password: {e}[32m'{s}'{e}[39m }}",  # node's inspect
        "&quot;password&quot;: &quot;{s}&quot;",
        "%7B%22password%22%3A%22{s}%22%7D",
        "pass\u200bword: '{s}'",
        "\\x22password\\x22: \\x22{s}\\x22",
    ],
)
def test_a_coloured_name_identifies_its_value(text: str) -> None:
    shown = text.format(e=ESC, s="hunter2secret9")
    for hold in HOLDERS.values():
        clean = hold(shown)
        assert "hunter2" not in clean
        assert "***REDACTED" in clean


@pytest.mark.parametrize("disguise", DISGUISES)
def test_the_text_around_a_disguised_secret_keeps_its_bytes(disguise: str) -> None:
    secret = expand("ghp_<A36>", random.Random(3))
    before, after = (
        f"{ESC}[1mcaf\u00e9\\n%20&amp;\u200b{ESC}[0m ",
        f" {ESC}[2Kna\u00efve\\x41 &lt;",
    )
    clean = redact_text(f"{before}{DISGUISES[disguise](secret)}{after}")
    assert clean.startswith(before)
    assert clean.endswith(after)


@pytest.mark.parametrize(
    "text",
    [
        f"{ESC}[31mred{ESC}[0m and {ESC}[1mbold{ESC}[0m",
        "%20%2F%41 &amp;&lt;&#65; \\x41\\101\\u0041 \u200bword",
        f"{ESC}[32mPASS{ESC}[39m tests/unit/password.test.ts ({ESC}[33m3{ESC}[0m)",
        f"{ESC}[31m-    password: str{ESC}[m",
        f"commit {ESC}[33m{'3f2a9c0e1b7d4f66' * 2}01234567{ESC}[m",
        "a7f3_ghp_is_the_start_of_a_token, xhf_requiredCharacteristicTypesForDisplay",
    ],
)
def test_colours_alone_change_nothing(text: str) -> None:
    for hold in HOLDERS.values():
        assert hold(text) == text


def test_a_key_with_slashes_as_php_escapes_them_is_found() -> None:
    key = expand("<A24>/<A15>", random.Random(1))
    said = json.dumps({"client_secret": key}).replace("/", "\\/")
    assert redact_text(said) == '{"client_secret": "***REDACTED***"}'
    line = redact_line(json.dumps({"text": said}).encode())[0]
    assert json.loads(line) == {"text": '{"client_secret": "***REDACTED***"}'}
    link = "https:\\/\\/shop.example\\/images\\/product2"
    assert redact_text(link) == link


@pytest.mark.parametrize(
    "text",
    [
        r'"token": "hunter2\/abcd"',
        r'"api_key": "ab3de5fg7hj9\/kl2mn4pq6rs8tu0vw1"',
        r"password=hunter2\/abcd",
    ],
)
def test_a_secret_of_small_letters_with_an_escaped_slash_is_hidden_whole(text: str) -> None:
    redacted = redact_text(text)
    assert "***REDACTED***" in redacted
    assert "\\/" not in redacted


def test_a_block_of_nul_bytes_takes_no_memory_of_its_own() -> None:
    """A power cut may leave one in a transcript."""
    text = bytes(1 << 17) + b" password = 'hunter2x'"
    tracemalloc.start()
    try:
        (decoded,) = decoded_texts(text).values()
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert decoded == b" password = 'hunter2x'"
    assert most_bytes < len(text)
    with pytest.raises(OutOfTimeError):
        decoded_texts(text, time.thread_time() - 1)

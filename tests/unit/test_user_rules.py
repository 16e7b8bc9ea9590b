"""Rules, allowed texts and switched-off rules from a config.toml."""

import json
import posix
import random
import re
import string
import uuid
from pathlib import Path

import pytest

from hivepipe.config.config_file import Config
from hivepipe.errors import RedactionRuleError
from hivepipe.redact.configured import load_redactor
from hivepipe.redact.redactor import Redactor
from tests.conftest import untagged

EMPLOYEE = r"""
[[redaction.rules]]
name = "employee"
pattern = '\bEMP-([0-9]{6})\b'
replacement = "***EMPLOYEE***"
keywords = ["EMP-"]
examples = ["id EMP-123456"]
counterexamples = ["EMP-12"]
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home's file. The user's file is `user/hivepipe/config.toml` beside it."""
    own = str(tmp_path / "user").encode()
    monkeypatch.setattr(posix, "environ", {b"XDG_CONFIG_HOME": own})
    (tmp_path / "user" / "hivepipe").mkdir(parents=True)
    return tmp_path / "config.toml"


def redactor(config: Path, text: str) -> Redactor:
    config.write_text(text, encoding="utf-8")
    return load_redactor(str(config.parent))


def test_an_own_rule_works_beside_the_built_in_ones(config: Path) -> None:
    own = redactor(config, EMPLOYEE)
    line = rb'{"a": "EMP-123456 \u0045MP-654321", "b": "ana@shop.io"}'
    clean, rules = own.redact_line(line)
    assert untagged(clean.decode()) == (
        r'{"a": "EMP-***EMPLOYEE*** \u0045MP-***EMPLOYEE***", "b": "***EMAIL***"}'
    )
    assert rules == ("employee", "employee", "email")
    assert own.redact_text("EMP-123456") == "EMP-***EMPLOYEE***"


def test_a_rule_without_keywords_is_tried_on_every_text(config: Path) -> None:
    own = redactor(
        config, "[[redaction.rules]]\nname = 'caf\u00e9'\npattern = 'caf\u00e9 [a-z]+'\n"
    )
    clean = own.redact_line(b'{"a": ["caf\\u00e9 luna"]}')[0].decode()
    assert untagged(clean) == '{"a": ["***REDACTED***"]}'
    assert untagged(own.redact_text("im caf\u00e9 luna")) == "im ***REDACTED***"
    own = redactor(config, "[[redaction.rules]]\nname = 'x'\npattern = '(a+)+(a|aa)*b$'\n")
    assert own.redact_text("a" * 100_000) == "a" * 100_000


def test_allowed_texts_and_switched_off_or_replaced_rules(config: Path) -> None:
    own = redactor(config, "[redaction]\nallow = ['.*@shop\\.io']\ndisable = ['password']\n")
    assert untagged(own.redact_text("ana@shop.io, ana@corp.io")) == "ana@shop.io, ***EMAIL***"
    assert own.redact_text("password = 'hunter'") == "password = 'hunter'"
    own = redactor(config, "[[redaction.rules]]\nname = 'email'\npattern = '[a-z]+@corp\\.io'\n")
    assert untagged(own.redact_text("ana@corp.io bo@shop.io")) == "***REDACTED*** bo@shop.io"


def test_both_files_are_combined_and_the_homes_takes_precedence(config: Path) -> None:
    own = config.parent / "user" / "hivepipe" / "config.toml"
    own.write_text(EMPLOYEE + "[redaction]\nallow = ['a@shop.io']\n")
    both = redactor(config, EMPLOYEE.replace("***EMPLOYEE***", "***NUMBER***"))
    assert both.redact_text("EMP-123456 a@shop.io") == "EMP-***NUMBER*** a@shop.io"


FULL = r"""
[redaction.words]
DEPARTMENT = ['HR', 'IT']
NUMBER = '(?:{{DEPARTMENT}})-[0-9]{6}'

[[redaction.rules]]
name = "employee"
kind = "employee"
pattern = ['staff ({{NUMBER}})', 'id{{GAP}}=({{NUMBER}})']
sieve = 'staff |id|ñ'
unless = '.*0{6}'
not_in = 'former staff|grid'
examples = ["id\n  =«HR-123456»", "staff «IT-000001»"]
counterexamples = ["id=HR-000000", "id=XX-123456", "former staff HR-123456", "grid=HR-123456"]

[[redaction.rules]]
name = "badge"
pattern = 'bdg_[A-Za-z0-9]{12,}'
token = true
random = true
entropy = 3
keywords = ["bdg_"]
examples = ["see «bdg_a1B2c3D4e5F6»", "x«bdg_a1B2c3D4e5F6»"]
counterexamples = ["bdg_aaaaaaaaaaaaaa", "bdg_aBaBaBaBaBaBaB"]

[[redaction.rules]]
name = "desk"
pattern = 'dsk_[a-z0-9]{12,}'
token = true
glued = false
examples = ["«dsk_a1b2c3d4e5f6»"]
counterexamples = ["xdsk_a1b2c3d4e5f6"]
"""


def test_an_own_rule_can_use_every_key_of_a_built_in_one(config: Path) -> None:
    own = redactor(config, FULL)
    assert untagged(own.redact_text("id =IT-123456")) == "id =***REDACTED***"
    assert own.redact_text("id =IT-000000") == "id =IT-000000"
    former = "former staff HR-000001, "
    assert untagged(own.redact_text(f"{former}staff HR-000001")) == f"{former}staff ***REDACTED***"
    assert ":employee:" in own.redact_text("staff HR-000001")
    assert own.kind("employee") == "employee"
    assert untagged(own.redact_text("3bdg_a1B2c3D4e5F6")) == "3***REDACTED***"


def test_a_sieve_sees_letters_as_json_spells_them(config: Path) -> None:
    rule = "name = 'x'\npattern = 'ñandú-[0-9]+'\nsieve = 'ñandú'\n"
    own = redactor(config, f"[[redaction.rules]]\n{rule}")
    escaped = b'["\\u00f1and\\u00fa-12"]'
    for line in (escaped, '["ñandú-12"]'.encode(), json.dumps([escaped.decode()]).encode()):
        assert own.redact_line(line)[1] == ("x",)


def test_a_sieve_sees_letters_beside_repetitions_and_in_other_forms(config: Path) -> None:
    # A word character right behind an escape would have the text searched without a sieve
    for sieve, text in (
        ("niñ?o", "nio-12"),
        ("ñé? u", "ñ u-1"),
        ("ñé{1,3} u", "ñéé u-1"),
        ("ñ ?-", "abcñ-1"),
        ("密?x", "x1234-1"),
        (r"\[ñ]|ü", "[ñ]-1"),
        (r"\Qñ[\E|ü[x]", "ñ[-1234"),
        ("caf(?:é|éé)s?", "café-1"),
        ("(?i)größ", "GRÖß-1"),
        ("(?i)größ", "GRO\u0308ß-1"),
        ("日本語", "日本語-1"),
        ("🔑 k", "🔑 k-1"),
    ):
        own = redactor(
            config, f"[[redaction.rules]]\nname = 'x'\npattern = '[^\"]+-[0-9]'\nsieve = '{sieve}'"
        )
        escaped = json.dumps([text])
        capitals = re.sub("[0-9a-f]{4}", lambda digits: digits[0].upper(), escaped)
        for line in (
            escaped,
            capitals,
            json.dumps([escaped]),
            json.dumps([text], ensure_ascii=False),
        ):
            assert own.redact_line(line.encode())[1] == ("x",), (sieve, line)


def test_a_letter_of_several_bytes_may_be_repeated(config: Path) -> None:
    own = redactor(config, "[[redaction.rules]]\nname = 'x'\npattern = '日?本+-([0-9])'\n")
    assert untagged(own.redact_text("本-1 日本本-2")) == "本-***REDACTED*** 日本本-***REDACTED***"


def test_a_class_in_a_sieve_matches_a_line_break(config: Path) -> None:
    rule = "name = 'x'\npattern = 'id[^ñ]+([0-9])'\nsieve = 'id[^ñ][0-9]'\n"
    own = redactor(config, f"[[redaction.rules]]\n{rule}")
    assert untagged(own.redact_text("id\n1")) == "id\n***REDACTED***"


def test_a_class_may_have_any_letters(config: Path) -> None:
    sieve = "[[redaction.rules]]\nname = 'n'\npattern = '[ハパ]ス([0-9]+)'\nsieve = '[ハパ]ス'\n"
    for line in (json.dumps(["パス123"]), json.dumps(["パス123"], ensure_ascii=False)):
        assert redactor(config, sieve).redact_line(line.encode())[1] == ("n",)
    named = "[[redaction.rules]]\nname = 'n'\npattern = 'Akte ([[:alnum:]äöü]+)'\n"
    assert untagged(redactor(config, named).redact_text("Akte ö1(neu)")) == (
        "Akte ***REDACTED***(neu)"
    )


def test_without_files_the_built_in_rules_are_in_force(config: Path) -> None:
    assert load_redactor(str(config.parent)).is_built_in
    assert redactor(config, "use_queue = true\n").is_built_in
    assert not redactor(config, EMPLOYEE).is_built_in


RULE = "[[redaction.rules]]\nname = 'mine'\npattern = 'x+'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[redaction", "cannot be read"),
        ("redaction = 3", "[redaction] is not a table"),
        ("[redaction]\nalow = []", "unknown key 'alow'"),
        ("[redaction]\nallow = 'x'", "allow must be a list"),
        ("[redaction]\nallow = [1]", "allow must be a list of texts"),
        ("[redaction]\nallow = ['(']", "'allow': missing )"),
        ("[redaction]\ndisable = ['emial']", "no built-in rule is called 'emial'"),
        ("[redaction]\nrules = ['x']", "rule number 1 is not a table"),
        ("[[redaction.rules]]\npattern = 'x'", "rule number 1 has no name"),
        ("[[redaction.rules]]\nname = 'mine'", "rule 'mine' has no pattern"),
        (RULE + "patern = 'x'", "rule 'mine': unknown key 'patern'"),
        (RULE.replace("x+", "x)"), "rule 'mine': unexpected )"),
        (RULE.replace("x+", "(?=x)"), "rule 'mine': invalid perl operator"),
        (RULE.replace("x+", "(?:x{1000}){1000}"), "rule 'mine'"),
        (RULE.replace("x+", "x*"), "rule 'mine': the pattern matches the empty text"),
        (RULE + "replacement = '\"'", "rule 'mine': replacement must be plain ASCII"),
        (RULE + "replacement = ''", "rule 'mine': replacement must be plain ASCII"),
        (RULE + "kind = '***'", "rule 'mine': kind must be a few words"),
        (RULE + "kind = 3", "rule 'mine': kind must be a text"),
        (RULE + "random = 'yes'", "rule 'mine': random must be true or false"),
        (RULE + "entropy = true", "rule 'mine': entropy must be a number"),
        (RULE + "sieve = '('", "rule 'mine': missing )"),
        (RULE + "unless = ')'", "rule 'mine': unexpected )"),
        (RULE + "not_in = ')'", "rule 'mine': unexpected )"),
        (RULE + "not_in = 'y*'", "rule 'mine': not_in matches the empty text"),
        (RULE + "sieve = 'z'\nexamples = ['x']", "rule 'mine' does not find its own example"),
        (RULE + "examples = ['x«x»']", "rule 'mine' does not find its own example"),
        (RULE.replace("x+", "{{XS}}"), "rule 'mine': no word is called 'XS'"),
        (RULE.replace("x+", "(x+)") + "token = true", "rule 'mine': the pattern of a token"),
        ("[redaction.words]\nxs = 'x'", "word 'xs': its name must be capitals"),
        ("[redaction.words]\nXS = 3", "word 'XS' must be a text or a list of texts"),
        ("[redaction.words]\nXS = '{{YS}}'", "word 'XS': no word is called 'YS'"),
        ("[redaction]\nwords = 'x'", "words must be a table"),
        (RULE + "keywords = ['']", "rule 'mine': keyword ''"),
        (RULE + "keywords = ['caf\u00e9']", "rule 'mine': keyword 'caf\u00e9'"),
        (RULE + "examples = ['y']", "rule 'mine' does not find its own example 'y'"),
        (RULE + "counterexamples = ['x']", "rule 'mine' finds something in its counterexample 'x'"),
        (RULE + "keywords = ['z']\nexamples = ['x']", "rule 'mine' does not find its own example"),
    ],
)
def test_a_bad_file_is_named_with_the_rule_and_its_fault(
    config: Path, text: str, message: str
) -> None:
    with pytest.raises(RedactionRuleError) as error:
        redactor(config, text)
    assert str(error.value).startswith(f"{config}: ")
    assert message in str(error.value)


def test_an_unreadable_file_is_an_error(config: Path) -> None:
    config.write_bytes(b"[redaction]\nallow = ['\xe9']\n")
    with pytest.raises(RedactionRuleError, match="cannot be read"):
        load_redactor(str(config.parent))
    config.unlink()
    config.mkdir()
    with pytest.raises(RedactionRuleError, match="cannot be read"):
        load_redactor(str(config.parent))


def test_other_readers_of_the_file_leave_the_section_alone(config: Path) -> None:
    config.write_text(EMPLOYEE)
    assert Config(str(config.parent)).problems == []


def test_a_rule_of_the_user_leaves_the_ids_and_times_of_a_transcript_line(config: Path) -> None:
    digits = redactor(config, "[[redaction.rules]]\nname = 'digits'\npattern = '[0-9]{4}'\n")
    session = "12345678-1234-4234-8234-123456789012"
    line = {
        "sessionId": session,
        "uuid": session,
        "parentUuid": session,
        "logicalParentUuid": session,
        "leafUuid": session,
        "cwd": "/srv/shop 2024",
        "timestamp": "2026-11-26T10:00:01.000Z",
        "requestId": "req_011CSHoEeqs5C35K",
        "message": {"id": "msg_01ABCDE12345678", "model": "claude-opus-4-5-20251101[1m]"},
    }
    for separators in ((",", ":"), (", ", ": ")):
        kept = json.dumps(line, separators=separators).encode()
        assert digits.redact_line(kept) == Redactor().redact_line(kept) == (kept, ())
    others = {
        "sessionId": f"{session} 1234",
        "uuid": "1234",
        "cwd": "see /srv/1234",
        "timestamp": "1234",
        "id": "1234",
        "model": "1234",
        "customer_id": session,
        "customerUuid": session,
        "text": f"{session} 2026-11-26T10:00:01.000Z",
    }
    for name, value in others.items():
        assert b"1234" not in digits.redact_line(json.dumps({name: value}).encode())[0], name


def test_a_rule_of_the_user_applies_to_a_folder_in_a_tools_input(config: Path) -> None:
    digits = redactor(config, "[[redaction.rules]]\nname = 'digits'\npattern = '[0-9]{4}'\n")
    content = [{"input": {"a": {}, "cwd": "/srv/1234"}}, {"cwd": "/srv/1234"}]
    line = {"a": {}, "message": {"content": content}, "cwd": "/srv/5678"}
    for each in (line, {"message": {"content": content}, "payload": {"cwd": "/srv/5678"}}):
        redacted = digits.redact_line(json.dumps(each).encode())[0]
        assert b"1234" not in redacted
        assert b'"cwd": "/srv/5678"' in redacted


def test_secrets_are_removed_from_a_folder_that_the_rules_of_the_user_leave(config: Path) -> None:
    digits = redactor(config, "[[redaction.rules]]\nname = 'digits'\npattern = '[0-9]{4}'\n")
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    secret = "xK9-vQ7.mZ2_pL4w"
    session = digits.of_home(lambda: b"k" * 32).of_session()
    session.redact_line(json.dumps({"text": f"password={secret}"}).encode())
    for each in (token, secret):
        line = json.dumps({"cwd": f"/srv/{each}/2024"}).encode()
        assert each.encode() not in session.redact_line(line)[0]


def test_known_values_do_not_expose_ids_to_the_rules_of_the_user(config: Path) -> None:
    """With many known values, a chance hit of their sketches is in most ids."""
    digits = redactor(config, "[[redaction.rules]]\nname = 'digits'\npattern = '[0-9]{4}'\n")
    session = digits.of_home(lambda: b"k" * 32).of_session()
    chance = random.Random(1)
    for _ in range(100):
        secret = "".join(chance.choices(string.ascii_letters + string.digits, k=12))
        session.redact_line(json.dumps({"text": f"password={secret}"}).encode())
    assert len(session.known) > 80
    for number in range(50):
        id = str(uuid.UUID(int=chance.getrandbits(128), version=4))
        line = {"uuid": id, "sessionId": id, "cwd": f"/srv/shop {2000 + number}"}
        kept = json.dumps(line).encode()
        assert session.redact_line(kept) == (kept, ())

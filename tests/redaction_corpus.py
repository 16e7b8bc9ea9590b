"""Labelled lines for the redaction: secrets in every wrapping, and lines that must not change.

The token forms follow the rule lists of gitleaks and Betterleaks, whose ids they carry. They were
written independently of hivepipe's rules. `<A36>` stands for 36 characters of an alphabet.
"""

import hashlib
import json
import random
import re
import string
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "a": string.ascii_lowercase + "234567",
    "c": string.ascii_uppercase + "234567",
    "h": "0123456789abcdef",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
    "B": "".join(sorted({*string.ascii_letters, *string.digits} - {*"0OIl"})),
}

# id in the published list -> form
FORMS = {
    "1password-secret-key": "A3-<u6>-<u11>-<u5>-<u5>-<u5>",
    "age-secret-key": "AGE-SECRET-KEY-1<u58>",
    "airtable-personnal-access-token": "pat<A14>.<h64>", "alibaba-access-key-id": "LTAI<A20>",
    "anthropic-api-key": "sk-ant-api03-<w93>AA",
    "anthropic-admin-api-key": "sk-ant-admin01-<w93>AA", "artifactory-api-key": "AKCp<A69>",
    "atlassian-api-token": "ATATT3<w186>", "aws-access-token": "AKIA<u16>",
    "azure-ad-client-secret": "<A3>8Q~<w34>", "circleci-personal-token": "CCIPAT_<A22>_<h40>",
    "clojars-api-token": "CLOJARS_<l60>", "databricks-api-token": "dapi<h32>",
    "digitalocean-pat": "dop_v1_<h64>", "doppler-api-token": "dp.pt.<A43>",
    "dynatrace-api-token": "dt0c01.<A24>.<A64>", "easypost-api-token": "EZAK<A54>",
    "facebook-page-access-token": "EAAM<A120>", "figma-personal-access-token": "figd_<w40>",
    "flyio-access-token": "fm2_<b120>==", "gcp-api-key": "AIza<w35>", "github-pat": "ghp_<A36>",
    "github-app-token": "ghs_<A36>", "github-fine-grained-pat": "github_pat_<A82>",
    "gitlab-pat": "glpat-<w20>", "gitlab-ptt": "glptt-<h40>",
    "grafana-service-account-token": "glsa_<A32>_<h8>",
    "hashicorp-tf-api-token": "<A14>.atlasv1.<w67>", "heroku-api-key-v2": "HRKU-AA<w58>",
    "huggingface-access-token": "hf_<A34>", "jwt": "eyJ<A33>.eyJ<A64>.<w43>",
    "linear-api-key": "lin_api_<A40>", "maxmind-license-key": "<A6>_<A29>_mmk",
    "notion-api-token": "ntn_<d11><A35>", "npm-access-token": "npm_<A36>",
    "openai-api-key": "sk-proj-<w74>T3BlbkFJ<w74>", "perplexity-api-key": "pplx-<A48>",
    "planetscale-api-token": "pscale_tkn_<w43>", "postman-api-token": "PMAK-<h24>-<h34>",
    "pulumi-api-token": "pul-<h40>", "pypi-upload-token": "pypi-AgEIcHlwaS5vcmc<w70>",
    "rubygems-api-token": "rubygems_<h48>", "sendgrid-api-token": "SG.<w22>.<w43>",
    "sentry-user-token": "sntryu_<h64>", "shopify-access-token": "shpat_<h32>",
    "slack-bot-token": "xoxb-<d12>-<d12>-<A24>", "slack-app-token": "xapp-1-A<u10>-<d13>-<h64>",
    "slack-webhook-url": "https://hooks.slack.com/services/T<u8>/B<u10>/<A24>",
    "square-access-token": "sq0atp-<w22>", "stripe-access-token": "sk_live_<A24>",
    "tailscale-api-key": "tskey-api-<A16>-<A16>", "telegram-bot-api-token": "<d10>:A<A34>",
    "twilio-api-key": "SK<h32>", "vault-service-token": "hvs.<w95>",
}  # fmt: skip

# secrets that only a name reveals: (name, form)
NAMED_FORMS = {
    "aws-secret-access-key": ("aws_secret_access_key", "<b40>"),
    "cloudflare-api-key": ("cloudflare_api_key", "<l40>"),
    "datadog-access-token": ("datadog_api_key", "<h32>"),
    "discord-client-secret": ("discord_client_secret", "<w32>"),
    "generic-api-key": ("internal_api_token", "<A32>"),
    "heroku-api-key": ("heroku_api_key", "<h8>-<h4>-<h4>-<h4>-<h12>"),
    "twilio-auth-token": ("twilio_auth_token", "<h32>"),
    "hashicorp-tf-password": ("administrator_login_password", "<A10>7!"),
}

EMAILS = ("ana.lopez@shop.io", "j.doe+news@mail.corp.co.uk", "m_ueller@firma.de", "x9@dev.team")


def expand(form: str, chance: random.Random) -> str:
    """Replace each `<A36>` by that number of characters of its alphabet."""

    def characters(found: re.Match[str]) -> str:
        return "".join(chance.choice(ALPHABETS[found[1]]) for _ in range(int(found[2])))

    return re.sub(r"<([AacluhdwbB])(\d+)>", characters, form)


# ---- wrappings: (name, secret, chance) -> a text as Claude Code sees it
def in_json(name: str, secret: str, chance: random.Random) -> str:
    config = {"region": "eu-1", "auth": {name: secret, "retries": chance.randrange(9)}}
    return json.dumps(config, indent=chance.choice((None, 2)))


def in_cat_n(name: str, secret: str, chance: random.Random) -> str:
    arrow = chance.choice(("\u2192", "\t"))
    lines = ["import os", "", f'{name.upper()} = "{secret}"', "def main() -> None:", "    run()"]
    return "\n".join(f"{number:>6}{arrow}{line}" for number, line in enumerate(lines, 1))


def in_shell(name: str, secret: str, chance: random.Random) -> str:
    return chance.choice(
        (
            f"export {name.upper()}={secret}\nmake deploy",
            f"{name.upper()}='{secret}' npm publish --tag next",
            f'docker run -e {name.upper()}="{secret}" shop:latest',
        )
    )


def in_yaml(name: str, secret: str, chance: random.Random) -> str:
    quoted = chance.choice((secret, f'"{secret}"', f"'{secret}'"))
    return f"services:\n  shop:\n    env:\n      {name}: {quoted}\n      PORT: 8080\n"


def in_url(name: str, secret: str, chance: random.Random) -> str:
    return f"GET https://api.shop.internal/v1/items?limit=5&{name}={quote(secret, safe='')}&page=2"


def in_diff(name: str, secret: str, chance: random.Random) -> str:
    return (
        "diff --git a/.env b/.env\nindex 3f2a9c0..1b7d4f6 100644\n--- a/.env\n+++ b/.env\n"
        f"@@ -1,3 +1,3 @@\n PORT=8080\n-{name.upper()}=\n+{name.upper()}={secret}\n"
    )


Wrapping = Callable[[str, str, random.Random], str]
WRAPPINGS: dict[str, Wrapping] = {
    "JSON in a string": in_json,
    "cat -n": in_cat_n,
    "shell": in_shell,
    "YAML": in_yaml,
    "URL": in_url,
    "diff": in_diff,
}


# ---- lines
class Labelled(NamedTuple):
    """A line of a transcript with its secret, the id of the secret's kind and the wrapping."""

    kind: str
    wrapping: str
    secret: str
    line: bytes


def transcript_line(text: str, chance: random.Random) -> bytes:
    """Return a transcript line with the text as result, command, answer or tool input."""
    contents: tuple[Any, ...] = (
        [
            {
                "type": "tool_result",
                "tool_use_id": f"toolu_{chance.randrange(10**9)}",
                "content": text,
            }
        ],
        [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": text}}],
        [{"type": "text", "text": f"It says:\n\n```\n{text}\n```\n"}],
        [{"type": "tool_use", "id": "toolu_2", "name": "Write", "input": {"content": text}}],
        text,
    )
    record = {
        "type": "user",
        "uuid": str(uuid.UUID(int=chance.getrandbits(128))),
        "timestamp": "2026-11-21T01:00:00.000Z",
        "message": {"role": "user", "content": chance.choice(contents)},
    }
    return json.dumps(record, ensure_ascii=chance.random() < 0.5).encode() + b"\n"


def positives(seed: int, of_each_kind: int) -> Iterator[Labelled]:
    """Yield secrets of every kind in every wrapping, `of_each_kind` of each combination."""
    chance = random.Random(seed)
    kinds = {kind: ("service_setting", form) for kind, form in FORMS.items()} | NAMED_FORMS
    for kind, (name, form) in kinds.items():
        for wrapping, wrap in WRAPPINGS.items():
            for _ in range(of_each_kind):
                secret = expand(form, chance)
                text = wrap(name, secret, chance)
                yield Labelled(kind, wrapping, secret, transcript_line(text, chance))
    for address in EMAILS:
        for wrapping, wrap in WRAPPINGS.items():
            text = wrap("owner", address, chance)
            yield Labelled("email", wrapping, address, transcript_line(text, chance))


def survives(labelled: Labelled, redacted: bytes) -> bool:
    """Return whether ten consecutive characters of the secret are still in the line."""
    texts = "\n".join(strings(json.loads(redacted)))
    secret = labelled.secret
    spellings = {secret, quote(secret, safe="")}
    return any(
        spelling[start : start + 10] in texts
        for spelling in spellings
        for start in range(max(1, len(spelling) - 9))
    )


def strings(value: Any) -> Iterator[str]:
    """Yield every string of a decoded line, including keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


# ---- lines that must not change
def hashes_and_ids(seed: int) -> Iterator[str]:
    """Yield hashes, UUIDs, Git ids and Claude Code ids as they appear in real output."""
    chance = random.Random(seed)
    for _ in range(20):
        data = chance.randbytes(16)
        yield f"sha256:{hashlib.sha256(data).hexdigest()}"
        yield f"{hashlib.sha256(data).hexdigest()}  dist/hivepipe-0.1.0.tar.gz"
        yield f"md5 {hashlib.md5(data).hexdigest()}"
        yield f"commit {hashlib.sha1(data).hexdigest()}\nAuthor: Claude <noreply@anthropic.com>"
        yield f"index {data.hex()[:7]}..{data.hex()[8:15]} 100644"
        yield f'"integrity": "sha512-{"".join(chance.choices(ALPHABETS["b"], k=86))}=="'
        yield str(uuid.UUID(bytes=data))
        yield f'{{"sessionId": "{uuid.UUID(bytes=data)}", "leafUuid": null}}'
        yield expand("toolu_01<A22>", chance)
        yield expand("msg_01<A22>", chance)
        yield expand('"requestId": "req_011C<A20>"', chance)
        yield expand('"signature": "<b200>="', chance)


CODE_AND_PROSE = r"""
password = get_password()
password = os.environ["DB_PASSWORD"]
self.password = password
if not password: raise ValueError("password is required")
def login(user: str, password: str) -> Token:
password=args.password, user=args.user
{"password": {"type": "string", "minLength": 8}}
<input type="password" name="password" id="password">
const password = formData.get('password')
password: z.string().min(8)
password: Option<String>,
passwordHash = bcrypt.hash(password, 10)
PASSWORD_RESET_TIMEOUT = 3600
token = request.headers.get("X-Token")
token = tokenizer.next()
let token = await getToken();
api_key = settings.API_KEY
apiKey: process.env.API_KEY,
API_KEY=${API_KEY}
export TOKEN=$(cat /run/secrets/token)
secret = Secret.from_name("db-credentials")
client_secret=<your client secret>
"max_tokens": 4096, "stop_sequence": null
"input_tokens": 35, "cache_creation_input_tokens": 0, "output_tokens": 145
next_page_token = "CAoQAA9d8f7a6s5d4f3a2s1d"
csrf_token: 8f4b1c2d9e0a7f6b5c4d3e2f1a0b9c8d
git clone git@github.com:org/repo.git
Co-Authored-By: Claude <noreply@anthropic.com>
npm install @scope/pkg@1.2.3 lodash@4.17.21
systemctl restart getty@tty1.service name@.service
ssh deploy@host uptime
user@host
* @org/team-a @ana
write to someone@example.com or admin@mail.example.org
https://medium.com/@ana.lopez/post-1234
https://shop.io/users/ana@shop.io/orders
icon@2x.png, logo@3x.jpg
y = x @ w + b; z = q@k.T
@app.route("/users/<int:id>")
@pytest.mark.parametrize("text", ["a", "b"])
foo@bar
the bearer of this letter
Authorization: Bearer $TOKEN
Authorization: Bearer <token>
headers = {"Authorization": f"Bearer {token}"}
sk-learn-tutorial-notebook-2
task-agent-3f2a9c0e1b7d4f66
desk-lamp-0123456789-ABCDEFG
risk-assessment-2026-report-final-version
AKIA is the prefix of an access key id
-----BEGIN CERTIFICATE-----
the file starts with -----BEGIN RSA PRIVATE KEY----- and is 0600
postgres://user:password@localhost/db
https://${USER}:${PASS}@registry.internal/
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk
key = "primary_key"
{"key": "value", "secret": true}
keyboard = "qwertz-layout-2"
"cacheKey": "user:42:profile"
version = "2026.11.21"
ya29 is how Google's tokens start
xoxb- is how Slack's start
tokens: ["<s>", "</s>", "<pad>"]
eyJ is base64 for {"
""".strip().splitlines()


def negatives(seed: int) -> Iterator[bytes]:
    """Yield lines that the redaction must not change."""
    chance = random.Random(seed)
    for text in (*hashes_and_ids(seed), *CODE_AND_PROSE):
        yield transcript_line(text, chance)

"""Secrets that only their neighbours give away, and texts that look like them.

The forms were written independently of the rules' own examples.
"""

import json
import random
import re

import pytest

from hivepipe.redact import redact_line, redact_text
from tests.redaction_corpus import expand

FOUND = (
    "ACCESSKEY\t«AKIA<u16>»\t2026-01-02T03:04:05Z\t«<b39>7»\tActive\tana",
    "«AKIA<u16>»,«<b39>7»",
    'boto3.client("s3", "«AKIA<u16>»", "«<b39>7»")',
    "«AKIA<u16>»:«<b39>7»",
    "CREDENTIALS\t«ASIA<u16>»\t2026-01-02T03:04:05+00:00\t«<b39>7»\t«IQoJb3JpZ2luX2Vj<b300>»",
    "Cookie: SID=«g.a000<w60>»; HSID=«<A17>»; SSID=«<A17>»; APISID=«<A16>/<A17>»",
    "Cookie: user_session=«<A48>»; __Host-user_session_same_site=«<A48>»; logged_in=yes",
    "Cookie: CF_Authorization=«eyJ<A30>.eyJ<A60>.<A43>»; cf_clearance=«<A43>-1700000000-1-<A60>»",
    '"cookies": [{"name": "sessionid", "value": "«<l32>»", "domain": "shop.io"}]',
    "Cookie: d=«xoxd-<A20>%2F<A60>%2B<A40>%3D%3D»; lc=1",
    "psql postgresql://ana:«sh@rk@bay7»@db.shop.io:5432/shop",
    "https://«<h40>»:x-oauth-basic@git.shop.io/ana/shop.git",
    '"outputs": {\n  "db_password": {\n    "value": "«Hunter2xyz»",\n    "type": "string"\n  }\n}',
    '{\n  "adminPassword": {\n    "value": "«correcthorse»"\n  }\n}',
    "«-----BEGIN OpenVPN Static key V1-----\n<h32>\n-----END OpenVPN Static key V1-----»\n",
    "220 ready\nUSER ana\r\nPASS «hunter2x»\r\n230 in",
    "redis:6379> AUTH «hunter2x»\n",
    "AUTH PLAIN «AGFuYQBodW50ZXIyeA==»",
    "[smtp.gmail.com]:587 ana:«abcdefghijklmnop»",
    "export GITHUB_TOKEN=«ghs_<d6>_eyJ<A33>.eyJ<A220>.<w171>»",
    "stripe: «sk_test_hSmDbVjwy<d1>»",
    "Das Passwort lautet «!Dragon».",
    "密码:«!hunter_shop»",
    "docker run -e admin_pw=«3.3.0-Sub.10» shop",
)
LEFT = (
    "«AKIA<u16>» was used by commit <h40>",
    "«AKIA<u16>»/<h40>",
    '"<u20>", "<b40>"',
    "Set-Cookie: lang=en; Path=/; Max-Age=31536000; SameSite=Lax",
    "Cookie: _ga=GA1.2.1234567890.1700000000; _gid=GA1.2.987654321.1700000001",
    'document.cookie = "theme=dark; session=the-session-of-tuesday; path=/"',
    '"cookies": [{"name": "session", "value": "the-session-of-tuesday"}]',
    "git+ssh://git@git.shop.io:2222/ana/shop and http://localhost:8080/@scope/pkg@1.2.3",
    '{"password": {"type": "string", "value": "${DB_PASSWORD}"}}',
    '{"password": {"value": "[parameters(\'adminPassword\')]"}}',
    "-----BEGIN OpenVPN Static key V1----- is the first line of ta.key",
    "2026-01-01 [web1.shop.io]:8080 ana:connected",
    "AUTH required2 for this route",
    "=== RUN TestUser\nPASS 12 tests",
    "密码:8-20位字符, 必须包含字母和数字",
    "密码: 6~18个字符",
    "パスワードは8文字以上16文字以下",
    "mqtt:\n  username: shop\n  password: !secret mqtt_password\n",
    "db:\n  password: !ENV ${DB_PASSWORD}\n",
    "stack:\n  Password: !Ref DatabasePassword\n",
    "  verdaccio-htpasswd: 13.0.0-next-8.7\n",
    "docs/Mid-server-high-availability-configuration.md",
)


PLACEHOLDER = re.compile(r"\*\*\*[A-Z_]+\*\*\*")


@pytest.mark.parametrize("form", [*FOUND, *LEFT])
def test_exactly_the_marked_parts_are_removed(form: str) -> None:
    text = expand(form, random.Random(form))
    plain, clean = re.sub("[«»]", "", text), re.sub("«.*?»", "***", text, flags=re.DOTALL)
    in_line = json.loads(redact_line(json.dumps({"text": plain}).encode())[0])["text"]
    assert [PLACEHOLDER.sub("***", each) for each in (redact_text(plain), in_line)] == [clean] * 2

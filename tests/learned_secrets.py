"""A session with secrets that appear once with their names and elsewhere without them."""

import base64
import json
import random
from typing import NamedTuple

from tests.archive_scene import AGENT, line
from tests.redaction_corpus import expand


class Secrets(NamedTuple):
    """Values of an .env file that no pattern recognises."""

    shop: str
    mail: str
    queue: str
    signing: str
    database: str
    admin: str
    agents: str  # appears with its name in a subagent's transcript


def secrets(seed: object) -> Secrets:
    rng = random.Random(f"secrets {seed}")
    return Secrets(
        *(expand(f"<A{size}>", rng) for size in (32, 40, 24)),
        expand("<h64>", rng),
        expand("<A5>#<A4>$<A5>7x", rng),
        expand("<A12>", rng) + "-9Qz",
        expand("<A36>", rng),
    )


def environment(of: Secrets) -> str:
    return (
        f"SHOP_API_KEY={of.shop}\nMAIL_API_KEY={of.mail}\nexport QUEUE_TOKEN='{of.queue}'\n"
        f'SIGNING_SECRET="{of.signing}"\nDB_PASSWORD="{of.database}"\nADMIN_PASSWORD=\'{of.admin}\'\n'
    )


def main_lines(of: Secrets) -> list[bytes]:
    """Return the session's lines: before the .env file is read, the file, and afterwards."""
    numbered = "\n".join(f"{n:>6}\t{each}" for n, each in enumerate(environment(of).split("\n"), 1))
    before = [
        "I'll look at the configuration first.",
        f"You gave me {of.shop}, and for mails {of.mail}: both work",
        f"shop-cli --as {of.shop} list && psql -c 'select 1' # {of.database}",
        f"the agent said {of.agents} is right",
    ]
    url = "".join(f"%{byte:02X}" for byte in of.queue[:6].encode()) + of.queue[6:]
    after = [
        f"I'll call the API with {of.shop}.",
        f"shop-cli --as={of.shop}; curl https://shop.io/v1/{url}/items?x={of.mail}&y=1",
        json.dumps({"args": ["--as", of.database, json.dumps({"k": of.signing})]}),
        f"\x1b[32m{of.shop[:7]}\x1b[0m{of.shop[7:]} and x{of.queue}y",
        f"mine is {of.admin}, the other is {of.database}",
        f"answer: {of.agents}",
    ]
    said = [*before, numbered, *after]
    return [line(number, text) for number, text in enumerate(said)]


def agent_lines(of: Secrets) -> list[bytes]:
    """Return a subagent's lines, with secrets of its own and of its session."""
    said = [
        f"use {of.agents} and {of.admin} there",
        f"AGENT_TOKEN={of.agents}",
        f"called with {of.shop}; {of.agents} is fine",
    ]
    return [
        line(100 + number, text, agentId=AGENT, isSidechain=True)
        for number, text in enumerate(said)
    ]


def spellings(secret: str) -> list[bytes]:
    """Return the spellings of a secret that no file may contain."""
    encoded = base64.b64encode(secret.encode()).rstrip(b"=")
    return [secret.encode(), json.dumps(secret)[1:-1].encode(), secret[7:].encode(), encoded]

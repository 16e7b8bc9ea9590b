"""Transcripts for a large home: turns of a prompt, an edit with its result, and an answer."""

import random
import sysconfig
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import orjson

CWD = "/home/ana/shop"
SEED = 20261124
LARGE, LARGE_SHARE = 20, 0.2  # number of large sessions, and their share of the bytes


def write_transcripts(folder: Path, sessions: list[tuple[str, str]], megabytes: float) -> None:
    """Write a transcript for each session, given by its id and its start."""
    folder.mkdir(parents=True)
    chance = random.Random(SEED)
    code = [
        line
        for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    large = min(LARGE, len(sessions) // 2)
    for place, (session, began) in enumerate(sessions):
        share, among = LARGE_SHARE, large
        if place >= large:
            share, among = 1 - LARGE_SHARE, len(sessions) - large
        left = share * megabytes * 1e6 / among
        with (folder / f"{session}.jsonl").open("wb") as file:
            for line in _lines(session, datetime.fromisoformat(began), chance, code):
                file.write(line)
                left -= len(line)
                if left <= 0:
                    break


def _lines(
    session: str, began: datetime, chance: random.Random, code: list[str]
) -> Iterator[bytes]:
    number = 0

    def line(kind: str, content: object, **more: object) -> bytes:
        nonlocal number
        number += 1
        at = began + timedelta(seconds=7 * number)
        message = {"role": kind, "content": content, **more}
        if kind == "assistant":
            usage = {"input_tokens": 3, "output_tokens": 200, "cache_read_input_tokens": 30_000}
            model = "claude-opus-4-5-20251101"
            message |= {"id": f"{session}-{number}", "model": model, "usage": usage}
        fields = {
            "type": kind,
            "uuid": f"{session}-{number}",
            "sessionId": session,
            "requestId": f"req-{number}",
            "timestamp": f"{at:%Y-%m-%dT%H:%M:%S}.000Z",
            "cwd": CWD,
            "message": message,
        }
        return orjson.dumps(fields) + b"\n"

    while True:
        place = chance.randrange(len(code) - 100)
        old, new = code[place : place + 5], code[place + 5 : place + 10]
        edit = {
            "file_path": f"{CWD}/part{place % 40}.py",
            "old_string": "\n".join(old),
            "new_string": "\n".join(new),
        }
        call = {"type": "tool_use", "id": f"t{number}", "name": "Edit", "input": edit}
        told = "\n".join(code[place : place + chance.choice((2, 10, 100))])
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": told}
        yield line("user", f"Mend {code[place].strip()}")
        yield line("assistant", [call])
        yield line("user", [result])
        yield line("assistant", [{"type": "text", "text": "\n".join(code[place : place + 8])}])
